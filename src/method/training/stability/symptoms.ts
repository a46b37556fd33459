/**
 * Slow declines over several steps: an agent's first steps are compared with its latest steps. Learning itself lowers
 * entropy and makes siblings agree. So these symptoms count only if the agent's reward has not risen.
 */

import type { AgentStep, Step, Warning } from '@drmas/engine/events';
import { percent, significant } from '@drmas/engine/host';
import { mean, standardDeviation } from '@drmas/engine/math';
import { type Episode, turnReward } from '@drmas/engine/nouns';
import { z } from 'zod';

/** Number of steps at the beginning, and at the end, that are averaged. */
const STEPS = 5;

const READINGS = {
  reward: ({ rewardMean }) => rewardMean,
  rewardStd: ({ rewardStd }) => rewardStd,
  /** The mean and the spread of its rewards by episode: an episode that fails after many turns counts once. */
  earned: (_, earned) => (earned.length === 0 ? undefined : mean(earned)),
  earnedStd: (_, earned) => (earned.length === 0 ? undefined : standardDeviation(earned)),
  /** Of all turns. The entropy of an update is of the turns that differ from their siblings. */
  entropy: ({ sampledEntropy, entropy }) => sampledEntropy ?? entropy,
  length: ({ responseTokens }) => responseTokens,
  spread: ({ health }) => health?.groupSpread,
  duplicates: ({ health }) => health?.duplicates,
  /** The share of turns that are invalid and have a positive advantage. */
  garbage: ({ invalid, health }) => health && invalid * (health.rewardedInvalid ?? 0),
} as const satisfies Record<string, (agent: AgentStep, earned: readonly number[]) => number | undefined>;

/** Means of the measurements. NaN if no step measured it, so that no comparison holds. */
type AgentReadings = Readonly<Record<keyof typeof READINGS, number>>;

interface Symptom {
  readonly code: string;
  readonly shows: (first: AgentReadings, last: AgentReadings) => boolean;
  readonly message: (first: AgentReadings, last: AgentReadings) => string;
}

/**
 * Whether the reward has risen by at least a quarter of its first spread, so that the decline is acceptable.
 * Checkpoints of earlier versions have only the rewards of turns.
 */
const paidOff = (first: AgentReadings, last: AgentReadings) =>
  Number.isNaN(first.earned + last.earned)
    ? last.reward > first.reward + 0.25 * first.rewardStd
    : last.earned > first.earned + 0.25 * first.earnedStd;

const SYMPTOMS: readonly Symptom[] = [
  {
    code: 'entropy-collapse',
    shows: (first, last) => last.entropy < 0.1 * first.entropy && !paidOff(first, last),
    message: (first, last) =>
      `entropy fell from ${significant(first.entropy)} to ${significant(last.entropy)} nats a token without more reward; a lower learning rate or an entropy bonus keeps it exploring`,
  },
  {
    code: 'length-collapse',
    shows: (first, last) => last.length < 0.5 * first.length && !paidOff(first, last),
    message: (first, last) =>
      `responses shrank from ${significant(first.length)} to ${significant(last.length)} tokens without more reward; check whether empty answers get a reward`,
  },
  {
    code: 'echo-trap',
    shows: (first, last) =>
      last.spread < 0.5 * first.spread && last.duplicates > first.duplicates + 0.2 && !paidOff(first, last),
    message: (first, last) =>
      `rewards within a group spread ${significant(last.spread)} instead of ${significant(first.spread)} and ${percent(last.duplicates, 0)} of the turns repeat a sibling's (${percent(first.duplicates, 0)} at first) without more reward; filter the groups by variance or raise the temperature`,
  },
  {
    code: 'rewarded-invalid',
    shows: (first, last) => last.garbage > 0.05 && last.garbage > 2 * first.garbage,
    message: (first, last) =>
      `${percent(last.garbage, 0)} of the turns are invalid but have a positive advantage (${percent(first.garbage, 0)} at first); the team's reward or a small invalidPenalty allows it`,
  },
];

const NAMES = Object.keys(READINGS) as (keyof typeof READINGS)[];
const readings = z.array(z.partialRecord(z.enum(NAMES), z.number()));

/** The state of an agent in a checkpoint: its first and latest measurements, and the symptoms that still show. */
export const symptomState = z.object({ first: readings, last: readings, shown: z.array(z.string()) });

export type SymptomState = z.output<typeof symptomState>;

export class Symptoms {
  readonly #agents: Map<string, SymptomState>;

  constructor(state: Readonly<Record<string, SymptomState>> = {}) {
    this.#agents = new Map(Object.entries(state));
  }

  get state(): Readonly<Record<string, SymptomState>> {
    return Object.fromEntries(this.#agents);
  }

  /** @param episodes The episodes of the step whose rewards count */
  judge(step: Pick<Step, 'step' | 'agents'>, episodes: readonly Episode[] = []): Warning[] {
    return Object.entries(step.agents).flatMap(([agent, ofAgent]) => {
      if (ofAgent.frozen === true) return []; // training does not change it
      const before = this.#agents.get(agent) ?? { first: [], last: [], shown: [] };
      const reading = readingOf(ofAgent, earnedBy(agent, episodes));
      if (before.first.length < STEPS) {
        this.#agents.set(agent, { ...before, first: [...before.first, reading] });
        return [];
      }
      const last = [...before.last, reading].slice(-STEPS);
      const [then, now] = [averageOf(before.first), averageOf(last)];
      const showing = last.length < STEPS ? [] : SYMPTOMS.filter(({ shows }) => shows(then, now));
      this.#agents.set(agent, { ...before, last, shown: showing.map(({ code }) => code) });
      return showing
        .filter(({ code }) => !before.shown.includes(code))
        .map(({ code, message }) => ({
          type: 'warning' as const,
          code,
          step: step.step,
          agent,
          message: `step ${step.step}, ${agent}: ${message(then, now)}`,
        }));
    });
  }
}

/** The mean reward of the agent's turns in each episode in which it wrote one. */
const earnedBy = (agent: string, episodes: readonly Episode[]) =>
  episodes.flatMap((episode) => {
    const rewards = episode.turns.flatMap((turn) => (turn.agent === agent ? [turnReward(episode, turn)] : []));
    return rewards.length === 0 ? [] : [mean(rewards)];
  });

/** The measurements of a step, without those that it lacks: a step that teaches an agent nothing has no entropy. */
const readingOf = (agent: AgentStep, earned: readonly number[]) =>
  Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = READINGS[name](agent, earned);
      return value === undefined ? [] : [[name, value]];
    }),
  ) as Partial<AgentReadings>;

function averageOf(readings: readonly Partial<AgentReadings>[]): AgentReadings {
  const meanOf = (name: keyof AgentReadings) => {
    const values = readings.flatMap((reading) => reading[name] ?? []);
    return values.length === 0 ? Number.NaN : mean(values);
  };
  return Object.fromEntries(NAMES.map((name) => [name, meanOf(name)])) as AgentReadings;
}
