/**
 * Several hosts on one machine: namespaces of Linux, joined by a bridge. They share neither loopback nor /tmp, where
 * each has its home, its cache and the files that it was given. They end with the process that made them.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '@drmas/engine/errors';

const execute = promisify(execFile);

/** Where a host keeps all that it has of its own. */
const HOME = '/tmp/home';

/** The reason why this machine can make no hosts. Undefined if it can. */
export async function noHosts(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'namespaces need Linux and root';
  try {
    await execute('unshare', ['--net', '--mount', 'ip', 'link', 'add', 'one', 'type', 'veth', 'peer', 'name', 'two']);
    return undefined;
  } catch (error) {
    return `this machine makes no namespaces, or has no iproute2: ${messageOf(error).split('\n')[0]}`;
  }
}

export interface HostOptions {
  /** Folders of this machine that the host sees below its /tmp, by their paths there. */
  readonly folders?: Readonly<Record<string, string>>;
  /** The contents of its files, by their paths below /tmp. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A program on a host, with its output so far. */
export interface Program {
  readonly child: ChildProcess;
  readonly printed: { out: string; err: string };
  /** Resolves with the exit code. Null if it was killed. */
  readonly ended: Promise<number | null>;
  /** Ends it as a machine does that is switched off. */
  kill(): Promise<void>;
}

/** A machine of a network. */
export class Host {
  readonly address: string;
  readonly #network: Network;
  readonly #pid: string;
  readonly #port: string;
  readonly #programs: Program[] = [];

  constructor(network: Network, pid: string, address: string, port: string) {
    this.#network = network;
    this.#pid = pid;
    this.address = address;
    this.#port = port;
  }

  start(words: readonly string[], environment: NodeJS.ProcessEnv = {}): Program {
    const child = spawn('nsenter', ['--target', this.#pid, '--net', '--mount', ...words], {
      cwd: '/',
      detached: true,
      env: { PATH: process.env.PATH, HOME, DRMAS_CACHE: '/tmp/cache', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const printed = { out: '', err: '' };
    child.stdout?.on('data', (part) => {
      printed.out += part;
    });
    child.stderr?.on('data', (part) => {
      printed.err += part;
    });
    const ended = once(child, 'close').then(([code]) => code as number | null);
    const program = {
      child,
      printed,
      ended,
      async kill() {
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
          process.kill(-child.pid, 'SIGKILL');
        await ended;
      },
    };
    this.#programs.push(program);
    return program;
  }

  /** Runs a program to its end. @throws Error when it fails */
  async run(words: readonly string[]): Promise<string> {
    const { ended, printed } = this.start(words);
    const code = await ended;
    if (code !== 0) throw new Error(`${words.join(' ')} ended with ${code}: ${printed.err}`);
    return printed.out;
  }

  /** Takes the host's plug out, or puts it in again. What was on its way is lost. */
  async plug(state: 'down' | 'up'): Promise<void> {
    await this.#network.bridge('ip', 'link', 'set', this.#port, state);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.kill()));
  }
}

export class Network {
  readonly #switch: ChildProcess;
  readonly #holders: ChildProcess[] = [];
  readonly #hosts: Host[] = [];

  private constructor(bridge: ChildProcess) {
    this.#switch = bridge;
  }

  static async make(): Promise<Network> {
    const network = new Network(await holder('true'));
    await network.bridge('ip', 'link', 'add', 'bridge', 'type', 'bridge');
    await network.bridge('ip', 'link', 'set', 'bridge', 'up');
    return network;
  }

  /** Adds a host with its own /tmp and loopback. */
  async add({ folders = {}, files = {} }: HostOptions = {}): Promise<Host> {
    const number = this.#hosts.length + 1;
    const there = Object.entries(folders).flatMap(([path, folder]) => [
      `mkdir -p ${quoted(join('/mnt', path))}`,
      `mount --bind ${quoted(folder)} ${quoted(join('/mnt', path))}`,
    ]);
    const namespaces = await holder(
      ['mount -t tmpfs tmpfs /mnt', 'mkdir /mnt/home', ...there, 'mount --rbind /mnt /tmp', 'ip link set lo up'].join(
        ' && ',
      ),
    );
    this.#holders.push(namespaces);
    const [pid, port, address] = [`${namespaces.pid}`, `host${number}`, `10.77.0.${number}`];
    await this.bridge('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid);
    await this.bridge('ip', 'link', 'set', port, 'master', 'bridge', 'up');
    const host = new Host(this, pid, address, port);
    this.#hosts.push(host);
    await host.run(['ip', 'address', 'add', `${address}/24`, 'dev', 'eth0']);
    await host.run(['ip', 'link', 'set', 'eth0', 'up']);
    for (const [path, content] of Object.entries(files))
      await host.run([
        ...['sh', '-c', 'mkdir -p "$1" && printf %s "$3" > "$2"', 'sh'],
        ...[dirname(join('/tmp', path)), join('/tmp', path), content],
      ]);
    return host;
  }

  /** Runs a command in the network namespace that connects all hosts. */
  async bridge(...words: readonly string[]): Promise<void> {
    await execute('nsenter', ['--target', `${this.#switch.pid}`, '--net', ...words]);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.stop()));
    for (const each of [...this.#holders, this.#switch]) {
      each.stdin?.end();
      if (each.exitCode === null) await once(each, 'exit');
    }
  }
}

/** A process that holds namespaces of its own until its input ends, as it does with this process. */
async function holder(setup: string): Promise<ChildProcess> {
  const words = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', `${setup} && echo ready && exec cat`];
  const child = spawn('unshare', words, { stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (part) => {
    errors += part;
  });
  const ready = once(child.stdout, 'data');
  const ended = once(child, 'exit').then(() => {
    throw new Error(`there is no host: ${errors}`);
  });
  ended.catch(() => {});
  await Promise.race([ready, ended]);
  return child;
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
