/** One world: a recipe, the durations of all calls, and the failures with their times, all from one seed. */

import { messageOf } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { RandomStream } from '@drmas/engine/math';
import { tinyDecoder } from '@drmas/engine/model';
import { defineRecipe, type RecipeDefinition, type RecipeInput } from '../../src/method/recipe/define.js';
import { RunDirectory } from '../../src/method/store/run-directory.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { executeRun } from '../../src/runs/run/execute/execute-run.js';
import { requestContinuation, rewindRun } from '../../src/runs/run/request/continuation.js';
import { requestRecipe, runRecord } from '../../src/runs/run/request/new-run.js';
import { hostileTeam, numbers } from './hostile-team.js';
import {
  BrokenLawError,
  type Course,
  courseOf,
  type EndedRun,
  requireOrder,
  requireSameCourse,
  requireTidy,
  requireTrainedOnce,
  requireWholeGroups,
  Samples,
} from './laws.js';
import { ScriptedBackend } from './scripted-backend.js';
import { type DiskFault, DiskOfProcess, SimulatedDisk } from './simulated-disk.js';
import type { VirtualTime } from './virtual-time.js';

const PATH = '/runs/simulated';
/** The longest time that a call of a tool or of the backend takes. */
const SLOWEST_MS = 20;
/** The changing calls of an undisturbed run, about. */
const CALLS = 90;
/** The virtual time of an undisturbed run, about. */
const DURATION_MS = 1500;

/** Recipes with which the loop treats episodes, updates and files differently. */
const variants: readonly Partial<RecipeInput>[] = [
  {},
  { advantage: { type: 'grpo' }, assign: 'shared' },
  { training: { filter: { type: 'equal-outcomes', refill: { maxRounds: 2 } } } },
  { training: { failedEpisodes: 'zero', keepCheckpoints: 1 } },
  { advantage: { type: 'remax' } },
  { advantage: { type: 'drmas', singleton: 'ema' }, training: { checkpointEvery: 2, keepEpisodes: 2 } },
  { policies: { planner: { kl: { coefficient: 0.1 } } } },
  { training: { steps: 4, checkpointEvery: 4 }, evaluation: { every: 1 } },
  { rollout: { staleness: 2 }, training: { steps: 5, checkpointEvery: 3 } },
  { advantage: { type: 'gae' }, training: { checkpointEvery: 2 } },
  { warmStart: { steps: 4, batch: 2 } },
  { warmStart: { steps: 3, batch: 2, share: 'policy' }, rollout: { staleness: 1 } },
];

export const VARIANTS = variants.length;

/** The differences that two runs of a recipe may have. */
interface Pace {
  /** Waits as the world wants at this moment. */
  readonly delay: () => Promise<void>;
}

function definitionOf(variant: number, hostility: number, pace: Pace): RecipeDefinition {
  const { training, evaluation, ...rest } = variants[variant] ?? {};
  return defineRecipe({
    name: 'simulated',
    team: hostileTeam(pace.delay, hostility),
    tasks: numbers,
    model: tinyDecoder({ width: 8, layers: 1, heads: 1, feedForward: 8, context: 256, tokenizer: { type: 'bytes' } }),
    training: {
      steps: 3,
      tasksPerStep: 2,
      groupSize: 3,
      checkpointEvery: 1,
      maxTurns: 8,
      episodeTimeoutMs: 1000,
      ...training,
    },
    evaluation: { every: 2, tasks: 2, samples: 1, ...evaluation },
    ...rest,
  } as RecipeInput);
}

/** The disturbances of one process of a world. */
export interface Disturbance {
  readonly fault?: DiskFault;
  /** The virtual time after which the process is interrupted. */
  readonly interruptAfterMs?: number;
}

export interface World {
  readonly seed: number;
  readonly variant: number;
  /** The share of hostile episodes. */
  readonly hostility: number;
  /** One for each process but the last, which nothing disturbs. */
  readonly disturbances: readonly Disturbance[];
}

/** The world of a number. */
export function worldOf(seed: number, number: number): World {
  const random = new RandomStream('world', seed, number);
  const disturbances = Array.from({ length: random.integer(0, 3) }, (): Disturbance => {
    const at = random.integer(1, CALLS);
    const kind = random.pick(['kill', 'kill', 'full', 'lasting', 'interrupt'] as const);
    return kind === 'interrupt' ? { interruptAfterMs: random.uniform() * DURATION_MS } : { fault: { at, kind } };
  });
  return {
    seed: random.word(),
    variant: random.integer(0, VARIANTS - 1),
    hostility: random.pick([0, 0.2, 0.5]),
    disturbances,
  };
}

/** One process that trains or resumes the run, to its end. */
async function processOf({
  files,
  clock,
  signal,
  definition,
  backend,
}: {
  readonly files: DiskOfProcess;
  readonly clock: VirtualTime;
  readonly signal: AbortSignal;
  readonly definition: RecipeDefinition;
  readonly backend: () => ScriptedBackend;
}): Promise<void> {
  const host: Host = {
    threads: 1,
    files,
    clock,
    signal,
    protect: (work) => work(),
    notify: () => {},
    warn: () => {},
  };
  const options = { files, clock };
  const openBackend = async () => backend();
  if (!(await files.exists(`${PATH}/recipe.json`))) {
    const request = await requestRecipe(definition);
    const log = await RunDirectory.create(PATH, runRecord(request), options);
    return executeRun(request.recipe, log, host, { openBackend }).finally(() => log.close());
  }
  const log = await RunDirectory.open(PATH, options);
  await log.lock();
  try {
    const request = await requestContinuation(log, { recipe: definition });
    const checkpoint = await rewindRun(log, request, { notify: () => {} });
    await executeRun(request.recipe, log, host, { checkpoint, openBackend });
  } finally {
    await log.close();
  }
}

/** Whether the log has the run's end. The process may still be killed afterwards. */
function isComplete({ files }: SimulatedDisk): boolean {
  const whole = files.get(`${PATH}/events.jsonl`)?.toString().split('\n').slice(0, -1) ?? [];
  return whole.at(-1)?.includes('"reason":"completed"') === true;
}

/** Lives through a world. @throws BrokenLawError when a run is lost, stuck, or leaves something behind */
export async function live(world: World, time: VirtualTime): Promise<EndedRun> {
  const random = new RandomStream('times', world.seed);
  const disk = new SimulatedDisk();
  const samples = new Samples();
  const delay = async () => {
    if (random.chance(0.7)) await time.sleep(random.uniform() * SLOWEST_MS);
  };
  const definition = definitionOf(world.variant, world.hostility, { delay });
  let killedAtLast = false;
  for (const [number, { fault, interruptAfterMs }] of [...world.disturbances, {}].entries()) {
    const files = new DiskOfProcess(disk, random, fault);
    const controller = new AbortController();
    const interruption = new Error('interrupted');
    const work = processOf({
      files,
      clock: time,
      signal: controller.signal,
      definition,
      backend: () => new ScriptedBackend({ files, delay, trained: (...of) => samples.note(number, ...of) }),
    });
    if (interruptAfterMs !== undefined) void time.sleep(interruptAfterMs).then(() => controller.abort(interruption));
    await time.passUntilSettled(work, () => files.dead);
    if (files.dead) {
      work.catch(() => {});
      time.forget();
      killedAtLast = isComplete(disk);
      if (killedAtLast) break;
      continue;
    }
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    await time.passUntilSettled(time.sleep(10 * SLOWEST_MS), () => false); // tools and calls that were cut short
    const interruptions = interruptAfterMs === undefined || controller.signal.aborted ? 0 : 1;
    if (time.waiting > interruptions)
      throw new BrokenLawError(`${time.waiting} timers wait after the end of process ${number + 1}`);
    time.forget();
    if (error === undefined || isComplete(disk)) break;
    const expected = fault === undefined ? error === interruption : messageOf(error).includes('ENOSPC');
    if (!expected)
      throw Object.assign(new BrokenLawError(`process ${number + 1} ended: ${messageOf(error)}`), { cause: error });
  }
  return { recipe: resolveRecipe(definition, {}), path: PATH, disk, samples, killedAtLast };
}

/** The courses of the undisturbed runs. */
const undisturbed = new Map<string, Course>();

async function expectedCourse(world: World, time: VirtualTime): Promise<Course> {
  const name = `${world.variant} ${world.hostility}`;
  const known = undisturbed.get(name);
  if (known !== undefined) return known;
  const run = await live({ ...world, seed: 0, disturbances: [] }, time);
  const course = await within(time, courseOf(run));
  undisturbed.set(name, course);
  return course;
}

/** Waits for work that looks at a disk after the end. */
async function within<T>(time: VirtualTime, work: Promise<T>): Promise<T> {
  await time.passUntilSettled(work, () => false);
  return work;
}

/** Lives through a world and holds it against the laws. @throws BrokenLawError */
export async function judge(world: World, time: VirtualTime): Promise<void> {
  const run = await live(world, time);
  const course = await within(time, courseOf(run));
  requireOrder(run, course);
  requireWholeGroups(run, course);
  if (run.recipe.training.keepEpisodes === true) requireTrainedOnce(run, course);
  await within(time, requireTidy(run));
  requireSameCourse(course, await expectedCourse(world, time));
}
