/** The laws that hold for every run, however it was disturbed. A broken law throws. */

import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { RandomStream } from '@drmas/engine/math';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { readEvents } from '../../src/method/store/event-log.js';
import { verifyRun } from '../../src/method/store/verify-run.js';
import { DiskOfProcess, type SimulatedDisk } from './simulated-disk.js';

export class BrokenLawError extends Error {}

/** A run that has ended, as its disk shows it. */
export interface EndedRun {
  readonly recipe: Recipe;
  readonly path: string;
  readonly disk: SimulatedDisk;
  readonly samples: Samples;
  /** Whether the last process was killed after the end of the run, so that no process could tidy up. */
  readonly killedAtLast: boolean;
}

/** The part that all runs of a recipe share: events, episodes and weights, without times and the order of calls. */
export interface Course {
  readonly events: readonly string[];
  readonly episodes: ReadonlyMap<string, readonly StoredEpisode[]>;
  readonly weights: ReadonlyMap<string, string>;
}

interface StoredTurn {
  readonly id: string;
  readonly policy: string;
  readonly policyVersion: number;
  readonly prompt: readonly number[];
  readonly response: readonly number[];
  readonly advantage?: number | readonly number[];
}

interface StoredEpisode {
  readonly turns: readonly StoredTurn[];
  readonly failure?: { readonly reason: string };
}

/** Reads the files of a run from the disk. */
export async function courseOf({ path, disk }: EndedRun): Promise<Course> {
  const files = new DiskOfProcess(disk, new RandomStream('reader'));
  const events = (await readEvents(files, join(path, 'events.jsonl')))
    .filter((event) => event.type !== 'warning' || event.code !== 'team.stray') // each process says it once
    .map(timeless);
  const episodes = new Map<string, readonly StoredEpisode[]>();
  const weights = new Map<string, string>();
  const last = disk.names(join(path, 'checkpoints')).at(-1);
  for (const [name, bytes] of disk.files) {
    const within = name.slice(path.length + 1);
    if (within.startsWith('episodes/')) episodes.set(within, episodesIn(bytes));
    if (within.startsWith(`checkpoints/${last}/`) && /weights\.json$|state\.json$/.test(within))
      weights.set(within, bytes.toString());
  }
  return { events, episodes, weights };
}

function timeless(event: RunEvent): string {
  const { time, seconds, phaseSeconds, ...lasting } = { seconds: 0, phaseSeconds: 0, ...event };
  return JSON.stringify(lasting);
}

/** Episodes with their turns by name: two calls that a team makes at once may come in either order. */
function episodesIn(bytes: Buffer): StoredEpisode[] {
  const lines = bytes.toString().trimEnd().split('\n');
  return lines.map((line) => {
    const { turns, ...episode } = JSON.parse(line) as StoredEpisode;
    const orderless = turns.map((turn) => ({ ...turn, turn: 0, call: 0 }));
    return { ...episode, turns: orderless.sort((a, b) => (a.id < b.id ? -1 : 1)) };
  });
}

/** The course equals the course of the undisturbed run. */
export function requireSameCourse(course: Course, expected: Course): void {
  const differ = (what: string, a: unknown, b: unknown) => {
    const [now, before] = [JSON.stringify(a), JSON.stringify(b)];
    if (now === before) return;
    const at = [...(now ?? '')].findIndex((letter, i) => letter !== before?.[i]);
    const near = (text: string | undefined) => text?.slice(Math.max(0, at - 60), at + 100);
    throw new BrokenLawError(`${what} differs from the undisturbed run's:\n  ${near(now)}\n  ${near(before)}`);
  };
  for (const [i, event] of course.events.entries()) differ(`event ${i}`, event, expected.events[i]);
  differ('the number of events', course.events.length, expected.events.length);
  differ('the list of episode files', [...course.episodes.keys()].sort(), [...expected.episodes.keys()].sort());
  for (const [name, episodes] of course.episodes) differ(name, episodes, expected.episodes.get(name));
  differ('the last checkpoint', [...course.weights].sort(), [...expected.weights].sort());
}

/** Steps follow one another, with evaluations and checkpoints at the recipe's steps, and an end. */
export function requireOrder({ recipe }: EndedRun, { events }: Course): void {
  const { steps, checkpointEvery } = recipe.training;
  const all = events.map((event) => JSON.parse(event) as { type: string; step?: number; reason?: string });
  const stepsOf = (type: string) => all.filter((event) => event.type === type).map(({ step }) => step);
  const upTo = Array.from({ length: steps }, (_, i) => i + 1);
  const expected: Record<string, readonly number[]> = {
    step: upTo,
    checkpoint: upTo.filter((step) => step === steps || step % checkpointEvery === 0),
    evaluation: [0, ...upTo].filter((step) => step === steps || step % recipe.evaluation.every === 0),
  };
  for (const [type, at] of Object.entries(expected))
    if (`${stepsOf(type)}` !== `${at}`)
      throw new BrokenLawError(`events '${type}' are of the steps ${stepsOf(type)}, expected ${at}`);
  const ends = all.filter(({ type }) => type === 'run.finished');
  if (ends.length !== 1 || all.at(-1)?.reason !== 'completed')
    throw new BrokenLawError(`expected one end, the last event: ${JSON.stringify(ends)}`);
  if (all.filter(({ type }) => type === 'run.started').length !== 1) throw new BrokenLawError('expected one beginning');
}

/** Every episode that was asked for is there; a group has all of its members. */
export function requireWholeGroups({ recipe }: EndedRun, { episodes }: Course): void {
  const { tasksPerStep, groupSize, filter } = recipe.training;
  const evaluated = recipe.evaluation.tasks * recipe.evaluation.samples;
  for (const [name, { length }] of episodes) {
    const expected = name.includes('evaluation') ? evaluated : tasksPerStep * groupSize;
    const fits = filter === undefined || name.includes('evaluation') ? length === expected : length % groupSize === 0;
    if (!fits) throw new BrokenLawError(`${name} has ${length} episodes, expected ${expected}`);
  }
}

/**
 * Each turn with an advantage was trained once, under the weights that wrote it or as many updates later as the recipe
 * lets pass, and nothing else was.
 */
export function requireTrainedOnce({ samples, recipe }: EndedRun, { episodes }: Course): void {
  const updates = Array.from({ length: 1 + (recipe.rollout?.staleness ?? 0) }, (_, later) => later);
  const ofSteps = [...episodes].filter(([name]) => name.startsWith('episodes/step-'));
  const turns = ofSteps.flatMap(([name, ofStep]) =>
    ofStep.flatMap((episode) => episode.turns.map((turn) => ({ name, turn }))),
  );
  const [teaching, others] = [true, false].map((wanted) => turns.filter(({ turn }) => teaches(turn) === wanted));
  const take = ({ policy, policyVersion, prompt, response }: StoredTurn) =>
    updates.some((later) => samples.take(policy, policyVersion + later, [...prompt, ...response]));
  for (const { name, turn } of teaching ?? [])
    if (!take(turn)) throw new BrokenLawError(`${name}: a turn of ${turn.policy} was never trained`);
  for (const { turn } of others ?? []) take(turn); // with an advantage of 0 a turn may be sent or not
  const [left] = samples.left();
  if (left !== undefined) throw new BrokenLawError(`trained what no episode holds, or holds once: ${left}`);
}

const teaches = ({ advantage = 0 }: StoredTurn) =>
  typeof advantage === 'number' ? advantage !== 0 : advantage.some((value) => value !== 0);

/** No file is left over or damaged, and no process holds the run. */
export async function requireTidy({ path, disk, killedAtLast }: EndedRun): Promise<void> {
  // A cache outlives its writers: an unfinished entry of a dead writer is removed a day later.
  const left = [...disk.files.keys(), ...disk.directories].filter(
    (name) => name.startsWith(path) && name.includes('/.tmp-'),
  );
  if (left.length > 0 && !killedAtLast) throw new BrokenLawError(`left over: ${left.join(', ')}`);
  if (disk.locks.size > 0) throw new BrokenLawError('the run is still locked');
  const parts = await verifyRun(path, new DiskOfProcess(disk, new RandomStream('verifier')));
  for (const { path: part, state, why } of parts)
    if (state === 'damaged') throw new BrokenLawError(`${part} is damaged: ${why}`);
}

// Which samples a run has trained.

/**
 * The samples of each update. An update that is made again, since the process ended before a checkpoint held it,
 * replaces the earlier note.
 */
export class Samples {
  readonly #updates = new Map<string, { readonly process: number; readonly left: string[] }>();

  note(process: number, policy: string, update: number, { tokens }: Pick<TrainingSample, 'tokens'>): void {
    const name = `${policy} ${update}`;
    const before = this.#updates.get(name);
    if (before?.process === process) before.left.push(`${tokens}`);
    else this.#updates.set(name, { process, left: [`${tokens}`] });
  }

  /** Strikes off a sample. False if the ledger has no equal one. */
  take(policy: string, update: number, tokens: readonly number[]): boolean {
    const left = this.#updates.get(`${policy} ${update}`)?.left ?? [];
    const at = left.indexOf(`${tokens}`);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  }

  /** The samples that are not struck off. */
  left(): string[] {
    return [...this.#updates].flatMap(([name, { left }]) => left.map((tokens) => `${name}: ${tokens}`));
  }
}
