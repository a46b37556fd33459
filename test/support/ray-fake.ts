/** The head of a Ray cluster as its Jobs API answers: each job is a process of this machine. Shapes as recorded. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheDirectory, listen } from '@drmas/engine/platform';
import { Hono } from 'hono';
import type { RayJob } from '../../src/cluster/ray/ray-client.js';

interface FakeJob {
  readonly child: ChildProcess;
  readonly entrypoint: string;
  readonly environment: Readonly<Record<string, string>>;
  printed: string;
  logs: string | undefined;
  state: RayJob;
}

export interface RayFake {
  readonly url: string;
  readonly packages: ReadonlyMap<string, Uint8Array>;
  /** Jobs by their id, with all that they printed. */
  readonly jobs: ReadonlyMap<string, Pick<FakeJob, 'entrypoint' | 'environment' | 'printed'>>;
  /** Takes the node of the next job so named along as soon as that job prints a text; the job's log goes with it. */
  killOnce(name: string, text: string): void;
  /** Loses the node of the next job with this name in the same way, but the job on it continues. */
  cutOffOnce(name: string, text: string): void;
  /** Fails so many requests for the log of a job with this name, once it has succeeded. Before, the log is empty. */
  failLog(name: string, status: 404 | 503, times: number): void;
  /** Refuses so many further jobs, as a cluster does whose nodes are just coming up. */
  refuse(times: number): void;
  close(): Promise<void>;
}

/** @param unpack Gives the files of a package to a job's working directory */
export async function rayFake(unpack: (bytes: Uint8Array) => ReadonlyMap<string, string>): Promise<RayFake> {
  const packages = new Map<string, Uint8Array>();
  const jobs = new Map<string, FakeJob>();
  const root = await mkdtemp(join(tmpdir(), 'drmas-ray-'));
  let doomed: { readonly name: string; readonly text: string; readonly goesOn: boolean } | undefined;
  let refusals = 0;
  let unread: { readonly name: string; readonly status: 404 | 503; times: number } | undefined;
  const app = new Hono();
  app.use(async (c, next) => {
    const isBrowser = c.req.header('sec-fetch-mode') !== undefined && c.req.method !== 'GET';
    if (isBrowser) return c.text(`'${c.req.method}' method not allowed for browser traffic.`, 405);
    return next();
  });
  app.get('/api/version', (c) => c.json({ version: '4', ray_version: '2.60.0', ray_commit: 'x', session_name: 's' }));
  app.get('/api/packages/gcs/:name', (c) => (packages.has(c.req.param('name')) ? c.body(null, 200) : c.notFound()));
  app.put('/api/packages/gcs/:name', async (c) => {
    packages.set(c.req.param('name'), new Uint8Array(await c.req.arrayBuffer()));
    return c.body(null, 200);
  });
  app.post('/api/jobs/', async (c) => {
    const { submission_id: id, entrypoint, runtime_env } = await c.req.json();
    if (refusals-- > 0) return c.text('Exception: No available agent to submit job, please try again later.', 500);
    if (jobs.has(id)) return c.text(`Job with submission_id ${id} already exists.`, 500);
    const folder = await mkdtemp(join(root, 'job-'));
    const bytes = packages.get(runtime_env.working_dir.replace('gcs://', ''));
    if (bytes === undefined) return c.text('there is no such package', 500);
    for (const [path, text] of unpack(bytes)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const cache = await mkdtemp(join(root, 'cache-')); // each job is on a node of its own
    await symlink(join(cacheDirectory(), 'native'), join(cache, 'native'));
    const environment = runtime_env.env_vars;
    const child = spawn('bash', ['-c', entrypoint], {
      cwd: folder,
      env: { ...process.env, DRMAS_CACHE: cache, ...environment },
      detached: true,
    });
    const state = { status: 'RUNNING', driver_exit_code: null } as const;
    const job: FakeJob = { child, entrypoint, environment, printed: '', logs: '', state };
    jobs.set(id, job);
    const hear = (part: Buffer) => {
      if (job.logs === undefined) return;
      job.printed += part.toString();
      job.logs = job.printed;
      if (doomed === undefined || !id.includes(doomed.name) || !job.logs.includes(doomed.text)) return;
      const { goesOn } = doomed;
      doomed = undefined;
      job.logs = undefined;
      job.state = { status: 'FAILED', message: 'Job supervisor actor died unexpectedly.', driver_exit_code: null };
      if (!goesOn) void end(job);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('close', (code) => {
      if (job.state.status !== 'RUNNING') return;
      const status = code === 0 ? 'SUCCEEDED' : 'FAILED';
      job.state = { status, driver_exit_code: code, message: `Job entrypoint command exited with code ${code}.` };
    });
    return c.json({ job_id: '01000000', submission_id: id });
  });
  app.get('/api/jobs/:id', (c) => {
    const job = jobs.get(c.req.param('id'));
    return job === undefined ? c.text('job does not exist', 404) : c.json(job.state);
  });
  app.get('/api/jobs/:id/logs', (c) => {
    const id = c.req.param('id');
    const { state, logs } = jobs.get(id) ?? {};
    if (unread !== undefined && id.includes(unread.name)) {
      if (state?.status === 'RUNNING') return c.json({ logs: '' });
      if (unread.times-- > 0) return c.text('the log cannot be read', unread.status);
    }
    return logs === undefined ? c.text('the node of the log is gone', 500) : c.json({ logs });
  });
  const end = async ({ child }: FakeJob) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    process.kill(-(child.pid as number), 'SIGKILL');
    await closed;
  };
  app.post('/api/jobs/:id/stop', async (c) => {
    const job = jobs.get(c.req.param('id'));
    if (job === undefined) return c.text('job does not exist', 404);
    job.state = { status: 'STOPPED', message: 'Job was intentionally stopped.' };
    await end(job);
    return c.json({ stopped: true });
  });
  const listening = await listen({ app, guard: () => undefined }, { host: '127.0.0.1', port: 0 });
  return {
    url: listening.url,
    packages,
    jobs,
    killOnce(name, text) {
      doomed = { name, text, goesOn: false };
    },
    cutOffOnce(name, text) {
      doomed = { name, text, goesOn: true };
    },
    failLog(name, status, times) {
      unread = { name, status, times };
    },
    refuse(times) {
      refusals = times;
    },
    async close() {
      for (const job of jobs.values()) await end(job);
      await listening.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
