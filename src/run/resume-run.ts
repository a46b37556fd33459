import { join } from 'node:path';
import { backendOf } from '../backends/registry.js';
import type { Hardware } from '../contract/capabilities.js';
import { RunError } from '../core/errors.js';
import type { RunEvent, RunStarted } from '../core/events.js';
import type { Host } from '../core/host.js';
import { assignmentOf } from '../recipe/assignment.js';
import type { Recipe } from '../recipe/recipe.js';
import type { Checkpoint } from '../store/checkpoint-files.js';
import type { RunDirectory } from '../store/run-directory.js';
import { REFERENCES } from '../store/run-files.js';
import { commitsOf, loadCheckpoint } from '../training/checkpoint.js';
import { openCritics } from '../training/update/critics.js';
import { openReferences } from '../training/update/references.js';
import type { RunRequest, StartedRun } from './begin-run.js';
import { modelsByBackend } from './open-backends.js';
import { openRun, publishAll } from './open-run.js';

/** Raised when a run would go on with kernels that round otherwise than those that began it. */
export class KernelError extends RunError {}

/**
 * Looks whether this machine's kernels are those that began a run, before anything of the run is changed: whoever goes
 * on from an earlier checkpoint gives up the later ones. Servers say what they compute with when models are opened;
 * `resumeRun` looks at that.
 * @throws KernelError
 */
export async function requireKernels(recipe: Recipe, log: RunDirectory, host: Host): Promise<void> {
  const { models } = assignmentOf(recipe);
  const hardware: Record<string, Hardware> = {};
  for (const { spec, names } of modelsByBackend(
    recipe,
    models.map(({ name }) => name),
  )) {
    const { open, capabilities } = backendOf(spec);
    if (capabilities.weights !== 'here') continue;
    const backend = await open(spec, { host, models: [] });
    for (const name of names) hardware[name] = backend.hardware;
    await backend.dispose();
  }
  const others = await otherKernels(log, hardware);
  if (others !== undefined) throw refusal(others);
}

const refusal = (others: string) =>
  new KernelError(
    `${others}, so that the run would not go on bit for bit; --accept-changes (acceptChanges: true) goes on with them`,
  );

/**
 * Opens a run as its checkpoint left it.
 * @throws CheckpointError; KernelError unless changes are accepted, which is then a warning in the log
 */
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
    const references = await openReferences(run, { directory: join(log.path, REFERENCES), mode: 'read' });
    const critics = await openCritics(run, checkpoint);
    await publishAll(run);
    return { run: { ...run, references, critics }, progress };
  } catch (error) {
    await run.dispose();
    throw error;
  }
}

/** What to say where other kernels compute than those that the log begins with. */
async function otherKernels(
  log: RunDirectory,
  hardware: Readonly<Record<string, Hardware>>,
): Promise<string | undefined> {
  const began = (await log.events()).find((event): event is RunEvent & RunStarted => event.type === 'run.started');
  if (began === undefined) return undefined;
  const text = ({ kernels, isa }: Pick<Hardware, 'kernels' | 'isa'>) => `${kernels} (${isa})`;
  for (const [model, computing] of Object.entries(hardware)) {
    const [before, now] = [text(began.backends?.[model] ?? began.hardware), text(computing)];
    if (before !== now) return `${log.path} was begun with ${before} kernels, here are ${now}`;
  }
  return undefined;
}
