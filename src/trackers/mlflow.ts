/** MLflow over its REST API 2.0 (mlflow.org/docs/latest/rest-api.html): one run there for each run here. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, RunError } from '../core/errors.js';
import type { RunEvent } from '../core/events.js';
import { Secret } from '../core/secret.js';
import { isObject } from '../core/validation/objects.js';
import { webRequest } from '../platform/web-request.js';
import { type Measurement, measurementsOf } from './measurements.js';
import { defineTracker, type TrackedRun } from './tracker-declaration.js';

/** Limits of `runs/log-batch`. */
const MOST_METRICS = 1000;
const MOST_PARAMETERS = 100;
const LONGEST_PARAMETER = 500;
const TIMEOUT_MS = 20_000;
const MOST_BYTES = 50_000_000;
/** Names the run on the server, in the run's directory. */
const RECORD = 'mlflow.json';

const recordSchema = z.object({ server: z.string(), runId: z.string() });
const runSchema = z.object({
  run: z.object({
    info: z.object({ run_id: z.string() }),
    data: z.object({ metrics: z.array(z.object({ key: z.string(), step: z.coerce.number().default(0) })).default([]) }),
  }),
});

export const mlflow = defineTracker({
  name: 'mlflow',
  address: 'url',
  description:
    'an MLflow server: metrics by step, settings as parameters; MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, where it wants them',
  open: async (run, address) => {
    const server = new MlflowServer(address, run.environment);
    const { runId, steps } = await server.runOf(run);
    const log = async (event: RunEvent) => {
      const metrics = measurementsOf(event).filter(({ name, step }) => step > (steps.get(metricName(name)) ?? -1));
      await server.log(runId, metrics, Date.parse(event.time));
    };
    for (const event of run.events) await log(event);
    return {
      name: 'the tracker mlflow',
      event: async (event) => {
        if (event.type !== 'run.finished') return log(event);
        const status = { completed: 'FINISHED', stopped: 'KILLED', failed: 'FAILED' }[event.reason];
        await server.ask('runs/update', { run_id: runId, status, end_time: Date.parse(event.time) });
      },
    };
  },
});

/** Names may have letters, digits and `_-. /`. */
const metricName = (name: string) => name.replaceAll(/[^\w\-. /]/g, '_').slice(0, 250);

class MlflowServer {
  readonly #url: string;
  readonly #secret: Secret | undefined;

  constructor(address: string, environment: NodeJS.ProcessEnv) {
    const url = new URL(address);
    const { MLFLOW_TRACKING_TOKEN: token } = environment;
    const user = environment.MLFLOW_TRACKING_USERNAME ?? decodeURIComponent(url.username);
    const password = environment.MLFLOW_TRACKING_PASSWORD ?? decodeURIComponent(url.password);
    const basic = user === '' ? undefined : `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    const authorization = token ? `Bearer ${token}` : basic;
    this.#secret = authorization === undefined ? undefined : new Secret(authorization);
    this.#url = `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
  }

  /** The run on the server: the one that the run's directory names, else a new one. */
  async runOf(run: TrackedRun): Promise<{ readonly runId: string; readonly steps: ReadonlyMap<string, number> }> {
    const file = join(run.path, RECORD);
    const known = await readFile(file, 'utf8').then(
      (text) => recordSchema.parse(JSON.parse(text)),
      () => undefined,
    );
    if (known?.server === this.#url) {
      const { info, data } = runSchema.parse(await this.ask(`runs/get?run_id=${known.runId}`)).run;
      await this.ask('runs/update', { run_id: info.run_id, status: 'RUNNING' });
      // What the server has is not sent again: a resumed run repeats its steps bit for bit.
      return { runId: info.run_id, steps: new Map(data.metrics.map(({ key, step }) => [key, step])) };
    }
    const { info } = runSchema.parse(
      await this.ask('runs/create', {
        experiment_id: await this.#experiment(run.recipe),
        run_name: run.name,
        start_time: Date.parse(run.events[0]?.time ?? new Date().toISOString()),
        tags: [{ key: 'drmas.run', value: run.path }],
      }),
    ).run;
    const parameters = [...leaves(run.settings)].map(([key, value]) => ({
      key,
      value: value.slice(0, LONGEST_PARAMETER),
    }));
    for (let at = 0; at < parameters.length; at += MOST_PARAMETERS)
      await this.ask('runs/log-batch', { run_id: info.run_id, params: parameters.slice(at, at + MOST_PARAMETERS) });
    await writeFile(file, `${JSON.stringify({ server: this.#url, runId: info.run_id })}\n`);
    return { runId: info.run_id, steps: new Map() };
  }

  async log(runId: string, measurements: readonly Measurement[], timestamp: number): Promise<void> {
    const metrics = measurements.map(({ name, value, step }) => ({ key: metricName(name), value, timestamp, step }));
    for (let at = 0; at < metrics.length; at += MOST_METRICS)
      await this.ask('runs/log-batch', { run_id: runId, metrics: metrics.slice(at, at + MOST_METRICS) });
  }

  async #experiment(name: string): Promise<string> {
    const schema = z.object({ experiment_id: z.string() });
    const got = await this.#send(`experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`);
    if (got.ok) return z.object({ experiment: schema }).parse(JSON.parse(got.text())).experiment.experiment_id;
    return schema.parse(await this.ask('experiments/create', { name })).experiment_id;
  }

  /** @throws RunError with what the server said */
  async ask(path: string, body?: unknown): Promise<unknown> {
    const answer = await this.#send(path, body);
    if (!answer.ok) {
      const reason = answer.text().slice(0, 300);
      throw new RunError(`the MLflow server at ${this.#url} answered ${answer.status}: ${reason}`);
    }
    return JSON.parse(answer.text());
  }

  async #send(path: string, body?: unknown) {
    try {
      return await webRequest(`${this.#url}/api/2.0/mlflow/${path}`, {
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
        headers: {
          'content-type': 'application/json',
          ...(this.#secret === undefined ? {} : { authorization: this.#secret.reveal() }),
        },
        signal: new AbortController().signal,
        timeoutMs: TIMEOUT_MS,
        mostBytes: MOST_BYTES,
        secret: this.#secret,
      });
    } catch (error) {
      throw new RunError(`the MLflow server at ${this.#url} cannot be asked: ${messageOf(error)}`);
    }
  }
}

/** The dotted paths and values of a recipe's settings. */
function* leaves(value: unknown, path = ''): Generator<[string, string]> {
  if (!isObject(value)) yield [path, typeof value === 'string' ? value : (JSON.stringify(value) ?? '')];
  else for (const [key, inner] of Object.entries(value)) yield* leaves(inner, path === '' ? key : `${path}.${key}`);
}
