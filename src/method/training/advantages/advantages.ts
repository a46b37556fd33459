import {
  agentReward,
  type Episode,
  type EpisodeGroup,
  inCanonicalOrder,
  type Message,
  type Turn,
  type TurnRecord,
  trainedTurns,
  turnReward,
} from '@drmas/engine/nouns';
import type { EstimatorState, OpenEstimator } from '../../advantage/define-estimator.js';
import { estimateStep, type StepEstimate } from '../../advantage/estimate.js';
import type { SignalsByTurn, TurnSignals } from '../run/signal.js';
import { chainsOf } from '../samples/chains.js';

export interface TurnAdvantage {
  readonly episode: Episode;
  readonly turn: Turn;
  readonly reward: number;
  /** One number for all response tokens, or one for each [R]. */
  readonly advantage: number | readonly number[];
  /** The critic's target for each token [R], if the estimator uses a critic. */
  readonly returns?: readonly number[];
}

export interface StepAdvantages {
  /**
   * The turns that policies learn from, in the order of tasks and samples. Within an episode they have the
   * estimator's order.
   */
  readonly turns: readonly TurnAdvantage[];
  readonly byTurn: ReadonlyMap<Turn, TurnAdvantage>;
  readonly episodes: readonly Episode[];
  /** The advantages of each episode's turns. Undefined for turns of frozen agents. */
  readonly byEpisode: ReadonlyMap<Episode, readonly (number | readonly number[] | undefined)[]>;
  readonly records: readonly TurnRecord[];
  /** The predicted inflation (Lemma 4.2) by agent. Agents without a group with enough spread are missing. */
  readonly inflation: Readonly<Record<string, number>>;
  readonly ownShare: StepEstimate['ownShare'];
  readonly calls: StepEstimate['calls'];
  readonly state: EstimatorState;
}

export interface AdvantageSettings {
  readonly estimator: OpenEstimator;
  readonly agents: Readonly<Record<string, { readonly rewardWeight: number }>>;
}

/**
 * Estimates the advantages of a step's turns. Turns of frozen agents are ignored: they count neither in a task's
 * statistics nor in an episode's score. Then an agent's advantages are multiplied by its weight, and the signals'
 * advantages of tokens are added.
 * @param signals Numbers of turns that the episodes do not contain
 * @param before The estimator's state after the previous step
 * @throws ArgumentError with the turn that lacks an input of the estimator
 */
export function stepAdvantages(
  { estimator, agents }: AdvantageSettings,
  groups: readonly EpisodeGroup[],
  signals: SignalsByTurn = new Map(),
  before: EstimatorState = {},
): StepAdvantages {
  const episodes = groups.flatMap((group) => group.episodes);
  // The rule `first` scores an episode by its first turn, so the order of the calls matters.
  const byFirst = estimator.choices.episodeScore === 'first';
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
  const byTokens = episodes.some(hasReasoning);
  const records = pairs.map(({ episode, turn }) => ({
    ...turnRecord(episode, turn, byTokens),
    chain: chains.get(turn) as number,
    stepReward: stepRewards.get(episode)?.get(stepOf(turn)) as number,
    agentStepReward: agentStepRewards.get(episode)?.get(turn.agent)?.get(stepOf(turn)) as number,
    ...numbersOf(signals.get(turn)),
  }));
  const others = episodes.filter((episode) => trainedTurns(episode).length === 0).map(({ score }) => score.team);
  const { advantages, returns, inflation, ownShare, calls, state } = estimateStep(records, estimator, before, others);
  const turns = pairs.map(({ episode, turn }, i) => ({
    episode,
    turn,
    reward: (records[i] as TurnRecord).reward,
    advantage: plus(
      weighted(advantages[i] as number | number[], agents[turn.agent]?.rewardWeight ?? 1),
      signals.get(turn)?.tokenAdvantages,
    ),
    ...(returns === undefined ? {} : { returns: returns[i] as number[] }),
  }));
  const byTurn = new Map<Turn, TurnAdvantage>(turns.map((each) => [each.turn, each]));
  const byEpisode = new Map(
    episodes.map((episode) => [episode, episode.turns.map((turn) => byTurn.get(turn)?.advantage)]),
  );
  return { turns, byTurn, episodes, byEpisode, records, inflation, ownShare, calls, state };
}

function numbersOf({ baseline, tokenRewards, values, signals }: TurnSignals = {}): Partial<TurnRecord> {
  return {
    ...(baseline === undefined ? {} : { baseline }),
    ...(tokenRewards === undefined ? {} : { tokenRewards }),
    ...(values === undefined ? {} : { values: Array.from(values) }),
    ...(signals === undefined ? {} : { signals }),
  };
}

const weighted = (advantage: number | readonly number[], weight: number) =>
  typeof advantage === 'number' ? advantage * weight : advantage.map((a) => a * weight);

const plus = (advantage: number | readonly number[], more: readonly number[] | undefined) =>
  more?.map((one, t) => one + (typeof advantage === 'number' ? advantage : (advantage[t] as number))) ?? advantage;

export function rewardRecord(episode: Episode, turn: Turn): TurnRecord {
  return {
    task: episode.task.id,
    episode: episodeName(episode),
    agent: turn.agent,
    turn: turn.turn,
    reward: turnReward(episode, turn),
  };
}

/** The step of each turn. Each call is its own step, unless the team named the steps. */
const stepOf = ({ envStep, turn }: Turn) => envStep ?? turn;

const rewardsOfSteps = (episode: Episode) => sumsOfSteps(trainedTurns(episode), episode.score.team);

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
 * The reward of each step: its turns' own rewards minus their penalties. The last step also gets the outcome.
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

function turnRecord(
  episode: Episode,
  turn: Turn,
  byTokens: boolean,
): Omit<TurnRecord, 'stepReward' | 'agentStepReward' | 'chain'> {
  return {
    ...rewardRecord(episode, turn),
    outcome: episode.score.team,
    ...(turn.agent in episode.score.agents ? { agentOutcome: agentReward(episode, turn.agent) } : {}),
    ...partsOf(episode, turn.agent),
    length: turn.response.length,
    observation: turn.observation ?? stateOf(turn, byTokens),
    ...(turn.envStep === undefined ? {} : { envStep: turn.envStep }),
  };
}

/**
 * Whether models with tokens reason in an episode. A chat template may show them their earlier reasoning, or leave it
 * out. The reasoning of a server is in no prompt with tokens, unless a message has it. Tokens would then count for
 * nothing but ids of calls, which some templates show, and which differ in each episode.
 */
const hasReasoning = ({ turns }: Episode): boolean =>
  turns.some(
    ({ endpoint, reasoning, messages }) =>
      endpoint === undefined && [{ reasoning }, ...messages].some((each) => each.reasoning !== undefined),
  );

/** @param byTokens Whether the prompt's tokens count too, because messages do not tell if it has their reasoning */
const stateOf = ({ messages, tools, prompt }: Turn, byTokens: boolean): string => {
  const calls = new Map<string, number>();
  for (const { id } of messages.flatMap(({ toolCalls = [] }) => toolCalls)) calls.set(id, calls.size);
  return [
    ...messages.map((message) => observed(message, calls)),
    ...(tools === undefined ? [] : [`tools: ${JSON.stringify(tools)}`]),
    ...(byTokens ? [`tokens: ${prompt.join(' ')}`] : []),
  ].join('\n');
};

/**
 * A message as part of the state that an agent saw.
 * @param calls The place of each call by its id: ids differ from episode to episode, and results may come in any order
 */
function observed(
  { role, name, content, toolCalls = [], toolCallId = '' }: Message,
  calls: Map<string, number>,
): string {
  const answers = calls.get(toolCallId);
  const asked = toolCalls.map((call) => ` ${call.name}(${JSON.stringify(call.arguments)})`);
  const place = answers === undefined ? '' : ` #${answers}`;
  return `${role}${name === undefined ? '' : ` ${name}`}${place}: ${JSON.stringify(content)}${asked.join('')}`;
}

function partsOf({ score }: Episode, agent: string): Pick<TurnRecord, 'parts'> {
  const parts = agent in score.agents ? score.agentParts?.[agent] : score.parts;
  return parts === undefined || Object.keys(parts).length === 0 ? {} : { parts };
}

/** The name of an episode in events: `task/sample`. */
export function episodeName({ task, sample }: Episode): string {
  return `${task.id}/${sample}`;
}
