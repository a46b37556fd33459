import { ownValue } from '@drmas/engine/errors';
import type { Warning } from '@drmas/engine/events';
import { ROUNDING, significant } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { type Episode, successOf, type Turn, type TurnRecord, trainedTurns } from '@drmas/engine/nouns';
import { type CostOfCalls, missingParts, noCost, turnsNamedIn } from '../../../teams/rollout.js';
import { aloneAdvice, inflationAdvice, sharesMean } from '../../advantage/analysis/diagnosis.js';
import type { OpenEstimator } from '../../advantage/define-estimator.js';
import { estimateStep } from '../../advantage/estimate.js';
import type { AdvantageSettings, StepAdvantages } from '../advantages/advantages.js';
import { failureText } from '../play/failures.js';
import type { Played } from '../play/played.js';
import type { TrainingRun } from '../run/run-state.js';
import type { Updates } from '../update/update-result.js';

/**
 * A warning for each agent whose sampler and trainer differ by more than the recipe allows. There is none for weights
 * that were updated after they played, because their log-probs must differ.
 */
export function gapWarnings(
  { step, staleness = 0 }: Pick<Played, 'step' | 'staleness'>,
  updates: Updates,
  limit: number,
): Warning[] {
  if (staleness > 0) return [];
  return Object.values(updates)
    .flatMap(({ agents }) => Object.entries(agents))
    .map(([agent, { logprobGap = 0 }]) => ({ agent, logprobGap }))
    .filter(({ logprobGap }) => logprobGap > limit)
    .map(({ agent, logprobGap }) => ({
      type: 'warning',
      code: 'logprobs.differ',
      message: `step ${step}: the log-probs with which agent '${agent}' was sampled differ from the trainer's by ${logprobGap.toPrecision(3)} on average (training.logprobGap: ${limit})`,
    }));
}

/**
 * A warning for each agent whose calls `play` does not wait for. It is given in the first step: a mistake in a team
 * shows there, and a team that drops calls on purpose reads it once.
 */
export function awaitWarnings({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  if (step !== 1) return [];
  const episodes = all.flatMap((group) => group.episodes);
  const agents = new Set(episodes.flatMap(({ unanswered = {} }) => Object.keys(unanswered)));
  return [...agents].sort().map((agent) => {
    const left = episodes.filter(({ unanswered = {} }) => agent in unanswered);
    const [first] = left;
    return {
      type: 'warning',
      code: 'calls.unanswered',
      step,
      agent,
      message: `step 1: in ${left.length} of ${episodes.length} episodes, such as ${first?.task.id}/${first?.sample}, \`play\` returned before a call of '${agent}' was answered. The call was cancelled and is no turn. If that is not on purpose, \`await\` the call.`,
    };
  });
}

/**
 * A warning if agents read answers of other episodes: something outside of `play` keeps messages. What the first step
 * leaves there, the second one reads.
 */
export function memoryWarnings({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  if (step > 2) return [];
  const episodes = all.flatMap((group) => group.episodes);
  const strangers = episodes.flatMap(({ task, sample, turns }) => {
    const own = new Set(turns.map(({ id }) => id));
    const reading = turns.find(
      ({ judging, messages }) => !judging && messages.flatMap(turnsNamedIn).some((id) => !own.has(id)),
    );
    return reading === undefined ? [] : [{ agent: reading.agent, episode: `${task.id}/${sample}` }];
  });
  const [first] = strangers;
  if (first === undefined) return [];
  const message = `step ${step}: in ${strangers.length} of ${episodes.length} episodes, such as ${first.episode}, '${first.agent}' reads answers of another episode. Something outside of \`play\` keeps messages: a list in the module, a checkpointer, a memory or a session. Make it in \`play\`, or give each episode an id of its own there`;
  return [{ type: 'warning', code: 'memory.shared', step, agent: first.agent, message }];
}

/** The least number of episodes in which each has a tool of another number. */
const NUMBERED_EPISODES = 4;

/**
 * A warning for each agent whose tools are numbered anew in each episode, as LangChain numbers the tools of its
 * structured output. It is given in the first step.
 */
export function numberedTools({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  if (step !== 1) return [];
  const numbered = new Map<string, { agent: string; episodesOf: Map<string, Set<Episode>> }>();
  for (const episode of all.flatMap((group) => group.episodes))
    for (const { agent, tools = [] } of episode.turns)
      for (const { name } of tools) {
        const key = `${agent} ${name.replace(/\d+/g, '#')}`;
        const { episodesOf } = numbered.get(key) ?? { episodesOf: new Map<string, Set<Episode>>() };
        episodesOf.set(name, (episodesOf.get(name) ?? new Set()).add(episode));
        numbered.set(key, { agent, episodesOf });
      }
  return [...numbered.values()]
    .filter(({ episodesOf }) => {
      const uses = [...episodesOf.values()];
      return new Set(uses.flatMap((use) => [...use])).size >= NUMBERED_EPISODES && uses.every(({ size }) => size === 1);
    })
    .map(({ agent, episodesOf }) => [agent, ...episodesOf.keys()] as const)
    .map(([agent, one, other]) => ({
      type: 'warning',
      code: 'tools.numbered',
      step,
      agent,
      message: `step 1: each episode offers '${agent}' a tool with another number, such as '${one}' and '${other}'. The agent learns names that do not come again, and no run repeats another. LangChain numbers tools of structured output: give the schema a title, such as \`schema.meta({ title: 'answer' })\``,
    }));
}

/**
 * A warning if `play` returns nothing and all episodes earn the same: a `return` is probably missing. It is given in
 * the first step. The reward of some teams reads the turns alone, and differs.
 */
export function missingOutcomes({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  const whole = wholeEpisodes(all);
  const [first] = whole;
  if (step !== 1 || first === undefined || whole.every(({ turns }) => turns.length === 0)) return [];
  const { team } = first.score;
  if (whole.some(({ outcome, score }) => outcome !== undefined || score.team !== team)) return [];
  const message = `step 1: \`play\` returned nothing in ${whole.length} of ${whole.length} episodes, and all of them earn ${significant(team)}. If the team's reward reads the outcome, \`return\` it at the end of \`play\``;
  return [{ type: 'warning', code: 'outcome.missing', step, message }];
}

/**
 * Warnings if a failed episode earns more than the mean of the other episodes: policies learn to fail. A failed episode
 * earns 0 for the team, and the same for each agent with a reward of its own. They are given in the first step, before
 * the cost of calls, which a failed episode pays too.
 */
export function failureRewards({ step, all }: Pick<Played, 'step' | 'all'>, costOf: CostOfCalls = noCost): Warning[] {
  const whole = wholeEpisodes(all);
  if (step !== 1 || whole.length === 0) return [];
  const earned = mean(whole.map((episode) => episode.score.team + costOf(episode)));
  const code = 'failures.pay';
  const ofTeam: Warning[] =
    earned >= 0
      ? []
      : [
          {
            ...{ type: 'warning', code, step },
            message: `step 1: an episode earns ${significant(earned)} on average, and an episode that fails earns 0, so policies may learn to fail; give rewards of 0 or more`,
          },
        ];
  const cost = mean(whole.map(costOf));
  const ofAgents = rewardedAgents(whole).flatMap(({ agent, own, opposed }): Warning[] => {
    // A reward with the wrong sign has a warning of its own.
    const learns = whole.some((episode) => trainedTurns(episode).some((turn) => turn.agent === agent));
    if (opposed || !learns || mean(own) >= -cost) return [];
    const message = `step 1: '${agent}' earns ${significant(mean(own))} of its own on average, and ${cost === 0 ? '0' : significant(-cost)} in an episode that fails, so it may learn to fail; give it rewards of 0 or more`;
    return [{ type: 'warning', code, step, agent, message }];
  });
  return [...ofTeam, ...ofAgents];
}

const wholeEpisodes = (all: Played['all']) =>
  all.flatMap(({ episodes }) => episodes.filter(({ failure }) => failure === undefined));

/** The agents with rewards of their own: the rewards, and whether they fall if the team succeeds. */
function rewardedAgents(whole: readonly Episode[]) {
  const names = [...new Set(whole.flatMap(({ score }) => Object.keys(score.agents)))].sort();
  return names.map((agent) => {
    const rewarded = whole.filter(({ score }) => agent in score.agents);
    const own = rewarded.map(({ score }) => score.agents[agent] as number);
    const together = correlation(own, rewarded.map(successOf));
    const opposed = rewarded.length >= OPPOSED.episodes && together <= OPPOSED.correlation;
    return { agent, own, together, opposed };
  });
}

/** The least number of episodes, and the correlation from which on two rewards are opposed. */
const OPPOSED = { episodes: 16, correlation: -0.7 };

/**
 * Warnings if the team's reward, or an agent's own one, falls when the team succeeds: its sign may be wrong. They are
 * given in the first step.
 */
export function opposedRewards({ step, all }: Pick<Played, 'step' | 'all'>): Warning[] {
  if (step !== 1) return [];
  const whole = wholeEpisodes(all);
  const together = correlation(
    whole.map(({ score }) => score.team),
    whole.map(successOf),
  );
  const ofTeam: Warning[] =
    whole.length >= OPPOSED.episodes && together <= OPPOSED.correlation
      ? [
          {
            ...{ type: 'warning', code: 'reward.opposed', step },
            message: `step 1: the team's reward falls if the team succeeds (correlation ${together.toFixed(2)} over ${whole.length} episodes), so it learns to prevent success. Turn the sign of the reward, or what \`success\` returns`,
          },
        ]
      : [];
  const ofAgents = rewardedAgents(whole).flatMap(({ agent, own, together, opposed }): Warning[] => {
    if (!opposed) return [];
    const message = `step 1: the own reward of '${agent}' falls if the team succeeds (correlation ${together.toFixed(2)} over ${own.length} episodes), so it learns to prevent success. If '${agent}' is no opponent, turn the sign of its reward`;
    return [{ type: 'warning', code: 'reward.opposed', step, agent, message }];
  });
  return [...ofTeam, ...ofAgents];
}

/** Pearson's correlation. NaN if one of the lists does not vary. */
function correlation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  const product = mean(a.map((value, i) => (value - meanA) * ((b[i] as number) - meanB)));
  const spread = (values: readonly number[], centre: number) => mean(values.map((value) => (value - centre) ** 2));
  return product / Math.sqrt(spread(a, meanA) * spread(b, meanB));
}

/**
 * Warnings about the episodes that a signal played: in the first step, that some could not be used; in each step, that
 * all of them failed, so that nothing is measured against them.
 */
export function baselineWarnings({ step, extra: { episodes, fault } }: Pick<Played, 'step' | 'extra'>): Warning[] {
  const unusable: Warning[] =
    step !== 1 || fault === undefined
      ? []
      : [{ type: 'warning', code: 'baselines.unusable', step, message: `step ${step}: ${fault}` }];
  const [first] = episodes.flatMap(({ failure }) => failure ?? []);
  if (first === undefined || episodes.some(({ failure }) => failure === undefined)) return unusable;
  const message = `step ${step}: all ${episodes.length} episodes that were played as baselines failed: ${failureText(first)}`;
  return [...unusable, { type: 'warning', code: 'baselines.failing', step, message }];
}

/**
 * A warning about weights for parts of the reward that no episode has. It is given once; the name is probably misspelt.
 */
export function partWarnings(
  { training, estimator }: Pick<TrainingRun, 'training' | 'estimator'>,
  { step, all }: Pick<Played, 'step' | 'all'>,
): Warning[] {
  if (step !== 1) return [];
  const episodes = all.flatMap((group) => group.episodes);
  const ofEstimator = estimator.traits.weighsParts === true;
  const path = ofEstimator ? 'advantage.weights' : 'training.partWeights';
  const missing = ofEstimator
    ? missingParts(episodes, estimator.choices.weights as Record<string, number>, 'all')
    : missingParts(episodes, training.partWeights);
  return missing.map((name) => ({
    type: 'warning',
    code: 'parts.missing',
    message: `${path}.${name}: no episode's reward has a part of this name, so its weight changes nothing`,
  }));
}

/**
 * A warning about equal weights of all parts of the rewards, if the estimator takes the scale of rewards out and turns
 * have no other rewards. It is given in the first step.
 */
export function scaledParts(
  { agents, training: { partWeights }, estimator: { type, laws, traits, choices } }: TeamSettings,
  { step }: Pick<Played, 'step'>,
  { records }: Pick<StepAdvantages, 'records'>,
): Warning[] {
  const path = traits.weighsParts === true ? 'advantage.weights' : 'training.partWeights';
  const given = traits.weighsParts === true ? (choices.weights as typeof partWeights) : partWeights;
  if (step !== 1 || given === undefined || laws.takesScaleOut !== true) return [];
  const hasMore = ({ reward, outcome, tokenRewards }: TurnRecord) => reward !== outcome || tokenRewards !== undefined;
  if (records.some(hasMore) || Object.values(agents).some(({ invalidPenalty }) => invalidPenalty > 0)) return [];
  const names = new Set(records.flatMap(({ parts = {} }) => Object.keys(parts)));
  const weights = new Set([...names].map((name) => ownValue(given, name) ?? 1));
  const [weight = 1] = weights;
  if (weights.size !== 1 || weight === 1 || weight === 0) return [];
  const message = `${path}: each part of the rewards has the weight ${weight}, and '${type}' takes the scale of rewards out, so policies learn the same as without it: choose weights that differ, or leave it out`;
  return [{ type: 'warning', code: 'parts.scaled', message }];
}

/**
 * A warning about rewards below 0 under an estimator that divides by their mean: near 0 the mean makes advantages of
 * any size, and below it none. It is given in the first step.
 */
export function negativeRewards(
  { estimator: { type, traits } }: Pick<TrainingRun, 'estimator'>,
  { step }: Pick<Played, 'step'>,
  { records }: Pick<StepAdvantages, 'records'>,
): Warning[] {
  const negative = records.filter(({ reward }) => reward < 0).length;
  if (step !== 1 || traits.needsNoNegative !== true || negative === 0) return [];
  const message = `step 1: ${negative} of ${records.length} turns have rewards below 0, and '${type}' divides by the mean reward of a task, so a mean near 0 makes advantages of any size, and tasks with a mean below 0 teach nothing; give rewards of 0 or more, without costs and penalties, or choose another estimator`;
  return [{ type: 'warning', code: 'rewards.negative', step, message }];
}

type TeamSettings = Pick<TrainingRun, 'agents' | 'training' | 'estimator'>;

/**
 * A warning about costs of calls and weights of parts, which change the team's reward, if no policy learns from the
 * team's reward: each agent that learns has a reward of its own, and the estimator reads no other. It is given in the
 * first step.
 */
export function unheardTeam(
  { agents, training, estimator }: TeamSettings,
  { step }: Pick<Played, 'step'>,
  { turns, records }: Pick<StepAdvantages, 'turns' | 'records'>,
): Warning[] {
  const costs = Object.entries(agents).flatMap(([agent, { callCost = 0, tokenCost = 0 }]) => [
    ...(callCost > 0 ? [`agents.${agent}.callCost`] : []),
    ...(tokenCost > 0 ? [`agents.${agent}.tokenCost`] : []),
  ]);
  const set = [...costs, ...Object.keys(training.partWeights ?? {}).map((part) => `training.partWeights.${part}`)];
  const heard = turns.some(({ episode, turn }) => !(turn.agent in episode.score.agents));
  if (step !== 1 || set.length === 0 || turns.length === 0 || heard) return [];
  if (training.filter !== undefined || readsTeam(estimator, records)) return [];
  const message = `step 1: each agent that learns has a reward of its own, so no policy learns from the team's reward, and ${set.join(', ')} change nothing that is learnt. Take them into the agents' own rewards`;
  return [{ type: 'warning', code: 'settings', step, message }];
}

/**
 * A warning for each agent whose endpoint reports no numbers of tokens, if a setting counts them: they count as 0. It
 * is given in the first step.
 */
export function uncountedTokens(
  { agents, training, prices }: Pick<TrainingRun, 'agents' | 'training' | 'prices'>,
  { step, all }: Pick<Played, 'step' | 'all'>,
): Warning[] {
  if (step !== 1) return [];
  const turns = all.flatMap(({ episodes }) => episodes.flatMap((episode) => episode.turns));
  const isUncounted = ({ endpoint }: Turn) =>
    endpoint !== undefined && (endpoint.promptTokens === undefined || endpoint.responseTokens === undefined);
  const names = [...new Set(turns.filter(isUncounted).map(({ agent }) => agent))].sort();
  return names.flatMap((agent): Warning[] => {
    const { tokens, cost } = training.stopWhen ?? {};
    const set = [
      ...((agents[agent]?.tokenCost ?? 0) > 0 ? [`agents.${agent}.tokenCost`] : []),
      ...(prices[agent] === undefined ? [] : ['its price', ...(cost === undefined ? [] : ['training.stopWhen.cost'])]),
      ...(tokens === undefined ? [] : ['training.stopWhen.tokens']),
    ];
    if (set.length === 0) return [];
    const message = `step 1: the endpoint of '${agent}' does not report how many tokens it reads and writes, so they count as 0 for ${set.join(', ')}`;
    return [{ type: 'warning', code: 'settings', step, agent, message }];
  });
}

/** Whether another reward of the team would give other advantages, although each agent has a reward of its own. */
function readsTeam(estimator: OpenEstimator, records: readonly TurnRecord[]): boolean {
  const names = [...new Set(records.map(({ task, episode }) => JSON.stringify([task, episode])))];
  const moved = records.map((record): TurnRecord => {
    const { task, episode, outcome = 0, stepReward = 0 } = record;
    const more = 1 + (names.indexOf(JSON.stringify([task, episode])) % 3);
    return { ...record, outcome: outcome + more, stepReward: stepReward + more };
  });
  const numbers = (turns: readonly TurnRecord[]): number[] =>
    Array.from(estimateStep(turns, estimator).advantages).flat();
  const before = numbers(records);
  return numbers(moved).some((advantage, i) => Math.abs(advantage - (before[i] ?? 0)) > ROUNDING);
}

interface HintedRun extends Pick<AdvantageSettings, 'estimator' | 'agents'> {
  readonly training: Pick<TrainingRun['training'], 'groupSize'>;
}

/**
 * Warnings at the first step of a run, for each agent that the recipe's estimator does not suit, with the reason and
 * the setting to change. If agents share a mean, these are agents whose own rewards explain less than half of their
 * squared scores, or whose gradient is inflated by more than 2 if that share is not known. If each agent has its own
 * mean, these are agents that are often alone in their group. An agent of weight 0 learns from no reward, so it gets no
 * warning.
 */
export function estimatorHints(
  { estimator, training: { groupSize }, agents }: HintedRun,
  step: number,
  { inflation, ownShare, calls }: Pick<StepAdvantages, 'inflation' | 'ownShare' | 'calls'>,
): Warning[] {
  if (step !== 1) return [];
  const { type } = estimator;
  return Object.entries(calls).flatMap(([agent, ofAgent]): Warning[] => {
    if (agents[agent]?.rewardWeight === 0) return [];
    const diagnosis = { inflation: inflation[agent], ownShare: ownShare[agent], calls: ofAgent };
    const shared = sharesMean(estimator);
    const advice = shared
      ? inflationAdvice(agent, diagnosis, { type, groupSize })
      : aloneAdvice(agent, ofAgent, estimator);
    if (advice === undefined) return [];
    const code = shared ? 'inflation' : 'alone';
    return [{ type: 'warning', code, step, agent, message: `${advice.says} ${advice.remedy}` }];
  });
}
