/**
 * MLflow over its REST API 2.0 (mlflow.org/docs/latest/rest-api.html): one run there for each run here, and another one
 * after each accepted change of the recipe.
 */

import { createHash } from 'node:crypto';
import { issuesText, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { defineTracker, Secret, type TrackedRun } from '@drmas/engine/host';
import { z } from 'zod';
import { type Measurement, measurementsOf } from './measurements.js';
import { recordedRun, recordRun, rootOf, settingLeaves, TrackerServer } from './tracker-server.js';

/** Limits of `runs/log-batch`. */
const MOST_METRICS = 1000;
const MOST_PARAMETERS = 100;
const LONGEST_PARAMETER = 500;
/** The file in the run's directory that names the run on the server. */
const RECORD = 'mlflow.json';
/** Events that a run may log and still not begin. */
const BEFORE_BEGINNING: readonly RunEvent['type'][] = ['preparing', 'warning'];

const runSchema = z.object({
  run: z.object({
    info: z.object({ run_id: z.string(), lifecycle_stage: z.string().optional() }),
    data: z.object({ metrics: z.array(z.object({ key: z.string(), step: z.coerce.number().default(0) })).default([]) }),
  }),
});

const experimentSchema = z.object({ experiment_id: z.string() });

export const mlflow = defineTracker({
  name: 'mlflow',
  address: 'url',
  description:
    'an MLflow server: metrics by step, settings as parameters; MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, if the server needs them',
  open: async (run, address) => {
    const server = new MlflowServer(address, run.environment);
    const { runId, steps } = await server.runOf(run);
    const log = async (event: RunEvent) => {
      const metrics = measurementsOf(event).filter(({ name, step }) => step > (steps.get(acceptedName(name)) ?? -1));
      await server.log(runId, metrics, Date.parse(event.time));
    };
    for (const event of run.events) await log(event);
    let begun = false;
    return {
      name: 'the tracker mlflow',
      event: async (event) => {
        begun ||= !BEFORE_BEGINNING.includes(event.type);
        if (event.type !== 'run.finished') return log(event);
        const status = { completed: 'FINISHED', stopped: 'KILLED', failed: 'FAILED' }[event.reason];
        await server.finish(runId, status, Date.parse(event.time));
      },
      // A run that could not begin logs no end.
      close: async () => {
        if (!begun) await server.finish(runId, 'FAILED', Date.now());
      },
    };
  },
});

/** The most characters of a name that servers of all versions accept. */
const LONGEST_NAME = 250;

/**
 * A name that MLflow accepts: letters, digits and `_-. /`, and no part of its path is empty or leads elsewhere. A name
 * that has to change ends with a digest, so that two names stay two.
 */
export function acceptedName(name: string): string {
  const parts = name.split('/').map((part) => part.replaceAll(/[^\w\-. ]/g, '_').replace(/^\.{0,2}$/, '_'));
  const accepted = parts.join('/');
  if (accepted === name && name.length <= LONGEST_NAME) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${accepted.slice(0, LONGEST_NAME - digest.length - 1)}-${digest}`;
}

class MlflowServer {
  readonly #server: TrackerServer;

  constructor(address: string, environment: NodeJS.ProcessEnv) {
    const url = new URL(address);
    const { MLFLOW_TRACKING_TOKEN: token } = environment;
    const user = environment.MLFLOW_TRACKING_USERNAME ?? decoded(url.username, address);
    const password = environment.MLFLOW_TRACKING_PASSWORD ?? decoded(url.password, address);
    const basic = user === '' ? undefined : `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    const authorization = token ? `Bearer ${token}` : basic;
    this.#server = new TrackerServer({
      name: 'the MLflow server',
      url: rootOf(address),
      headers: authorization === undefined ? {} : { authorization },
      secret: authorization === undefined ? undefined : new Secret(authorization),
    });
  }

  /** The run on the server: the one named in the run's directory if it is still there, else a new one. */
  async runOf(run: TrackedRun): Promise<{ readonly runId: string; readonly steps: ReadonlyMap<string, number> }> {
    const known = await recordedRun(run, RECORD, this.#server.url);
    const found = known === undefined ? undefined : await this.#present(known);
    if (found !== undefined) {
      const { info, data } = found;
      await this.#ask('runs/update', { run_id: info.run_id, status: 'RUNNING' });
      // Metrics that the server has are not sent again: a resumed run repeats its steps bit for bit.
      return { runId: info.run_id, steps: new Map(data.metrics.map(({ key, step }) => [key, step])) };
    }
    const created = {
      experiment_id: await this.#experiment(run.recipe),
      run_name: run.name,
      start_time: Date.parse(run.events[0]?.time ?? new Date().toISOString()),
      tags: [{ key: 'drmas.run', value: run.path }],
    };
    const { info } = (await this.#read(runSchema, 'runs/create', created)).run;
    const parameters = [...settingLeaves(run.settings)].map(([key, value]) => ({
      key: acceptedName(key),
      value: value.slice(0, LONGEST_PARAMETER),
    }));
    for (let at = 0; at < parameters.length; at += MOST_PARAMETERS)
      await this.#ask('runs/log-batch', { run_id: info.run_id, params: parameters.slice(at, at + MOST_PARAMETERS) });
    await recordRun(run, RECORD, { server: this.#server.url, runId: info.run_id });
    return { runId: info.run_id, steps: new Map() };
  }

  /** The run with an id; undefined if somebody has deleted it. */
  async #present(id: string): Promise<z.output<typeof runSchema>['run'] | undefined> {
    const path = `runs/get?run_id=${id}`;
    const answer = await this.#server.send(pathOf(path));
    if (answer.status === 404) return undefined;
    const { run } = this.#checked(runSchema, path, this.#server.content(pathOf(path), answer));
    return run.info.lifecycle_stage === 'deleted' ? undefined : run;
  }

  async log(runId: string, measurements: readonly Measurement[], timestamp: number): Promise<void> {
    const metrics = measurements.map(({ name, value, step }) => ({ key: acceptedName(name), value, timestamp, step }));
    for (let at = 0; at < metrics.length; at += MOST_METRICS)
      await this.#ask('runs/log-batch', { run_id: runId, metrics: metrics.slice(at, at + MOST_METRICS) });
  }

  async finish(runId: string, status: string, endTime: number): Promise<void> {
    await this.#ask('runs/update', { run_id: runId, status, end_time: endTime });
  }

  async #experiment(name: string): Promise<string> {
    const path = `experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`;
    const answer = await this.#server.send(pathOf(path));
    if (!answer.ok) return (await this.#read(experimentSchema, 'experiments/create', { name })).experiment_id;
    const schema = z.object({ experiment: experimentSchema });
    return this.#checked(schema, path, this.#server.content(pathOf(path), answer)).experiment.experiment_id;
  }

  #ask(path: string, body?: unknown, options?: { readonly once: boolean }): Promise<unknown> {
    return this.#server.ask(pathOf(path), body, options);
  }

  /** The value that a server answers. A body makes something new, and is posted only once. */
  async #read<Schema extends z.ZodType>(schema: Schema, path: string, body?: unknown): Promise<z.output<Schema>> {
    return this.#checked(schema, path, await this.#ask(path, body, { once: body !== undefined }));
  }

  /** @throws RunError if the server answers otherwise than MLflow */
  #checked<Schema extends z.ZodType>(schema: Schema, path: string, answer: unknown): z.output<Schema> {
    const { data, error } = schema.safeParse(answer);
    if (error === undefined) return data;
    throw new RunError(
      `the server at ${this.#server.url} does not answer /${pathOf(path)} as MLflow does: ${issuesText(error.issues)}`,
    );
  }
}

/** A name or a password in an address. @throws RunError without the text itself */
function decoded(text: string, address: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RunError(
      `the name and the password for the MLflow server at ${rootOf(address)} are malformed: write %25 for a %`,
    );
  }
}

const pathOf = (path: string) => `api/2.0/mlflow/${path}`;
