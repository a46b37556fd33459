/**
 * Programs of other languages play a team over the gateway: a Python process with the official `openai` client, and a
 * shell script of curl and jq. Their runs are the run of plain calls.
 */
import { type ChildProcessByStdio, execFile, spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DeskOutcome, type DeskPlay, LEARNING, plainPlay, rises, trainDesk } from '../frameworks/desk.js';
import { pythonEnvironment } from '../support/python-environment.js';
import { temporaryRoot } from '../support/tiny-run.js';

const environment = await pythonEnvironment({
  name: 'openai-python',
  requirements: new URL('requirements.txt', import.meta.url),
  what: "OpenAI's client for Python (40 MB)",
});
const python = 'python' in environment ? environment.python : undefined;
if ('unavailable' in environment) console.log(`SKIPPED: the agents in Python, because ${environment.unavailable}`);

const root = temporaryRoot();

/** An episode that is being played there. */
interface Waiting {
  resolve(outcome: DeskOutcome): void;
  reject(error: Error): void;
}

/** A process that plays many episodes at once: starting an interpreter takes longer than an episode does. */
class PythonAgents {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<number, Waiting>();
  #episodes = 0;

  constructor(interpreter: string) {
    const script = fileURLToPath(new URL('agents.py', import.meta.url));
    this.#child = spawn(interpreter, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface(this.#child.stdout).on('line', (line) => {
      const { id, outcome, error } = JSON.parse(line);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(outcome);
      else waiting?.reject(new Error(error));
    });
    this.#child.on('exit', (code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the process ended with ${code}`));
    });
  }

  play(order: { url: string; secret: string; question: string; stream: boolean }): Promise<DeskOutcome> {
    const id = this.#episodes++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, ...order })}\n`);
    });
  }

  close(): void {
    this.#child.stdin.end();
  }
}

describe.skipIf(python === undefined)("a team of Python agents with OpenAI's client", () => {
  let agents: PythonAgents;
  beforeAll(() => {
    agents = new PythonAgents(python ?? '');
  });
  afterAll(() => agents.close());

  const inPython =
    (stream: boolean): DeskPlay =>
    ({ task, gateway: { url, secret } }) =>
      agents.play({ url, secret, question: task.question, stream });
  const gateway = 'gateway.port=0';

  it('is the run that plain calls of agents give, bit for bit, streamed or not', async () => {
    const plain = await trainDesk(root, plainPlay);
    const foreign = await trainDesk(root, inPython(false), { overrides: [gateway], threads: 2 });
    expect(foreign.failures).toEqual([]);
    expect(foreign).toEqual(plain);
    expect(await trainDesk(root, inPython(true), { overrides: [gateway] })).toEqual(plain);
  });

  it('learns', async () => {
    const { rewards, failures } = await trainDesk(root, inPython(false), { overrides: [gateway, ...LEARNING] });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});

const run = promisify(execFile);
const script = fileURLToPath(new URL('agent.sh', import.meta.url));

const missing = ['bash', 'curl', 'jq'].filter((program) => spawnSync(program, ['--version']).error !== undefined);
if (missing.length > 0) console.log(`SKIPPED: the shell agent, because ${missing.join(' and ')} is not here`);

const withCurl: DeskPlay = async ({ task, gateway, signal }) => {
  const { stdout } = await run('bash', [script, task.question], { env: { ...process.env, ...gateway.env }, signal });
  return JSON.parse(stdout);
};

describe.skipIf(missing.length > 0)('a team of a shell script', () => {
  it('is the run that plain calls of agents give, bit for bit', async () => {
    const overrides = ['training.tasksPerStep=2'];
    const plain = await trainDesk(root, plainPlay, { overrides });
    const foreign = await trainDesk(root, withCurl, { overrides: [...overrides, 'gateway.port=0'] });
    expect(foreign.failures).toEqual([]);
    expect(foreign).toEqual(plain);
  });

  it('learns', async () => {
    const overrides = ['training.steps=10', 'training.tasksPerStep=2', 'gateway.port=0'];
    const { rewards, failures } = await trainDesk(root, withCurl, { overrides });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});
