import { join } from 'node:path';
import type { Hardware, WeightsSpec } from '@drmas/engine/contract';
import { RunError } from '@drmas/engine/errors';
import type { RunEvent, RunStarted } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import { commitsOf, loadCheckpoint, openTraining } from '../../../method/checkpoints.js';
import { firstWeights } from '../../../method/index.js';
import { assignmentOf, type Recipe } from '../../../method/recipe.js';
import { type Checkpoint, REFERENCES, type RunDirectory } from '../../../method/store.js';
import { modelPlaces, modelsByBackend } from '../open/open-backends.js';
import { openRun, publishAll } from '../open/open-run.js';
import type { RunRequest, StartedRun } from './begin-run.js';

/**
 * Checks whether this machine has the kernels of the run's start. It changes nothing: a caller that resumes from an
 * earlier checkpoint removes the later ones afterwards. Kernels of servers are known only when models are opened;
 * `resumeRun` checks them.
 * @throws RunError for other kernels, which round differently
 */
export async function requireKernels(recipe: Recipe, log: RunDirectory, host: Host): Promise<void> {
  const assignment = assignmentOf(recipe);
  const weights = firstWeights(recipe, assignment, assignment);
  const hardware: Record<string, Hardware> = {};
  const places = modelPlaces(
    recipe,
    assignment.models.map(({ name }) => name),
  );
  for (const { spec, row, names } of modelsByBackend(places)) {
    const { open, capabilities } = row;
    if (capabilities.weights !== 'here') continue;
    const backend = await open(spec, { host, models: names.map((name) => weights[name] as WeightsSpec) });
    for (const name of names) hardware[name] = backend.hardware;
    await backend.dispose();
  }
  const others = await otherKernels(log, hardware);
  if (others !== undefined) throw refusal(others);
}

const refusal = (others: string) =>
  new RunError(
    `${others}, so the resumed run would differ in its bits; --accept-changes (acceptChanges: true) resumes nevertheless`,
  );

/** @throws CheckpointError; RunError for other kernels, which are a warning in the log if changes are accepted */
export async function resumeRun(
  { recipe, tasks, log, host, openBackend }: RunRequest,
  checkpoint: Checkpoint,
  acceptChanges = false,
): Promise<StartedRun> {
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, tasks, host, { commits, openBackend });
  try {
    const hardware = Object.fromEntries(Object.entries(run.backends).map(([model, each]) => [model, each.hardware]));
    const others = await otherKernels(log, hardware);
    if (others !== undefined) {
      if (!acceptChanges) throw refusal(others);
      host.warn('run.kernels', others);
    }
    const progress = await loadCheckpoint(run, checkpoint, { optimizer: true });
    const stop = progress.stops.resume(progress.step, await log.events());
    if (stop !== undefined) log.emit(stop);
    const store = { directory: join(log.path, REFERENCES), mode: 'read' } as const;
    const training = await openTraining(run, { store, checkpoint });
    await publishAll(run);
    return { run: training, progress };
  } catch (error) {
    await run.dispose();
    throw error;
  }
}

/** The message if this machine's kernels differ from the kernels of the log; else undefined. */
async function otherKernels(
  log: RunDirectory,
  hardware: Readonly<Record<string, Hardware>>,
): Promise<string | undefined> {
  const began = (await log.events()).find((event): event is RunEvent & RunStarted => event.type === 'run.started');
  if (began === undefined) return undefined;
  const text = ({ kernels, isa }: Pick<Hardware, 'kernels' | 'isa'>) => `${kernels} (${isa})`;
  for (const [model, computing] of Object.entries(hardware)) {
    const [before, now] = [text(began.backends?.[model] ?? began.hardware), text(computing)];
    if (before !== now) return `${log.path} was started with ${before} kernels, this machine has ${now}`;
  }
  return undefined;
}
