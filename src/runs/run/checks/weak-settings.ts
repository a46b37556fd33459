/** Warnings about settings that are accepted and have almost no effect, or another one than a person may expect. */

import { isDeepStrictEqual } from 'node:util';
import { isGreedy, type Sampling } from '@drmas/engine/contract';
import { type AnyLoss, correctionOf, lossKind, lossNamed, type TokenLoss } from '@drmas/engine/loss';
import { differ } from '@drmas/engine/math';
import { optimizerNamed } from '@drmas/engine/model';
import type { z } from 'zod';
import {
  enlargesCosts,
  evensOutCosts,
  loneEpisodes,
  type OpenEstimator,
  tellsTokensApart,
} from '../../../method/advantage.js';
import { type RunWarning, stalenessOf } from '../../../method/index.js';
import {
  backendOfModel,
  DEFAULT_VALUE_CLIP,
  evaluationSampling,
  lossPath,
  lossSettings,
  type Recipe,
  samplerOfModel,
} from '../../../method/recipe.js';

/** Runs of fewer updates are trials, in which the default of `warmupSteps` is not reached. */
const FEW_UPDATES = 10;

type Settings = Pick<
  Recipe,
  | 'agents'
  | 'policies'
  | 'training'
  | 'evaluation'
  | 'estimator'
  | 'loss'
  | 'lists'
  | 'assign'
  | 'rollout'
  | 'backend'
  | 'sampler'
  | 'team'
>;

/** Warnings about numbers of the recipe whose size has almost no effect, or another effect than one may expect. */
export function weakSettings(recipe: Settings): RunWarning[] {
  const { agents, estimator, policies, training } = recipe;
  const { type, penalties, traits } = estimator;
  const names = Object.keys(agents);
  const isNormalised = penalties === 'normalised';
  const set = (key: 'invalidPenalty' | 'callCost' | 'tokenCost') =>
    Object.entries(agents).flatMap(([agent, settings]) => (settings[key] > 0 ? [`agents.${agent}.${key}`] : []));
  const costs = [...set('callCost'), ...set('tokenCost')];
  const sizes = [
    ...(isNormalised ? set('invalidPenalty') : []),
    ...(isNormalised || (traits.weighsParts === true && evensOutCosts(estimator, names)) ? costs : []),
  ];
  const { filter } = training;
  const lossOf = (policy: string) => lossNamed(lossSettings(recipe, policy), recipe.lists.ownLosses);
  return [
    ...(sizes.length === 0
      ? []
      : [
          `'${type}' divides penalties and costs by their spread, so their sizes have almost no effect ` +
            `(${sizes.join(', ')}): choose advantage.restWeight for penalties, and advantage.weights.calls for costs`,
        ]),
    ...negativeSettings(estimator, policies, [...set('invalidPenalty'), ...costs]),
    ...(filter?.type !== 'equal-outcomes' || filter.score !== 'outcome' || costs.length === 0
      ? []
      : [
          `training.filter compares rewards, which the cost of calls changes (${costs.join(', ')}), so it keeps groups ` +
            "that all succeed or all fail: set training.filter.score to 'success' to drop them",
        ]),
    ...Object.entries(policies).flatMap(([name, { kl }]) =>
      filter === undefined || kl?.in !== 'advantage'
        ? []
        : [
            `training.filter drops groups by their rewards, and with them the advantages that policies.${name}.kl gives: ` +
              'leave it out if the reference teaches in all groups',
          ],
    ),
    ...(costs.length === 0 || filter !== undefined || sizes.length > 0 || !enlargesCosts(estimator, names)
      ? []
      : [
          `'${type}' divides by the spread of a task's rewards, so if all episodes of a task fail, or all succeed, a cost ` +
            `of any size counts as much as success does elsewhere (${costs.join(', ')}): if it should not, choose an ` +
            "estimator without a spread, or set training.filter to { type: 'equal-outcomes', score: 'success' }",
        ]),
    ...(training.groupSize > 1 ? [] : loneEpisodeNotes(estimator, names)),
    ...unheardPolicies(agents, policies, recipe.assign),
    ...settingsOfFrozen(recipe.team, agents, recipe.assign, estimator),
    ...Object.entries(policies).flatMap(([name, policy]) => {
      const own = Object.entries(agents).filter(([agent]) => recipe.assign[agent] === name);
      return scalesWithAdvantages(lossOf(name)) ? scaleOfGradients(name, policy, Object.fromEntries(own)) : [];
    }),
    ...Object.entries(policies).flatMap(([name, { epochs, miniBatches }]) => {
      // A server may sample with other rounding than it trains with.
      const samplesElsewhere = samplerOfModel(recipe, name) !== undefined || 'url' in backendOfModel(recipe, name);
      if (stalenessOf(recipe.rollout) > 0 || samplesElsewhere) return [];
      const path = lossPath(recipe, name);
      if (epochs * miniBatches > 1) return idleCorrection(correctionOf(lossOf(name)), path);
      return idleLossSettings(lossSettings(recipe, name), recipe.lists).map(
        (setting) =>
          `each step makes one update with the weights that played, so all ratios are 1, and ${path}.` +
          `${setting} changes nothing: choose policies.${name}.epochs or policies.${name}.miniBatches above 1, or leave it out`,
      );
    }),
    ...Object.keys(policies).flatMap((name) => lowCap(correctionOf(lossOf(name)), lossPath(recipe, name))),
    ...Object.entries(policies).flatMap(([name, { critic }]) => {
      if (critic === undefined) return [];
      if (estimator.traits.needs !== 'values')
        return [`'${type}' needs no critic, so policies.${name}.critic has no effect`];
      if (critic.clip === DEFAULT_VALUE_CLIP || critic.epochs * critic.miniBatches > 1) return [];
      return [
        `each step makes one update of the critic of '${name}', so its values have not changed yet, and ` +
          `policies.${name}.critic.clip changes nothing: choose critic.epochs or critic.miniBatches above 1, or leave it out`,
      ];
    }),
    ...Object.entries(policies).flatMap(([name, { kl }]) => misplacedKl(`policies.${name}.kl`, kl)),
    ...Object.entries(policies).flatMap(([name, { kl }]) => {
      const [loss, path] = [lossSettings(recipe, name), lossPath(recipe, name)];
      if (lossKind(lossNamed(loss, recipe.lists.ownLosses)).ratio === 'token') return [];
      const apart = tellsTokensApart(estimator, { agents: names, ofTokens: kl?.in === 'reward' });
      const source = kl?.in === 'advantage' ? `policies.${name}.kl gives` : apart ? `'${type}' gives` : undefined;
      return source === undefined ? [] : [averagedTokens(source, loss.type, path)];
    }),
    ...equalSamples(agents, recipe.evaluation, recipe.assign),
    ...idleIntervals(training, recipe.evaluation),
    ...Object.entries(policies).flatMap(([name, { warmupSteps, epochs, miniBatches }]) => {
      const updates = training.steps * epochs * miniBatches;
      return updates < FEW_UPDATES || warmupSteps < updates
        ? []
        : [
            `policies.${name}.warmupSteps is ${warmupSteps}, but the run makes at most ${updates} updates of it, so its ` +
              'learning rate rises until the end: choose a shorter rise or more steps',
          ];
    }),
    ...Object.entries(policies).flatMap(([name, { schedule, epochs, miniBatches, critic }]) => {
      const { steps } = training;
      const learns = `so policy '${name}' learns nothing`;
      const { updates, finalFraction = 1 } = schedule.type === 'constant' ? {} : schedule;
      const all = steps * epochs * miniBatches;
      return [
        ...(updates !== undefined && updates < all && finalFraction === 0
          ? [
              `policies.${name}.schedule has brought the learning rate to 0 after ${updates} of at most ${all} updates, ${learns} ` +
                'from then on: choose more updates, or a finalFraction above 0',
            ]
          : []),
        ...(critic !== undefined && critic.aheadSteps >= steps && estimator.traits.needs === 'values'
          ? [
              `policies.${name}.critic.aheadSteps is ${critic.aheadSteps}, and the run has ${steps} steps, ${learns}: choose ` +
                'fewer steps ahead',
            ]
          : []),
      ];
    }),
  ].map((message) => ({ code: 'settings', message }));
}

/** A warning about settings that can make rewards negative, for an estimator that needs rewards of 0 or more. */
function negativeSettings(
  { type, traits }: OpenEstimator,
  policies: Recipe['policies'],
  subtracted: readonly string[],
): string[] {
  const kls = Object.keys(policies).filter((name) => policies[name]?.kl?.in === 'reward');
  const settings = [...subtracted, ...kls.map((name) => `policies.${name}.kl`)];
  if (traits.needsNoNegative !== true || settings.length === 0) return [];
  return [
    `'${type}' divides by the mean reward of a task, which ${settings.join(', ')} can bring close to 0, where advantages ` +
      'have any size, or below 0, where they are 0: leave it out, or choose another estimator',
  ];
}

/** A warning for an estimate of the KL that does not hold its policy near the reference in its place. */
function misplacedKl(path: string, kl: Recipe['policies'][string]['kl']): string[] {
  if (kl?.in === 'loss' && kl.kind === 'k1')
    return [
      `the average gradient of 'k1' is 0 in the loss, so ${path} does not hold the policy near its reference: choose ` +
        'another kind, or kl.in=reward',
    ];
  if (kl?.in === 'reward' && kl.kind !== 'k1')
    return [
      `in the reward, '${kl.kind}' punishes tokens that are too unlikely too, so ${path} does not lead the policy back ` +
        'to its reference: choose k1',
    ];
  return [];
}

/**
 * A warning for each policy whose agents all have a `rewardWeight` of 0, so that no reward reaches it. There is none
 * for a policy that learns from a teacher.
 */
function unheardPolicies(settings: Recipe['agents'], policies: Recipe['policies'], assign: Recipe['assign']): string[] {
  return Object.entries(policies).flatMap(([name, { kl }]) => {
    if (kl?.in === 'advantage') return [];
    const agents = Object.keys(assign).filter((agent) => assign[agent] === name);
    if (agents.length === 0 || agents.some((agent) => settings[agent]?.rewardWeight !== 0)) return [];
    const weights = agents.map((agent) => `agents.${agent}.rewardWeight`).join(', ');
    return [
      `the policy '${name}' learns from no reward, because ${weights} is 0: choose a weight above 0, or leave it as it is ` +
        `with frozen(...) in assign`,
    ];
  });
}

/** A warning for each frozen agent with settings that only concern agents that learn. */
function settingsOfFrozen(
  team: Recipe['team'],
  agents: Recipe['agents'],
  assign: Recipe['assign'],
  { choices }: OpenEstimator,
): string[] {
  const { shareStatistics = [], episodeAgents = [] } = choices as {
    readonly shareStatistics?: readonly (readonly string[])[];
    readonly episodeAgents?: readonly string[];
  };
  return Object.entries(agents).flatMap(([agent, { invalidPenalty }]) => {
    if (typeof assign[agent] === 'string') return [];
    const set = [
      ...([0, team.agents[agent]?.invalidPenalty].includes(invalidPenalty) ? [] : [`agents.${agent}.invalidPenalty`]),
      ...(shareStatistics.flat().includes(agent) ? ['advantage.shareStatistics'] : []),
      ...(episodeAgents.includes(agent) ? ['advantage.episodeAgents'] : []),
    ];
    return set.map((path) => `the agent '${agent}' is frozen, so ${path} changes nothing that is learnt: leave it out`);
  });
}

/**
 * A warning for each policy whose agents all have one `rewardWeight`, if that only scales gradients whose size the
 * optimiser takes out.
 */
function scaleOfGradients(
  name: string,
  { optimizer, entropyCoefficient, kl }: Pick<Recipe['policies'][string], 'optimizer' | 'entropyCoefficient' | 'kl'>,
  agents: Recipe['agents'],
): string[] {
  const weights = new Set(Object.values(agents).map(({ rewardWeight }) => rewardWeight));
  const [weight] = weights;
  if (weights.size !== 1 || weight === 1 || weight === 0) return [];
  const hasOtherTerms = entropyCoefficient > 0 || (kl !== undefined && kl.in !== 'reward');
  if (hasOtherTerms || !optimizerNamed(optimizer.type).takesScaleOut) return [];
  const paths = Object.keys(agents)
    .map((agent) => `agents.${agent}.rewardWeight`)
    .join(', ');
  return [
    `the steps of '${optimizer.type}' hardly depend on the size of gradients, so ${paths} changes almost nothing: choose ` +
      `another policies.${name}.optimizer.learningRate, or sgd`,
  ];
}

/** A warning if a step plays one episode of a task, and the estimator compares the episodes of a task. */
function loneEpisodeNotes(estimator: OpenEstimator, agents: readonly string[]): string[] {
  if (!loneEpisodes(estimator, agents).compares) return [];
  const { singleton } = estimator.choices;
  const instead =
    singleton === undefined
      ? 'most turns have nothing to be compared with'
      : `a turn that is alone is treated by advantage.singleton=${singleton}`;
  return [
    `training.groupSize is 1, but '${estimator.type}' compares the episodes of a task, so ${instead}: choose at least 2, ` +
      'or an estimator that needs no group, such as reinforce++',
  ];
}

/** The gradient of a token that was sampled from the weights in training, so that its ratio is 1. */
function gradientAt(token: TokenLoss, advantage: number): number {
  const outcome = { loss: 0, gradient: 0, clipped: false, clippedLower: false };
  token({ ratio: 1, logRatio: 0, advantage, logprob: -1 }, outcome);
  return outcome.gradient;
}

/** Whether twice the advantages give twice the gradients. A plug-in's loss may weigh large ones in another way. */
function scalesWithAdvantages(loss: AnyLoss): boolean {
  const { token, prepares } = lossKind(loss);
  const isTwice = (advantage: number) => !differ(gradientAt(token, 2 * advantage), 2 * gradientAt(token, advantage));
  return !prepares && [1, -1].every(isTwice);
}

/** The loss of a token that was sampled from the weights in training, so that its ratio is 1. */
function onPolicy(loss: AnyLoss): unknown {
  const { token, aggregate, prepares } = lossKind(loss);
  if (prepares) return loss; // what it reads in the batch may depend on each of its settings
  const gradients = [1, -1].map((advantage) => gradientAt(token, advantage));
  return [gradients, aggregate, Math.min(1, correctionOf(loss)?.cap ?? 1)];
}

/**
 * The settings of a loss that change nothing if all ratios are 1: each step makes one update, with the weights that
 * played. They are found by comparing the loss with the one that has the setting's default.
 */
function idleLossSettings(
  settings: ReturnType<typeof lossSettings>,
  { losses, ownLosses }: Pick<Recipe['lists'], 'losses' | 'ownLosses'>,
): string[] {
  const { schema } = losses.find(({ type }) => type === settings.type) ?? {};
  const own = Object.entries(schema?.shape ?? {}).filter(([name]) => name !== 'type');
  const named = (changes: object) => lossNamed({ ...settings, ...changes }, ownLosses);
  const idle = own.filter(([name, choice]) => {
    const byDefault = (choice as z.ZodType).safeParse(undefined).data;
    const given = (settings as Readonly<Record<string, unknown>>)[name];
    return (
      !isDeepStrictEqual(given, byDefault) &&
      isDeepStrictEqual(onPolicy(named({})), onPolicy(named({ [name]: byDefault })))
    );
  });
  return idle.map(([name]) => name);
}

/** A warning if a loss corrects for the weights that played, although these begin each step's updates. */
function idleCorrection(correction: ReturnType<typeof correctionOf>, path: string): string[] {
  if (correction === undefined || correction.cap < 1) return []; // a cap below 1 scales the loss
  return [
    `the weights that played are those with which each step begins, so ${path}.importanceCorrection changes nothing ` +
      'and costs a forward pass: leave it out, or choose rollout.staleness above 0',
  ];
}

/** A warning if a correction changes tokens whose probability has not changed since they were sampled. */
function lowCap(correction: ReturnType<typeof correctionOf>, path: string): string[] {
  if (correction === undefined || correction.cap >= 1) return [];
  const { cap, beyond } = correction;
  const effect =
    beyond === 'mask'
      ? 'leaves out the tokens whose probability has not changed, and learns from those that became less likely'
      : `multiplies the loss of most tokens by ${cap}, whether their probability has changed or not`;
  return [`${path}.importanceCorrection.cap is below 1, so the correction ${effect}: choose a cap above 1`];
}

/** A warning that tokens have advantages of their own, and the loss has one ratio for several tokens. */
const averagedTokens = (source: string, loss: string, path: string): string =>
  `${source} each token an advantage of its own, but '${loss}' (${path}) has one ratio for all ` +
  'tokens of a turn and takes the mean of their advantages: choose a loss with a ratio for each token, such as ppo-clip';

/** A warning if the episodes of a task in an evaluation are alike, because each agent takes the most probable token. */
function equalSamples(agents: Recipe['agents'], evaluation: Recipe['evaluation'], assign: Recipe['assign']): string[] {
  const { samples, samplesDuring = samples } = evaluation;
  const several = samples > 1 ? 'samples' : samplesDuring > 1 ? 'samplesDuring' : undefined;
  const mayDiffer = Object.values(assign).some((entry) => typeof entry !== 'string' && entry.type === 'text');
  const areGreedy = (of: (agent: string) => Pick<Sampling, 'temperature' | 'topK'>) =>
    Object.keys(agents)
      .map(of)
      .every(({ temperature, topK }) => isGreedy(temperature) || topK === 1);
  const greedy =
    areGreedy((agent) => evaluationSampling({ agents, evaluation }, agent)) &&
    // A run that trains like that learns nothing, and says so itself.
    !areGreedy((agent) => (agents[agent] as Recipe['agents'][string]).sampling);
  if (several === undefined || mayDiffer || !greedy) return [];
  return [
    `evaluation.${several} is ${Math.max(samples, samplesDuring)}, but each agent takes the most probable ` +
      'token in evaluations, so the episodes of a task are alike unless the team or its tools differ by chance: choose 1, ' +
      'or a temperature above 0',
  ];
}

/** Warnings about rules that need more evaluations or steps than come before the run's last step. */
function idleIntervals(
  { steps, stopWhen: { patience = 0, rewardFloor } = {}, keepEpisodes }: Recipe['training'],
  { every }: Recipe['evaluation'],
): string[] {
  if (steps === 0) return [];
  const between = Math.ceil(steps / every) - 1;
  const low = rewardFloor?.steps ?? 0;
  return [
    ...(patience > between
      ? [
          `training.stopWhen.patience is ${patience}, and ${between} evaluations come between the first and the last one ` +
            `(evaluation.every ${every}, training.steps ${steps}), so it never ends the run: choose less, or evaluate more often`,
        ]
      : []),
    ...(low >= steps
      ? [
          `training.stopWhen.rewardFloor.steps is ${low}, and the run has ${steps} steps, so it never ends the run: choose fewer`,
        ]
      : []),
    ...(typeof keepEpisodes === 'number' && keepEpisodes > steps
      ? [
          `training.keepEpisodes is ${keepEpisodes}, and the run has ${steps} steps, so it writes no episodes of training: ` +
            'choose less, or false',
        ]
      : []),
  ];
}
