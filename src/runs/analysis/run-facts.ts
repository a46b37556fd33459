/** The facts about a run in a list. They are collected event by event in bounded memory. */

import { isObject } from '@drmas/engine/errors';
import type { RunEvent, RunFinished, ScoredEvaluation } from '@drmas/engine/events';
import { type Headline, headlineOf, isScored } from '@drmas/engine/nouns';

/** A score with its confidence interval, as fractions. */
export interface ScorePoint {
  readonly step: number;
  readonly averageAtK: number;
  readonly low: number;
  readonly high: number;
  /** The mean reward. Null in logs of versions that did not record it. */
  readonly reward: number | null;
}

/** The facts in a run's files. Null if the files do not contain them. */
export interface RunFacts {
  readonly recipe: string | null;
  readonly team: string | null;
  readonly estimator: string | null;
  readonly seed: number | null;
  /** The time of the first event, ISO 8601. */
  readonly started: string | null;
  readonly latest: string | null;
  /** How the run ended. `unfinished` if it is still running or was interrupted. */
  readonly state: RunFinished['reason'] | 'unfinished';
  readonly steps: number;
  readonly plannedSteps: number | null;
  readonly warmStart: { readonly step: number; readonly steps: number } | null;
  readonly first: ScorePoint | null;
  readonly last: ScorePoint | null;
  readonly headline: Headline;
  readonly reward: number | null;
  /** Mean rewards of training steps. In a long run only every n-th. */
  readonly rewards: readonly number[];
  readonly agents: readonly string[];
  /** Numbers of spikes with skipped updates, of failed episodes and of warnings. */
  readonly spikes: number;
  readonly failedEpisodes: number;
  readonly warnings: number;
}

/** The most rewards that are stored. Beyond that, every second one is dropped. */
const MOST_REWARDS = 240;

export class RunFactsReader {
  readonly #recipe: Readonly<Record<string, unknown>>;
  #facts: RunFacts;
  #rewards: number[] = [];
  /** The headline follows from the evaluations, and from whether the team has a function `success`. */
  #evaluations: ReturnType<typeof shortened>[] = [];
  #saysSuccess: boolean | undefined;
  /** A reward is stored at each multiple of this step. */
  #stride = 1;

  constructor(recipe: Readonly<Record<string, unknown>>) {
    this.#recipe = recipe;
    this.#facts = emptyFacts(recipe);
  }

  get facts(): RunFacts {
    return { ...this.#facts, rewards: this.#rewards.slice() };
  }

  /** Starts again, for a log that was restored to a checkpoint. */
  reset(): void {
    this.#facts = emptyFacts(this.#recipe);
    this.#rewards = [];
    this.#evaluations = [];
    this.#saysSuccess = undefined;
    this.#stride = 1;
  }

  /** @param event Of a log, which may be damaged: fields of another type count as absent */
  add(event: RunEvent): void {
    const facts = this.#facts;
    const time = textOr(event.time);
    const next = { ...facts, started: facts.started ?? time, latest: time ?? facts.latest };
    this.#facts = next;
    switch (event.type) {
      case 'run.started':
        this.#saysSuccess ??= event.success;
        this.#facts = { ...next, seed: facts.seed ?? numberOr(event.seed), state: 'unfinished' };
        return;
      case 'warmup':
        this.#facts = { ...next, warmStart: { step: numberOr(event.step) ?? 0, steps: numberOr(event.steps) ?? 0 } };
        return;
      case 'step': {
        const reward = numberOr(event.reward?.mean);
        const step = numberOr(event.step) ?? facts.steps;
        const agents = new Set([...facts.agents, ...Object.keys(event.agents ?? {})]);
        this.#facts = { ...next, steps: step, warmStart: null, reward, agents: [...agents].sort() };
        this.#keep(step, reward);
        return;
      }
      case 'evaluation': {
        if (event.split !== 'test' || !isScored(event)) {
          this.#facts = { ...next, warmStart: null };
          return;
        }
        this.#evaluations.push(shortened(event));
        const score = scorePoint(event);
        const headline = headlineOf(this.#evaluations, this.#saysSuccess);
        this.#facts = { ...next, warmStart: null, first: facts.first ?? score, last: score, headline };
        return;
      }
      case 'spike':
      case 'skipped':
        this.#facts = { ...next, spikes: facts.spikes + 1 };
        return;
      case 'episode.failed':
        this.#facts = { ...next, failedEpisodes: facts.failedEpisodes + 1 };
        return;
      case 'warning':
        this.#facts = { ...next, warnings: facts.warnings + 1 };
        return;
      case 'run.finished':
        this.#facts = { ...next, state: event.reason ?? 'unfinished' }; // a damaged log may lack it
        return;
      default: // A list does not show checkpoints and events of later versions.
    }
  }

  #keep(step: number, reward: number | null): void {
    if (reward === null || step % this.#stride !== 0) return;
    this.#rewards.push(reward);
    if (this.#rewards.length <= MOST_REWARDS) return;
    this.#rewards = this.#rewards.filter((_, i) => i % 2 === 1);
    this.#stride *= 2;
  }
}

function emptyFacts(recipe: Readonly<Record<string, unknown>>): RunFacts {
  const { name, team, seed, advantage, training, agents } = recipe;
  return {
    recipe: textOr(name),
    team: textOr(team),
    estimator: textOr(isObject(advantage) ? advantage.type : undefined),
    seed: numberOr(seed),
    started: null,
    latest: null,
    state: 'unfinished',
    steps: 0,
    plannedSteps: numberOr(isObject(training) ? training.steps : undefined),
    warmStart: null,
    first: null,
    last: null,
    headline: 'score',
    reward: null,
    rewards: [],
    agents: isObject(agents) ? Object.keys(agents).sort() : [],
    spikes: 0,
    failedEpisodes: 0,
    warnings: 0,
  };
}

const textOr = (value: unknown) => (typeof value === 'string' ? value : null);
const numberOr = (value: unknown) => (typeof value === 'number' ? value : null);

const shortened = ({ averageAtK, reward, parts }: ScoredEvaluation) => ({
  averageAtK,
  ...(reward === undefined ? {} : { reward }),
  ...(parts && { parts }),
});

function scorePoint({ step, averageAtK, interval, reward }: ScoredEvaluation): ScorePoint {
  return { step, averageAtK, low: interval.low, high: interval.high, reward: reward ?? null };
}
