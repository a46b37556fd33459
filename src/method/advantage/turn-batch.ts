import { ArgumentError } from '@drmas/engine/errors';
import type { TurnRecord } from '@drmas/engine/nouns';
import { type Groups, groupBy, parentsOf, statisticsOf, within } from './groups.js';
import type { EpisodeScore } from './named-choices.js';

/** The name of an agent with its `+` replaced, so that agents that are joined by `+` have a name of their own. */
const withoutPlus = (agent: string) => agent.replace(/[%+]/g, encodeURIComponent);

/** The turns of one step with their groups, each computed once and only when it is needed. */
export class TurnBatch {
  readonly turns: readonly TurnRecord[];
  /** The reward of each turn, its tokens' rewards included. */
  readonly rewards: Float64Array; // [turns]
  readonly #groups = new Map<string, Groups>();
  #chainScores: Float64Array | undefined;

  /** @throws ArgumentError with the first turn whose reward is not a finite number */
  constructor(turns: readonly TurnRecord[]) {
    this.turns = turns;
    this.rewards = this.numbers('reward', ({ reward, tokenRewards }) =>
      tokenRewards === undefined ? reward : tokenRewards.reduce((sum, each) => sum + each, reward),
    );
  }

  /**
   * The same turns, with agents that share their statistics as one agent.
   * @param groups Lists of agents; an agent in none of them stays by itself
   */
  sharing(groups: readonly (readonly string[])[]): TurnBatch {
    if (groups.length === 0) return this;
    const names = new Map(
      groups.flatMap((agents) => agents.map((agent) => [agent, agents.map(withoutPlus).join('+')] as const)),
    );
    const nameOf = (agent: string) => names.get(agent) ?? withoutPlus(agent);
    return new TurnBatch(this.turns.map((turn) => ({ ...turn, agent: nameOf(turn.agent) })));
  }

  /** One number a turn. @throws ArgumentError with the first turn that has none */
  numbers(name: string, of: (turn: TurnRecord) => number | undefined): Float64Array {
    const values = new Float64Array(this.turns.length);
    for (let i = 0; i < values.length; i++) {
      const value = of(this.turns[i] as TurnRecord);
      if (value === undefined || !Number.isFinite(value))
        throw new ArgumentError(`${this.nameOf(i)}: ${name} must be a finite number, got ${value}`);
      values[i] = value;
    }
    return values;
  }

  /** The turn's name in error messages. */
  nameOf(index: number): string {
    const { task, episode, agent, turn } = this.turns[index] as TurnRecord;
    return `turns[${index}] (task ${task}, episode ${episode}, agent ${agent}, turn ${turn})`;
  }

  /** The step of a turn. Each turn is its own step unless `envStep` is given. */
  stepOf(index: number): number {
    const { envStep, turn } = this.turns[index] as TurnRecord;
    return envStep ?? turn;
  }

  get all(): Groups {
    return this.#grouped('all', () => 0);
  }
  get tasks(): Groups {
    return this.#grouped('tasks', (turn) => turn.task);
  }
  get agents(): Groups {
    return this.#grouped('agents', (turn) => turn.agent);
  }
  /** An episode's name is unique only within its task. */
  get episodes(): Groups {
    return this.#grouped('episodes', (turn) => turn.episode, this.tasks);
  }
  /** Turns of (task, agent). */
  get taskAgents(): Groups {
    return this.#grouped('taskAgents', (turn) => turn.agent, this.tasks);
  }
  /** The turns of an agent in an episode. */
  get agentEpisodes(): Groups {
    return this.#grouped('agentEpisodes', (turn) => turn.agent, this.episodes);
  }
  /** The chains of the turns. A turn without a chain is its own chain. */
  get chains(): Groups {
    return this.#grouped('chains', ({ chain }, i) => chain ?? -1 - i, this.agentEpisodes);
  }
  /** Turns of (task, step). Each turn is its own step unless `envStep` is given. */
  get taskSteps(): Groups {
    return this.#grouped('taskSteps', (_, i) => this.stepOf(i), this.tasks);
  }
  /** Turns of (task, agent, step). */
  get taskAgentSteps(): Groups {
    return this.#grouped('taskAgentSteps', (_, i) => this.stepOf(i), this.taskAgents);
  }
  /** Turns of (episode, step). */
  get episodeSteps(): Groups {
    return this.#grouped('episodeSteps', (_, i) => this.stepOf(i), this.episodes);
  }
  /** The turns of an agent in a step of an episode. */
  get agentSteps(): Groups {
    return this.#grouped('agentSteps', (_, i) => this.stepOf(i), this.agentEpisodes);
  }
  /** The task of each episode. */
  get taskOfEpisode(): Groups {
    return parentsOf(this.episodes, this.tasks);
  }

  /** The names of the agents, in the order of `agents`. */
  get agentNames(): string[] {
    const { of, count } = this.agents;
    const names = new Array<string>(count);
    for (let i = of.length - 1; i >= 0; i--) names[of[i] as number] = (this.turns[i] as TurnRecord).agent;
    return names;
  }

  /** An entry for every agent. */
  byAgent<T>(entryOf: (agent: number, name: string) => T): Record<string, T> {
    return Object.fromEntries(this.agentNames.map((name, k) => [name, entryOf(k, name)]));
  }

  /** One score a chain: the mean of its turns' rewards. */
  get chainScores(): Float64Array {
    this.#chainScores ??= statisticsOf(this.chains, this.rewards).mean;
    return this.#chainScores;
  }

  /** The sum of each turn's token rewards. */
  get tokenSums(): Float64Array {
    return this.numbers('tokenRewards', ({ tokenRewards = [] }) => tokenRewards.reduce((sum, each) => sum + each, 0));
  }

  /** One score an episode. @throws ArgumentError with the turn that lacks the `outcome` that the score needs */
  episodeScores(kind: EpisodeScore): Float64Array {
    const { episodes, rewards } = this;
    if (kind === 'mean') return statisticsOf(episodes, rewards).mean;
    const scores = new Float64Array(episodes.count);
    if (kind === 'first') {
      for (let i = rewards.length - 1; i >= 0; i--) scores[episodes.of[i] as number] = rewards[i] as number;
      return scores;
    }
    const outcomes = this.numbers('outcome', (turn) => turn.outcome);
    const outcome = statisticsOf(episodes, outcomes).mean;
    if (kind === 'outcome') return outcome;
    scores.set(outcome);
    for (let i = 0; i < rewards.length; i++) {
      const e = episodes.of[i] as number;
      const earned = this.turns[i]?.agentOutcome ?? (outcomes[i] as number);
      scores[e] = (scores[e] as number) + (rewards[i] as number) - earned;
    }
    return scores;
  }

  #grouped(name: string, key: (turn: TurnRecord, index: number) => string | number, outer?: Groups): Groups {
    const earlier = this.#groups.get(name);
    if (earlier !== undefined) return earlier;
    const named = groupBy(this.turns.length, (i) => key(this.turns[i] as TurnRecord, i));
    const groups = outer === undefined ? named : within(outer, named);
    this.#groups.set(name, groups);
    return groups;
  }
}
