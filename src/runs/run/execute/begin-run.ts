import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '@drmas/engine/contract';
import { contentHash } from '@drmas/engine/disk';
import { DrmasError, TrainingError } from '@drmas/engine/errors';
import type { RunStarted } from '@drmas/engine/events';
import type { Host } from '@drmas/engine/host';
import { contentText, type Split, type TaskOrigin, type TaskSet } from '@drmas/engine/nouns';
import { packageVersion } from '@drmas/engine/platform';
import { openTraining, warmStart } from '../../../method/checkpoints.js';
import {
  backendsOf,
  evaluatedTasks,
  firstProgress,
  type OpenRun,
  type Progress,
  type Tasks,
  type TrainingRun,
} from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { REFERENCES, type RunDirectory } from '../../../method/store.js';
import type { OpenBackend } from '../open/open-backends.js';
import { openRun, publishAll } from '../open/open-run.js';

export interface RunRequest {
  readonly recipe: Recipe;
  readonly tasks: Tasks;
  readonly log: RunDirectory;
  readonly host: Host;
  readonly openBackend?: OpenBackend | undefined;
}

/** A run that is ready for its first, or its next, step of reinforcement. The caller disposes of it. */
export interface StartedRun {
  readonly run: TrainingRun;
  readonly progress: Progress;
}

/** Opens a run, logs its first events and gives its policies the warm start. */
export async function beginRun({ recipe, tasks, log, host, openBackend }: RunRequest): Promise<StartedRun> {
  const preparing = preparingHost(host, log);
  const run = await openRun(recipe, tasks, preparing.host, { openBackend });
  preparing.opened();
  try {
    await log.begin();
    logStart({ recipe: recipe.name, isProgram: recipe.code === undefined }, run, log);
    const warmed = recipe.warmStart === undefined ? undefined : await warmStart(run, log, recipe.warmStart);
    const training = await openTraining(run, { store: { directory: join(log.path, REFERENCES), mode: 'write' } });
    await publishAll(run);
    return { run: training, progress: firstProgress(run, warmed) };
  } catch (error) {
    await run.dispose();
    throw log.begun ? failureOf(error) : error;
  }
}

/** A host whose messages the log keeps too, for those who watch the run from elsewhere, until `opened` is called. */
function preparingHost(host: Host, log: RunDirectory): { readonly host: Host; readonly opened: () => void } {
  let opening = true;
  const notify = (message: string) => {
    if (opening) log.emit({ type: 'preparing', message });
    host.notify(message);
  };
  return {
    host: { ...host, notify },
    opened: () => {
      opening = false;
    },
  };
}

function logStart(
  { recipe, isProgram }: { readonly recipe: string; readonly isProgram: boolean },
  { team, seed, assignment, backends, models, tasks, evaluation, trained, warnings }: OpenRun,
  log: RunDirectory,
): void {
  const [first, ...others] = backendsOf({ backends });
  const { server, ...kernels } = facts(first as Backend);
  log.emit({
    type: 'run.started',
    recipe,
    seed,
    versions: { drmas: packageVersion(), node: process.version },
    hardware: { cores: cpus().length, ...kernels },
    ...(server === undefined ? {} : { server }),
    ...(others.length === 0
      ? {}
      : { backends: Object.fromEntries(Object.entries(backends).map(([name, backend]) => [name, facts(backend)])) }),
    success: team.success !== undefined,
    ...dataOf(tasks, isProgram),
    evaluated: evaluatedTasks(tasks.test, evaluation.tasks),
    learning: Object.fromEntries(
      trained.flatMap(({ name, settings, agents }) => {
        if (settings === undefined) return [];
        const { optimizer, clipNorm, entropyCoefficient } = settings;
        const { weightDecay = 0 } = 'weightDecay' in optimizer ? optimizer : {};
        const decay = weightDecay > 0 ? { weightDecay } : {};
        return [[name, { optimizer: optimizer.type, clipNorm, entropyCoefficient, ...decay, agents }] as const];
      }),
    ),
    parameters: Object.fromEntries(
      assignment.trained.flatMap(({ name }) => {
        const parameters = models[name]?.parameters;
        return parameters === undefined ? [] : [[name, parameters]];
      }),
    ),
  });
  for (const warning of warnings) log.emit({ type: 'warning', ...warning });
  for (const { endpoint, agents } of assignment.endpoints) {
    if ('constant' in endpoint) continue;
    log.emit({
      type: 'warning',
      code: 'endpoint.nondeterministic',
      message: `${agents.join(', ')}: ${endpoint.type === 'text' ? endpoint.name : `${endpoint.model} at ${endpoint.url}`} may answer the same request differently; this run cannot be repeated bit for bit`,
    });
  }
}

/**
 * The data sets on hubs and the files of tasks, each once, with the files that both splits read.
 * @param digests Whether sets that no file has get a digest: no run records the code of a program that defined them
 */
export function dataOf({ train, test }: Tasks, digests: boolean): Pick<RunStarted, 'data'> {
  const data = new Map<string, TaskOrigin>();
  for (const origin of [...(train.origins ?? []), ...(test.origins ?? [])])
    data.set(origin.name, { ...origin, files: { ...data.get(origin.name)?.files, ...origin.files } });
  const own = digests ? [...digestOf('train', train), ...digestOf('test', test)] : [];
  const all = [...data.values(), ...own];
  return all.length === 0 ? {} : { data: all };
}

/** The first tasks of a source, and the first characters of their texts, whose digest tells that it has changed. */
const DIGESTED = { tasks: 256, characters: 2 ** 22 };

/** A digest of the first tasks of the sets that no file has. Empty if there are none, or they cannot be read. */
function digestOf(split: Split, set: TaskSet): TaskOrigin[] {
  try {
    const own = firstTasks(set);
    return own.length === 0 ? [] : [{ name: `${set.name} (${split})`, files: { '': contentHash(own) } }];
  } catch {
    return [];
  }
}

function firstTasks(set: TaskSet): (string | string[])[] {
  if (set.parts !== undefined) return set.parts.flatMap(firstTasks);
  if (set.origins !== undefined || set.fitted !== undefined) return [];
  const texts: string[] = [];
  // A task may have images: its text has a number for each of their bytes.
  for (let i = 0, room = DIGESTED.characters; i < Math.min(set.size, DIGESTED.tasks) && room > 0; i++) {
    const text = contentText(set.at(i)) ?? '';
    texts.push(text);
    room -= text.length;
  }
  return [String(set.size), texts];
}

function facts({ hardware: { kernels, isa, notice, server } }: Backend) {
  // A server's notice describes the server, which `server` does already.
  if (server !== undefined) return { kernels, isa, server };
  return { kernels, isa, ...(notice === undefined ? {} : { notice }) };
}

/** After work has begun, an error is no longer the request's fault: the run has failed. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof DrmasError) || error.exitCode === 1) return error;
  return Object.assign(new TrainingError(`${error.name}: ${error.message}`), { cause: error });
}
