/** The variants: estimators by the names under which tables show them. */
import type { Variant } from '../harness/declaration.js';

const estimator = (id: string, type: string, choices: Readonly<Record<string, string>> = {}): Variant => ({
  id,
  set: [`advantage.type=${type}`, ...Object.entries(choices).map(([key, value]) => `advantage.${key}=${value}`)],
});

/**
 * An estimator whose groups can have one turn. A group of one has advantage 0: this was the default until the runs of
 * `small-groups` chose another one, so it is set where a result depends on it.
 */
const ofAgents = (id: string, type: string, choices: Readonly<Record<string, string>> = {}): Variant =>
  estimator(id, type, { singleton: 'zero', ...choices });

/** The same variant with the default for groups of one, which `small-groups` chose. */
export const withDefaultSingleton = (variant: Variant): Variant => ({
  ...variant,
  set: variant.set.filter((setting) => setting !== 'advantage.singleton=zero'),
});

export const grpo = estimator('grpo', 'grpo');
export const grpoTurn = estimator('grpo-turn', 'grpo-turn');
export const drGrpo = estimator('dr-grpo', 'dr-grpo');
export const rloo = estimator('rloo', 'rloo');
/** RLOO whose mean is the agent's own. */
export const rlooByAgent = ofAgents('rloo-by-agent', 'rloo', { byAgent: 'true' });
export const drmas = ofAgents('drmas', 'drmas');
export const drmasMean = ofAgents('drmas-mean', 'drmas-mean');
export const drmasStd = ofAgents('drmas-std', 'drmas-std');
export const drmasNoSpread = ofAgents('drmas-no-spread', 'drmas', { spread: 'none' });
export const drmasSingletonRaw = ofAgents('drmas-singleton-raw', 'drmas', { singleton: 'raw' });
export const drmasSingletonBatch = ofAgents('drmas-singleton-batch', 'drmas', { singleton: 'batch' });
export const drmasSingletonZero = ofAgents('drmas-singleton-zero', 'drmas', { singleton: 'zero' });
export const shrinkage = estimator('shrinkage', 'shrinkage');
export const ema = estimator('ema', 'ema');

/** GRPO without groups of equal outcomes (DAPO's dynamic sampling, without refilling). */
export const grpoFiltered: Variant = {
  id: 'grpo-filtered',
  set: [...grpo.set, 'training.filter.type=equal-outcomes'],
};

/** GRPO with DAPO's higher upper clip. */
export const grpoClipHigher: Variant = { id: 'grpo-clip-higher', set: [...grpo.set, 'loss.clipHigh=0.28'] };

/** GRPO with groups of equal outcomes played anew (DAPO's dynamic sampling). */
export const grpoRefilled: Variant = {
  id: 'grpo-refilled',
  set: [...grpoFiltered.set, 'training.filter.refill.maxRounds=4'],
};

const ofAllPolicies = (policies: readonly string[], setting: string) =>
  policies.map((policy) => `policies.${policy}.${setting}`);

export const grpoEntropy = (policies: readonly string[]): Variant => ({
  id: 'grpo-entropy',
  set: [...grpo.set, ...ofAllPolicies(policies, 'entropyCoefficient=0.01')],
});

/** GRPO with a KL to the policy after the warm start. */
export const grpoKl = (policies: readonly string[]): Variant => ({
  id: 'grpo-kl',
  set: [...grpo.set, ...ofAllPolicies(policies, 'kl.coefficient=0.01')],
});

export const reinforce = estimator('reinforce++', 'reinforce++');
export const reinforceBaseline = estimator('reinforce++-baseline', 'reinforce++-baseline');
export const reinforceByAgent = estimator('reinforce++-baseline-by-agent', 'reinforce++-baseline', { byAgent: 'true' });
export const maxrl = estimator('maxrl', 'maxrl');
export const maxrlByAgent = estimator('maxrl-by-agent', 'maxrl', { byAgent: 'true' });
export const atGrpo = estimator('at-grpo', 'at-grpo');
export const magrpo = estimator('magrpo', 'magrpo');
export const gae = estimator('gae', 'gae');

/** GiGPO, whose groups are divided by their spread. */
export const gigpo = estimator('gigpo', 'gigpo', { spread: 'group' });
/** GiGPO whose groups are the agent's own. */
export const gigpoByAgent = estimator('gigpo-by-agent', 'gigpo', { spread: 'group', byAgent: 'true' });

/** Supervised training on the episodes that succeeded. */
export const rejection: Variant = {
  id: 'rejection',
  set: ['advantage.type=rejection', 'loss.type=cross-entropy'],
};

/** 16 updates of 64 demonstrations, and no reinforcement. */
export const supervised = (learningRate: number): Variant =>
  at(
    {
      id: 'supervised',
      set: [
        ...['steps=16', 'batch=64', 'warmupSteps=2', `learningRate=${learningRate}`].map((each) => `warmStart.${each}`),
        'training.steps=0',
      ],
      ownWarmStart: true,
    },
    learningRate,
  );

/** One mean and spread for each agent, each episode counted once: identity without frequency. */
export const drmasEpisode = ofAgents('drmas-episode', 'drmas-episode');

/** The statistics of the agent's turns of the whole step: the paper's Algorithm 1 as printed. */
export const drmasBatch = ofAgents('drmas-batch', 'drmas-batch');

/** The same variant with another learning rate, under another name. */
export const at = (variant: Variant, learningRate: number): Variant => ({
  ...variant,
  id: `${variant.id}-at-${learningRate}`,
  learningRate,
});

/** The same variant with further settings, under another name. */
export const having = (
  variant: Variant,
  name: string,
  set: readonly string[],
  more: Partial<Variant> = {},
): Variant => ({
  ...variant,
  ...more,
  id: `${variant.id}-${name}`,
  set: [...variant.set, ...set],
});
