import type { EstimatorState } from '../../advantage/define-estimator.js';
import { estimateStep, type StepEstimate } from '../../advantage/estimate.js';
import type { Estimator } from '../../advantage/estimators/index.js';
import type { TurnRecord } from '../../core/advantage.js';
import {
  agentReward,
  type Episode,
  type EpisodeGroup,
  inCanonicalOrder,
  type Turn,
  trainedTurns,
  turnReward,
} from '../../core/episode.js';
import { chainsOf } from './chains.js';
import { type DurationWeights, durationWeights } from './duration-weights.js';

/** A turn with its reward and its advantage. */
export interface TurnAdvantage {
  readonly episode: Episode;
  readonly turn: Turn;
  readonly reward: number;
  /** One number for all response tokens, or one for each [R]. */
  readonly advantage: number | readonly number[];
  /** What a critic is to predict at each token [R], where the estimator uses one. */
  readonly returns?: readonly number[];
}

/** The advantages of a step. */
export interface StepAdvantages {
  /**
   * The turns that policies learn from, in the order of tasks and samples and, within an episode, as the estimator sees
   * them.
   */
  readonly turns: readonly TurnAdvantage[];
  readonly byTurn: ReadonlyMap<Turn, TurnAdvantage>;
  readonly episodes: readonly Episode[];
  /** The advantages of each episode's turns; undefined for those of frozen agents. */
  readonly byEpisode: ReadonlyMap<Episode, readonly (number | readonly number[] | undefined)[]>;
  /** The turns as the estimator saw them. */
  readonly records: readonly TurnRecord[];
  /** The predicted inflation (Lemma 4.2) by agent; agents without a group to judge by are missing. */
  readonly inflation: Readonly<Record<string, number>>;
  /** How much of an agent's scores by shared statistics follows its own rewards, from 0 to 1. */
  readonly ownShare: StepEstimate['ownShare'];
  /** When each agent that learns is called, over the same episodes. */
  readonly calls: StepEstimate['calls'];
  /** What the estimator keeps for the next step. */
  readonly state: EstimatorState;
}

/** What estimators may need of a turn that its episode does not tell. */
export interface EstimatorInputs {
  /** The reward of the same agent in a greedy episode of the task. */
  readonly baselines?: ReadonlyMap<Turn, number>;
  /** The reward that each response token earns besides [R]: the KL penalty, where it is part of the reward. */
  readonly tokenRewards?: ReadonlyMap<Turn, readonly number[]>;
  /** What the critic predicts at each response token [R]. */
  readonly values?: ReadonlyMap<Turn, Float32Array>;
}

/** The parts of a recipe that say how advantages are estimated. */
export interface AdvantageSettings {
  readonly advantage: Estimator;
  readonly agents: Readonly<Record<string, { readonly rewardWeight: number }>>;
  readonly training?: { readonly durationWeights?: DurationWeights | undefined };
}

/**
 * Estimates the advantages of a step's turns. Turns of frozen agents take no part: they are not in the statistics of a
 * task and not in an episode's score. Afterwards an agent's advantages are multiplied by its weight, and those of turns
 * by what their durations count, where the recipe asks for that.
 * @param before the state that the estimator kept from the step before
 */
export function stepAdvantages(
  { advantage: estimator, agents, training }: AdvantageSettings,
  groups: readonly EpisodeGroup[],
  inputs: EstimatorInputs = {},
  before: EstimatorState = {},
): StepAdvantages {
  const episodes = groups.flatMap((group) => group.episodes);
  // An episode that is scored by its first turn needs the order of the calls.
  const byFirst = 'episodeScore' in estimator && estimator.episodeScore === 'first';
  const pairs = episodes.flatMap((episode) => {
    const turns = trainedTurns(episode);
    return (byFirst ? turns : inCanonicalOrder(turns)).map((turn) => ({ episode, turn }));
  });
  const chains = new Map<Turn, number>(
    episodes.flatMap((episode) =>
      chainsOf(inCanonicalOrder(trainedTurns(episode))).flatMap((chain, c) => chain.map((turn) => [turn, c] as const)),
    ),
  );
  const stepRewards = new Map(episodes.map((episode) => [episode, rewardsOfSteps(episode)]));
  const agentStepRewards = new Map(episodes.map((episode) => [episode, agentRewardsOfSteps(episode)]));
  const records = pairs.map(({ episode, turn }) => ({
    ...turnRecord(episode, turn),
    chain: chains.get(turn) as number,
    stepReward: stepRewards.get(episode)?.get(stepOf(turn)) as number,
    agentStepReward: agentStepRewards.get(episode)?.get(turn.agent)?.get(stepOf(turn)) as number,
    ...inputsOf(inputs, turn),
  }));
  const { advantages, returns, inflation, ownShare, calls, state } = estimateStep(records, estimator, before);
  const byDuration = durationWeights(
    pairs.map(({ turn }) => turn),
    training?.durationWeights,
  );
  const turns = pairs.map(({ episode, turn }, i) => ({
    episode,
    turn,
    reward: (records[i] as TurnRecord).reward,
    advantage: weighted(
      advantages[i] as number | number[],
      (agents[turn.agent]?.rewardWeight ?? 1) * (byDuration[i] as number),
    ),
    ...(returns === undefined ? {} : { returns: returns[i] as number[] }),
  }));
  const byTurn = new Map<Turn, TurnAdvantage>(turns.map((each) => [each.turn, each]));
  const byEpisode = new Map(
    episodes.map((episode) => [episode, episode.turns.map((turn) => byTurn.get(turn)?.advantage)]),
  );
  return { turns, byTurn, episodes, byEpisode, records, inflation, ownShare, calls, state };
}

function inputsOf(
  { baselines, tokenRewards, values }: EstimatorInputs,
  turn: Turn,
): Pick<TurnRecord, 'baseline' | 'tokenRewards' | 'values'> {
  const [baseline, rewards, predicted] = [baselines?.get(turn), tokenRewards?.get(turn), values?.get(turn)];
  return {
    ...(baseline === undefined ? {} : { baseline }),
    ...(rewards === undefined ? {} : { tokenRewards: rewards }),
    ...(predicted === undefined ? {} : { values: Array.from(predicted) }),
  };
}

const weighted = (advantage: number | readonly number[], weight: number) =>
  typeof advantage === 'number' ? advantage * weight : advantage.map((a) => a * weight);

/** A turn's names and its reward. */
export function rewardRecord(episode: Episode, turn: Turn): TurnRecord {
  return {
    task: episode.task.id,
    episode: episodeName(episode),
    agent: turn.agent,
    turn: turn.turn,
    reward: turnReward(episode, turn),
  };
}

/** Every call is a step of its own, unless the team named the steps. */
const stepOf = ({ envStep, turn }: Turn) => envStep ?? turn;

/** The reward of each step of an episode for the team: that of all of its turns that are learnt from. */
const rewardsOfSteps = (episode: Episode) => sumsOfSteps(trainedTurns(episode), episode.score.team);

/** The reward of each step that an agent acts in, for this agent alone. */
function agentRewardsOfSteps(episode: Episode): ReadonlyMap<string, ReadonlyMap<number, number>> {
  const turns = trainedTurns(episode);
  const agents = new Set(turns.map(({ agent }) => agent));
  return new Map(
    [...agents].map((name) => [
      name,
      sumsOfSteps(
        turns.filter(({ agent }) => agent === name),
        agentReward(episode, name),
      ),
    ]),
  );
}

/**
 * The reward of each step: what its turns earned for themselves, minus their penalties; the outcome arrives with the
 * last.
 */
function sumsOfSteps(turns: readonly Turn[], outcome: number): ReadonlyMap<number, number> {
  const last = turns.reduce((latest, turn) => Math.max(latest, stepOf(turn)), 0);
  const rewards = new Map([[last, outcome]]);
  for (const turn of turns) {
    const step = stepOf(turn);
    rewards.set(step, (rewards.get(step) ?? 0) + (turn.stepReward ?? 0) - turn.penalty);
  }
  return rewards;
}

function turnRecord(episode: Episode, turn: Turn): Omit<TurnRecord, 'stepReward' | 'agentStepReward' | 'chain'> {
  return {
    ...rewardRecord(episode, turn),
    outcome: episode.score.team,
    length: turn.response.length,
    observation: turn.observation ?? turn.messages.map(({ role, content }) => `${role}: ${content}`).join('\n'),
    ...(turn.envStep === undefined ? {} : { envStep: turn.envStep }),
  };
}

/** `task/sample`, as events name an episode. */
export function episodeName({ task, sample }: Episode): string {
  return `${task.id}/${sample}`;
}
