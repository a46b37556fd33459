/** The checkpoints of a run by name, step or score. */
import { basename } from 'node:path';
import { isNoOptimizer } from '@drmas/engine/disk';
import { CheckpointError, isObject, RunError } from '@drmas/engine/errors';
import { codeOf } from '@drmas/engine/platform';
import { DEFAULT_SCORE } from '../../../method/index.js';
import type { Checkpoint, RunDirectory } from '../../../method/store.js';

/**
 * A checkpoint by the name of its directory or its step, or `best`; by default the last. Its files are not compared
 * with their digests.
 * @param to The purpose, for the error message
 * @throws RunError with the names of the existing checkpoints
 */
export async function checkpointOf(run: RunDirectory, name: string | undefined, to: string): Promise<Checkpoint> {
  if (name !== undefined) return checkpointNamed(run, name);
  const checkpoint = await run.latestCheckpoint();
  if (checkpoint === undefined) throw new RunError(`${run.path} has no checkpoint to ${to}`);
  return checkpoint;
}

/** @throws RunError with the names of the existing checkpoints */
export async function checkpointNamed(run: RunDirectory, name: string): Promise<Checkpoint> {
  if (name === BEST) return bestCheckpoint(run);
  const checkpoints = await run.checkpoints();
  const step = /^(?:step-)?(\d+)$/.exec(name)?.[1];
  const chosen = checkpoints.find((checkpoint) => checkpoint.step === Number(step));
  if (chosen !== undefined) return chosen;
  throw new RunError(`${run.path} has no checkpoint '${name}'; it has ${namesOf(checkpoints)}`);
}

const namesOf = (checkpoints: readonly Checkpoint[]) =>
  checkpoints.map(({ directory }) => basename(directory)).join(', ') || 'none';

const BEST = 'best';

/**
 * The checkpoint whose step has the best evaluation, by `training.bestBy` of the run's recipe; of equal ones the first.
 * @throws RunError if no step with a checkpoint was evaluated
 */
async function bestCheckpoint(run: RunDirectory): Promise<Checkpoint> {
  const { training } = run.record.resolved;
  const by = isObject(training) && typeof training.bestBy === 'string' ? training.bestBy : DEFAULT_SCORE;
  const scores = new Map<number, number>();
  for (const event of await run.events()) {
    const score = event.type === 'evaluation' ? Object.entries(event).find(([name]) => name === by)?.[1] : undefined;
    if (event.type === 'evaluation' && typeof score === 'number') scores.set(event.step, score);
  }
  const checkpoints = await run.checkpoints();
  const scored = checkpoints.flatMap((checkpoint) => {
    const score = scores.get(checkpoint.step);
    return score === undefined ? [] : [{ checkpoint, score }];
  });
  const best = Math.max(...scored.map(({ score }) => score));
  const chosen = scored.find(({ score }) => score === best);
  if (chosen !== undefined) return chosen.checkpoint;
  throw new RunError(
    `${run.path} has no checkpoint of a step that was evaluated, so none is the best; it has ${namesOf(checkpoints)}. training.keepBest writes one at each best evaluation`,
  );
}

/**
 * Finds a checkpoint as `checkpointOf` does, and compares its weights with their digests.
 * @throws RunError when there is none; CheckpointError when it is damaged
 */
export async function wholeCheckpoint(run: RunDirectory, name: string | undefined, to: string): Promise<Checkpoint> {
  const checkpoint = await checkpointOf(run, name, to);
  await run.requireWhole(checkpoint, isNoOptimizer);
  return checkpoint;
}

/** A run that trains may remove its newest checkpoint between the look for it and the mark that holds it. */
const ATTEMPTS = 5;

/**
 * Reads a checkpoint, found as `checkpointOf` does, that a run which trains does not remove meanwhile. If it has just
 * been removed, and was not named by its step, the then newest or best one is read.
 * @throws RunError if there is none; the errors of `read`
 */
export async function whileHeld<Result>(
  run: RunDirectory,
  name: string | undefined,
  to: string,
  read: (checkpoint: Checkpoint) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    const checkpoint = await checkpointOf(run, name, to);
    const release = await run.hold(checkpoint);
    try {
      return await read(checkpoint);
    } catch (error) {
      if (!isOfReading(error) || attempt === ATTEMPTS || (name !== undefined && name !== BEST)) throw error;
      if ((await run.checkpoints()).some(({ step }) => step === checkpoint.step)) throw error;
    } finally {
      await release();
    }
  }
}

/** Whether an error may come from a file that is gone. An evaluation that fails or is stopped is not repeated. */
const isOfReading = (error: unknown) =>
  error instanceof CheckpointError || error instanceof RunError || codeOf(error) === 'ENOENT';
