/** MLflow over its REST API 2.0 (mlflow.org/docs/latest/rest-api.html): one run there for each run here. */
import { z } from 'zod';
import type { RunEvent } from '../../base/events.js';
import { defineTracker, Secret, type TrackedRun } from '../../base/host.js';
import { type Measurement, measurementsOf } from './measurements.js';
import { recordedRun, recordRun, rootOf, settingLeaves, TrackerServer } from './tracker-server.js';

/** Limits of `runs/log-batch`. */
const MOST_METRICS = 1000;
const MOST_PARAMETERS = 100;
const LONGEST_PARAMETER = 500;
/** The file in the run's directory that names the run on the server. */
const RECORD = 'mlflow.json';

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
    'an MLflow server: metrics by step, settings as parameters; MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, if the server needs them',
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
        await server.finish(runId, status, Date.parse(event.time));
      },
    };
  },
});

/** Names may have letters, digits and `_-. /`. */
const metricName = (name: string) => name.replaceAll(/[^\w\-. /]/g, '_').slice(0, 250);

class MlflowServer {
  readonly #server: TrackerServer;

  constructor(address: string, environment: NodeJS.ProcessEnv) {
    const url = new URL(address);
    const { MLFLOW_TRACKING_TOKEN: token } = environment;
    const user = environment.MLFLOW_TRACKING_USERNAME ?? decodeURIComponent(url.username);
    const password = environment.MLFLOW_TRACKING_PASSWORD ?? decodeURIComponent(url.password);
    const basic = user === '' ? undefined : `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
    const authorization = token ? `Bearer ${token}` : basic;
    this.#server = new TrackerServer({
      name: 'the MLflow server',
      url: rootOf(address),
      headers: authorization === undefined ? {} : { authorization },
      secret: authorization === undefined ? undefined : new Secret(authorization),
    });
  }

  /** The run on the server: the one named in the run's directory, else a new one. */
  async runOf(run: TrackedRun): Promise<{ readonly runId: string; readonly steps: ReadonlyMap<string, number> }> {
    const known = await recordedRun(run.path, RECORD, this.#server.url);
    if (known !== undefined) {
      const { info, data } = runSchema.parse(await this.#ask(`runs/get?run_id=${known}`)).run;
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
    const { info } = runSchema.parse(await this.#ask('runs/create', created, { once: true })).run;
    const parameters = [...settingLeaves(run.settings)].map(([key, value]) => ({
      key,
      value: value.slice(0, LONGEST_PARAMETER),
    }));
    for (let at = 0; at < parameters.length; at += MOST_PARAMETERS)
      await this.#ask('runs/log-batch', { run_id: info.run_id, params: parameters.slice(at, at + MOST_PARAMETERS) });
    await recordRun(run.path, RECORD, { server: this.#server.url, runId: info.run_id });
    return { runId: info.run_id, steps: new Map() };
  }

  async log(runId: string, measurements: readonly Measurement[], timestamp: number): Promise<void> {
    const metrics = measurements.map(({ name, value, step }) => ({ key: metricName(name), value, timestamp, step }));
    for (let at = 0; at < metrics.length; at += MOST_METRICS)
      await this.#ask('runs/log-batch', { run_id: runId, metrics: metrics.slice(at, at + MOST_METRICS) });
  }

  async finish(runId: string, status: string, endTime: number): Promise<void> {
    await this.#ask('runs/update', { run_id: runId, status, end_time: endTime });
  }

  async #experiment(name: string): Promise<string> {
    const schema = z.object({ experiment_id: z.string() });
    const got = await this.#server.send(pathOf(`experiments/get-by-name?experiment_name=${encodeURIComponent(name)}`));
    if (got.ok) return z.object({ experiment: schema }).parse(JSON.parse(got.text())).experiment.experiment_id;
    return schema.parse(await this.#ask('experiments/create', { name }, { once: true })).experiment_id;
  }

  #ask(path: string, body?: unknown, options?: { readonly once: boolean }): Promise<unknown> {
    return this.#server.ask(pathOf(path), body, options);
  }
}

const pathOf = (path: string) => `api/2.0/mlflow/${path}`;
