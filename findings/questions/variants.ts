/** The variants: estimators by the names under which tables show them. */
import type { Variant } from '../harness/declaration.js';

const estimator = (id: string, type: string, choices: Readonly<Record<string, string>> = {}): Variant => ({
  id,
  set: [`advantage.type=${type}`, ...Object.entries(choices).map(([key, value]) => `advantage.${key}=${value}`)],
});

export const grpo = estimator('grpo', 'grpo');
export const grpoTurn = estimator('grpo-turn', 'grpo-turn');
export const drGrpo = estimator('dr-grpo', 'dr-grpo');
export const rloo = estimator('rloo', 'rloo');
export const drmas = estimator('drmas', 'drmas');
export const drmasMean = estimator('drmas-mean', 'drmas-mean');
export const drmasStd = estimator('drmas-std', 'drmas-std');
export const drmasNoSpread = estimator('drmas-no-spread', 'drmas', { spread: 'none' });
export const drmasSingletonRaw = estimator('drmas-singleton-raw', 'drmas', { singleton: 'raw' });
export const drmasSingletonBatch = estimator('drmas-singleton-batch', 'drmas', { singleton: 'batch' });
export const ema = estimator('ema', 'ema');

/** GRPO without groups of equal outcomes (DAPO's dynamic sampling, without refilling). */
export const grpoFiltered: Variant = {
  id: 'grpo-filtered',
  set: [...grpo.set, 'training.filter.type=equal-outcomes'],
};

/** GRPO with DAPO's higher upper clip. */
export const grpoClipHigher: Variant = { id: 'grpo-clip-higher', set: [...grpo.set, 'loss.clipHigh=0.28'] };

/** One mean and spread for each agent, each episode counted once: identity without frequency. */
export const drmasEpisode = estimator('drmas-episode', 'drmas-episode');

/** The statistics of the agent's turns of the whole step: the paper's Algorithm 1 as printed. */
export const drmasBatch = estimator('drmas-batch', 'drmas-batch');

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
