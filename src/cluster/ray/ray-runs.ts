/** Runs as jobs of a Ray cluster. This process follows them and writes their events. */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BackendError, isObject, jsonObject, RunError, reasonOf, TrainingError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { excerpt, type Host, shellWord } from '@drmas/engine/host';
import type { Recipe } from '../../method/recipe.js';
import type { RunDirectory } from '../../method/store.js';
import { openObjects } from '../objects/open-objects.js';
import { S3_CLIENT, s3Place } from '../objects/s3-objects.js';
import { type ProjectPackage, projectPackage } from './project-package.js';
import { RayClient, type RayJob } from './ray-client.js';

export interface RayOptions {
  readonly url: string;
  /**
   * A folder that all nodes share, or `s3://bucket/prefix`: runs and warm starts are copied there, and jobs resume from
   * them. Without a store they stay on the nodes.
   */
  readonly store?: string | undefined;
  /** CPUs of a job; default 1. */
  readonly cpus?: number | undefined;
  /** Cards of a job: a share such as 0.5, or a whole number. Default: none, so the job sees no card. */
  readonly gpus?: number | undefined;
  readonly command?: string | undefined;
}

/** Milliseconds between two requests for a job's state. */
const POLL_MS = 1000;

/** The number of consecutive deaths of a run's jobs after which the run has failed. */
const DEATHS = 8;
const UNANSWERED = 60;
/** Lines of a job's log that are shown after a failure. */
const LAST_LINES = 6;

export class RayRuns {
  readonly #options: RayOptions;
  readonly #client: RayClient;
  readonly #store: string | undefined;
  readonly #packages = new Map<string, Promise<ProjectPackage>>();
  readonly #active = new Set<string>();

  constructor(options: RayOptions) {
    this.#options = options;
    this.#client = new RayClient(options.url);
    const { store } = options;
    this.#store = store !== undefined && isFolder(store) ? resolve(store) : store;
  }

  /** @throws RunError if no Ray answers; RecipeError, StoreError if the store cannot be used */
  async check(): Promise<void> {
    await this.#client.version();
    if (this.#store !== undefined) await openObjects(this.#store);
  }

  /** The jobs that had not ended at the last request. */
  get active(): readonly string[] {
    return [...this.#active];
  }

  async stop(): Promise<void> {
    for (const id of this.#active) if ((await this.#client.job(id)) !== undefined) await this.#client.stop(id);
    this.#active.clear();
  }

  /**
   * Makes a run on the cluster instead of in this process: submits its job, or finds the job that was submitted before,
   * and writes the job's events as they arrive. If a node dies, the job is submitted again; it resumes from its last
   * checkpoint and repeats the events before it.
   * @throws TrainingError if the job fails or is stopped, jobs die too often, or a log lacks the end of its run;
   * RunError if the project cannot be packed; BackendError if Ray refuses a request, or cannot read the log of a job
   * that succeeded
   */
  readonly executeRun = async ({ tasks }: Pick<Recipe, 'tasks'>, log: RunDirectory, host: Host): Promise<void> => {
    const taskFiles = [tasks.train, tasks.test].flatMap(({ settings }) => filesOf(settings));
    const project = await this.#project(log.record.recipe.source, taskFiles);
    const name = jobName(log, project);
    const written: RunEvent[] = [];
    for (let attempt = 1, died = 0; ; attempt++) {
      const id = `${name}-${attempt}`;
      const before = await this.#answered(() => this.#client.job(id), host);
      if (before?.status === 'FAILED' || before?.status === 'STOPPED') continue; // from an earlier study
      this.#active.add(id);
      if (before === undefined) await this.#submit(id, log, project, host);
      await log.begin();
      const seen = new JobLog((event, index) => {
        const earlier = written[index];
        if (earlier !== undefined) return requireSame(earlier, event, id);
        written.push(event);
        log.write(event);
      });
      const { status, message, driver_exit_code: code } = await this.#follow(id, seen, host);
      if (status === 'SUCCEEDED') {
        if (written.some((event) => event.type === 'run.finished' && event.reason === 'completed')) return;
        throw new TrainingError(`the job ${id} succeeded, but Ray's log of it lacks the end of the run`);
      }
      if (status === 'STOPPED') throw new TrainingError(`the job ${id} was stopped`);
      if (code === 1 || code === 2) {
        const reason = seen.last.join(' | ') || (message ?? 'no reason given');
        throw new TrainingError(`the job ${id} failed: ${reason}`);
      }
      if (++died === DEATHS)
        throw new TrainingError(`the jobs of ${log.name} died ${died} times; check the nodes of ${this.#options.url}`);
      host.notify(`the job ${id} died (${excerpt(message ?? 'no message', 400)}): submitted again`);
    }
  };

  #project(source: string, taskFiles: readonly string[]): Promise<ProjectPackage> {
    const key = JSON.stringify([source, taskFiles]);
    const known = this.#packages.get(key);
    if (known !== undefined) return known;
    const { command } = this.#options;
    const peer = isFolder(this.#store) ? undefined : S3_CLIENT;
    const project = projectPackage(source, { command, peer, taskFiles });
    this.#packages.set(key, project);
    return project;
  }

  async #submit(id: string, log: RunDirectory, project: ProjectPackage, host: Host): Promise<void> {
    const { name, bytes, recipe, command } = project;
    // For each job, because Ray removes unused packages.
    await this.#answered(() => this.#client.upload(name, bytes), host);
    const { cpus = 1, gpus } = this.#options;
    const store = this.#store;
    const run = `${id}/${id.replace(/-\d+$/, '')}`; // jobs of one node may share a working directory
    const kept = store === undefined ? [] : ['--store', store];
    const overrides = log.record.recipe.overrides.flatMap((override) => ['--set', override]);
    const words = ['train', recipe, '--run', run, '--resume', '--json', '--threads', `${cpus}`, ...kept, ...overrides];
    const request = {
      id,
      cpus,
      gpus,
      packageName: name,
      entrypoint: `${command} ${words.map(shellWord).join(' ')}`,
      environment: environmentOf(store),
      metadata: { drmas_run: log.name },
    };
    await this.#client.submit(request, host.signal);
  }

  /** Reads a job's log until the job ends. After an interruption, the job itself continues. */
  async #follow(id: string, seen: JobLog, host: Host): Promise<RayJob> {
    for (;;) {
      const { job, logs } = await this.#answered(() => this.#state(id), host);
      const over = job.status !== 'PENDING' && job.status !== 'RUNNING';
      if (logs !== undefined) seen.read(logs, over);
      if (over) {
        this.#active.delete(id);
        return job;
      }
      await sleep(POLL_MS, undefined, { signal: host.signal }).catch(() => {});
    }
  }

  /** @throws TrainingError if Ray does not know the job */
  async #state(id: string): Promise<{ readonly job: RayJob; readonly logs: string | undefined }> {
    const job = await this.#client.job(id);
    if (job === undefined) throw new TrainingError(`Ray does not know the job ${id} any more`);
    const logs = await this.#client.logs(id).catch((error: unknown) => {
      // The log of a running job is read again, and the log of a job that failed may be gone with its node.
      if (job.status === 'SUCCEEDED' || !(error instanceof BackendError)) throw error;
      return undefined;
    });
    return { job, logs };
  }

  /** Asks Ray again while it does not answer, or answers with an error: for about a minute. */
  async #answered<T>(ask: () => Promise<T>, { signal, notify }: Host): Promise<T> {
    for (let unanswered = 0; ; ) {
      signal.throwIfAborted();
      try {
        const answer = await ask();
        if (unanswered > 0) notify('Ray answers again');
        return answer;
      } catch (error) {
        if (error instanceof TrainingError || error instanceof RunError || ++unanswered > UNANSWERED) throw error;
        if (unanswered === 1) notify(`Ray does not answer (${reasonOf(error)}); asking again`);
      }
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** The files that a task source's settings name; a source of several sources has settings for each. */
function filesOf(settings: unknown): string[] {
  if (!isObject(settings)) return [];
  const { file, demonstrationFile, ...others } = settings;
  const named = [file, demonstrationFile].filter((path) => typeof path === 'string');
  return [...named, ...Object.values(others).flatMap(filesOf)];
}

const isFolder = (store: string | undefined) => store === undefined || s3Place(store) === undefined;

/** Variables of S3 that are not secret: region and address. In Ray everybody can read the environment of a job. */
const WHERE = ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'];

/**
 * Further environment variables of a job. With a shared folder as store, caches are in it, so that nothing is
 * downloaded twice.
 */
function environmentOf(store: string | undefined): Record<string, string> {
  if (store === undefined) return {};
  if (isFolder(store)) return { DRMAS_CACHE: join(store, 'cache') };
  return Object.fromEntries(WHERE.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

/** The name of a run's jobs, from the name of its directory and its content, so that a resumed study finds them. */
function jobName(log: RunDirectory, { name }: ProjectPackage): string {
  const { source, overrides } = log.record.recipe;
  const key = createHash('sha256')
    .update(JSON.stringify([resolve(log.path), name, source, overrides]))
    .digest('hex');
  return `drmas-${log.name.replaceAll(/[^\w.-]+/g, '-')}-${key.slice(0, 12)}`;
}

class JobLog {
  last: string[] = [];
  readonly #onEvent: (event: RunEvent, index: number) => void;
  #characters = 0;
  #events = 0;

  constructor(onEvent: (event: RunEvent, index: number) => void) {
    this.#onEvent = onEvent;
  }

  /** Reads the new part of a job's output. Reads the last line only if it is complete, or the job has ended. */
  read(all: string, over: boolean): void {
    const end = over ? all.length : all.lastIndexOf('\n') + 1;
    const lines = all.slice(this.#characters, end).split('\n');
    this.#characters = Math.max(end, this.#characters);
    for (const line of lines) {
      const event = eventOf(line);
      if (event !== undefined) this.#onEvent(event, this.#events++);
      else if (line.trim() !== '') this.last = [...this.last, line.trim()].slice(-LAST_LINES);
    }
  }
}

function eventOf(line: string): RunEvent | undefined {
  const value = line.startsWith('{"') ? jsonObject(line) : undefined;
  return typeof value?.type === 'string' && typeof value.time === 'string' ? (value as never) : undefined;
}

/** @throws TrainingError if a resumed run emits other events than before */
function requireSame(before: RunEvent, now: RunEvent, id: string): void {
  const place = (event: RunEvent) => `${event.type} ${'step' in event ? (event.step ?? '') : ''}`;
  if (place(before) !== place(now))
    throw new TrainingError(`the job ${id} does not repeat its run: ${place(now)} in place of ${place(before)}`);
}
