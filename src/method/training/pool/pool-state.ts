/**
 * Pools: which earlier version of a policy plays a task, and how the trained agents scored against each. Pure functions
 * of the seed, the step and the results so far.
 *
 * `prioritised` follows the priorities of AlphaStar's league (Vinyals et al., Nature 575, 2019): the probability of a
 * version grows with (1 - win rate)^2.
 */

import type { Step } from '@drmas/engine/events';
import { mean, RandomStream } from '@drmas/engine/math';
import { agentReward, type Episode, type EpisodeGroup, type Task, trainedTurns } from '@drmas/engine/nouns';
import { z } from 'zod';
import type { PoolSpec } from '../../recipe/frozen.js';

const versionSchema = z.object({
  /** The step after which the policy had these weights. */
  step: z.int().min(0),
  /** The tasks that met it, and the sum of their scores. Older tasks count less. */
  tasks: z.number(),
  sum: z.number(),
});

const poolSchema = z.object({
  /** The oldest first; at least one. */
  versions: z.array(versionSchema).min(1),
  /** The lowest and the highest score of a task so far. Absent before the first. */
  range: z.tuple([z.number(), z.number()]).optional(),
});

/** The state of the pools in a checkpoint, by their names. A pool before its first step is missing. */
export const poolsSchema = z.record(z.string(), poolSchema).default({});

type PoolState = Readonly<z.output<typeof poolSchema>>;
export type PoolStates = Readonly<Record<string, PoolState>>;

/** A pool by its name in the assignment. */
interface NamedPool {
  readonly name: string;
  readonly spec: PoolSpec;
}

/** The episodes of a step. */
interface PlayedStep {
  readonly step: number;
  readonly all: readonly EpisodeGroup[];
}

const FIRST: PoolState = { versions: [{ step: 0, tasks: 0, sum: 0 }] };

const stateOf = (states: PoolStates, name: string): PoolState => states[name] ?? FIRST;

/** The versions that a pool keeps, the oldest first. */
export const versionsIn = (states: PoolStates, name: string): number[] =>
  stateOf(states, name).versions.map(({ step }) => step);

/** The version of each pool that plays a task of a step. */
export function drawVersions(
  pools: readonly NamedPool[],
  states: PoolStates,
  { seed, step }: { readonly seed: number; readonly step: number },
  task: Task,
): Readonly<Record<string, number>> {
  return Object.fromEntries(
    pools.map(({ name, spec }) => {
      const state = stateOf(states, name);
      const random = new RandomStream('pool', seed, step, name, task.id);
      return [name, drawn(state, weightsOf(spec, state), random.uniform())];
    }),
  );
}

function weightsOf({ draw }: PoolSpec, { versions, range }: PoolState): number[] {
  if (draw === 'latest') return versions.map((_, i) => Number(i === versions.length - 1));
  if (draw === 'uniform') return versions.map(() => 1);
  const [low, high] = range ?? [0, 0];
  return versions.map(({ tasks, sum }) => {
    // One task more, with a score in the middle: a version without results has a win rate of one half.
    const rate = high > low ? ((sum - low * tasks) / (high - low) + 0.5) / (tasks + 1) : 0.5;
    return (1 - rate) ** 2;
  });
}

function drawn({ versions }: PoolState, weights: readonly number[], uniform: number): number {
  let left = uniform * weights.reduce((sum, weight) => sum + weight, 0);
  const chosen = weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
  return (versions.at(chosen) as PoolState['versions'][number]).step; // -1, by rounding, is the last
}

/** The meetings of a step with the versions of each pool. */
export function meetings(pools: readonly NamedPool[], { all }: Pick<PlayedStep, 'all'>): NonNullable<Step['pools']> {
  return Object.fromEntries(
    pools.map(({ name }) => {
      const byVersion = new Map<number, { episodes: number; scores: number[] }>();
      for (const { episodes } of all) {
        const met = episodes.flatMap((episode) => meeting(episode, name) ?? []);
        const [first] = met;
        if (first === undefined) continue;
        const before = byVersion.get(first.version) ?? { episodes: 0, scores: [] };
        const score = mean(met.map(({ score }) => score));
        byVersion.set(first.version, {
          episodes: before.episodes + met.length,
          scores: [...before.scores, score],
        });
      }
      const rows = [...byVersion].sort(([a], [b]) => a - b).map(([version, met]) => ({ version, ...met }));
      return [name, rows];
    }),
  );
}

/**
 * The version that played in an episode, and the mean reward of the trained agents. Undefined if the episode failed, or
 * if either was not called.
 */
function meeting(episode: Episode, pool: string): { readonly version: number; readonly score: number } | undefined {
  const version = episode.turns.find(({ policy }) => policy === pool)?.policyVersion;
  const agents = [...new Set(trainedTurns(episode).map(({ agent }) => agent))].sort();
  if (version === undefined || episode.failure !== undefined || agents.length === 0) return undefined;
  return { version, score: mean(agents.map((agent) => agentReward(episode, agent))) };
}

/** The state of the pools after a step: with its results, and with the new version that it may bring. */
export function poolsAfter(pools: readonly NamedPool[], before: PoolStates, played: PlayedStep): PoolStates {
  const met = meetings(pools, played);
  return Object.fromEntries(
    pools.map(({ name, spec: { every, keep } }) => {
      const { versions, range } = stateOf(before, name);
      const rows = met[name] ?? [];
      const scores = [...(range ?? []), ...rows.flatMap((row) => row.scores)];
      const fading = 2 ** (-1 / every); // the weight of results halves with each new version
      const counted = versions.map(({ step, tasks, sum }) => {
        const scores = rows.find(({ version }) => version === step)?.scores ?? [];
        return {
          step,
          tasks: tasks * fading + scores.length,
          sum: scores.reduce((total, score) => total + score, sum * fading),
        };
      });
      const added = played.step % every === 0 ? [{ step: played.step, tasks: 0, sum: 0 }] : [];
      return [
        name,
        {
          versions: [...counted, ...added].slice(-keep),
          ...(scores.length === 0 ? {} : { range: [Math.min(...scores), Math.max(...scores)] as [number, number] }),
        },
      ];
    }),
  );
}
