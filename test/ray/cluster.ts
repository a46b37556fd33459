/** A Ray cluster on this machine: a head and further nodes, each a process with all that it started. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { freePort, ServerProcess } from '../support/server-process.js';
import { deadline, stopwatch, takesTime } from '../support/time-and-chance.js';

const program = fileURLToPath(new URL('node.py', import.meta.url));
/** The environment variable that marks all processes that a cluster started. */
const MARK = 'DRMAS_TEST_CLUSTER';
const PATIENCE_SECONDS = 300;
/** A dead node is missed after eight seconds instead of fifteen. */
const SETTINGS = { RAY_health_check_period_ms: '1000', RAY_health_check_failure_threshold: '8' };

const nodesSchema = z.object({
  data: z.object({ result: z.object({ result: z.array(z.object({ node_id: z.string(), state: z.string() })) }) }),
});
const jobsSchema = z.array(
  z.object({ submission_id: z.string(), status: z.string(), driver_node_id: z.string().nullish() }),
);

export type ClusterJob = z.output<typeof jobsSchema>[number];

export interface RayNode {
  readonly id: string;
  /** Ends the node at once with its jobs, as a machine does that is switched off. */
  kill(): Promise<void>;
}

export class RayCluster {
  readonly url: string;
  readonly #python: string;
  readonly #directory: string;
  readonly #cpus: number;
  readonly #gpus: number;
  readonly #port: number;
  readonly #mark: string;
  readonly #processes: ServerProcess[] = [];

  private constructor(
    python: string,
    directory: string,
    port: number,
    dashboard: number,
    { cpus, gpus }: { readonly cpus: number; readonly gpus: number },
  ) {
    this.#cpus = cpus;
    this.#gpus = gpus;
    this.#python = python;
    this.#directory = directory;
    this.#port = port;
    this.#mark = `${process.pid}-${port}`;
    this.url = `http://127.0.0.1:${dashboard}`;
  }

  /** Starts a head, by default with one CPU. Cards are only declared: no node looks for them. */
  static async start(python: string, { cpus = 1, gpus = 0 } = {}): Promise<RayCluster> {
    // Sockets lie below it, whose paths have at most 107 characters.
    const directory = await mkdtemp('/tmp/drmas-ray-');
    const [port, dashboard, client] = await Promise.all([freePort(), freePort(), freePort()]);
    const cluster = new RayCluster(python, directory, port, dashboard, { cpus, gpus });
    const ports = [`--port=${port}`, `--dashboard-port=${dashboard}`, `--ray-client-server-port=${client}`];
    const words = ['--head', '--dashboard-host=127.0.0.1', '--disable-usage-stats', ...ports];
    await cluster.#start(words, async () => (await cluster.#alive()).length > 0);
    return cluster;
  }

  /** Adds a node like the head. @param environment Variables that its jobs have too */
  async addNode(environment: NodeJS.ProcessEnv = {}): Promise<RayNode> {
    const before = await this.#alive();
    let id: string | undefined;
    const isThere = async () => {
      id = (await this.#alive()).find((each) => !before.includes(each));
      return id !== undefined;
    };
    const node = await this.#start([`--address=127.0.0.1:${this.#port}`], isThere, environment);
    return { id: id ?? '', kill: () => node.stop() };
  }

  async jobs(): Promise<ClusterJob[]> {
    return jobsSchema.parse(await this.#ask('/api/jobs/'));
  }

  /** All that Ray tells about jobs to who asks. */
  async shown(): Promise<string> {
    return JSON.stringify(await this.#ask('/api/jobs/'));
  }

  /** All that a job has printed so far. */
  async printed(job: string): Promise<string> {
    return z.object({ logs: z.string().nullish() }).parse(await this.#ask(`/api/jobs/${job}/logs`)).logs ?? '';
  }

  /** Ends all nodes, and the processes that they started and that did not end with them. Returns those processes. */
  async stop(): Promise<string[]> {
    await Promise.all(this.#processes.map((each) => each.stop()));
    // Jobs notice within two seconds that their supervisor is gone.
    for (let i = 0; i < 100 && (await this.#left()).length > 0; i++) await takesTime(100);
    const left = await this.#left();
    for (const { pid } of left) process.kill(pid, 'SIGKILL');
    await rm(this.#directory, { recursive: true, force: true });
    return left.map(({ command }) => command);
  }

  /** Starts a node. Retries once if the node ends itself because it was not ready within Ray's limit of 30 seconds. */
  async #start(
    words: readonly string[],
    isUp: () => Promise<boolean>,
    environment: NodeJS.ProcessEnv = {},
  ): Promise<ServerProcess> {
    const small = [
      `--num-cpus=${this.#cpus}`,
      ...(this.#gpus > 0 ? [`--num-gpus=${this.#gpus}`] : []),
      '--object-store-memory=100000000',
    ];
    const seconds = stopwatch();
    let output = '';
    while (seconds() < PATIENCE_SECONDS) {
      const agent = `--dashboard-agent-listen-port=${await freePort()}`;
      const node = new ServerProcess(this.#python, [program, ...words, agent, ...small], {
        ...SETTINGS,
        ...environment,
        RAY_TMPDIR: this.#directory,
        [MARK]: this.#mark,
      });
      this.#processes.push(node);
      while (!node.ended && seconds() < PATIENCE_SECONDS) {
        if (await isUp().catch(() => false)) return node;
        await takesTime(200);
      }
      output = node.output;
    }
    await this.stop();
    throw new Error(`the node did not come up: ${output}`);
  }

  /** The ids of the nodes that the head takes for alive. */
  async #alive(): Promise<string[]> {
    const { data } = nodesSchema.parse(await this.#ask('/api/v0/nodes'));
    return data.result.result.flatMap(({ node_id, state }) => (state === 'ALIVE' ? [node_id] : []));
  }

  async #ask(path: string): Promise<unknown> {
    const response = await fetch(`${this.url}${path}`, { signal: deadline(30_000) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /** Processes of the cluster, found by an inherited environment variable. */
  async #left(): Promise<{ pid: number; command: string }[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const each = pids.map(async (pid) => {
      const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
      const isOurs = (await read('environ')).split('\0').includes(`${MARK}=${this.#mark}`);
      return isOurs ? [{ pid: Number(pid), command: (await read('cmdline')).replaceAll('\0', ' ') }] : [];
    });
    return (await Promise.all(each)).flat();
  }
}
