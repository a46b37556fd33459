/**
 * `drmas serve` as a process: streams whose clients disappear, beside 64 clients that read to the end. A sample takes
 * half a minute; `DRMAS_TEST_MINUTES=10` is 3,000 streams in ten minutes. Memory and descriptors come from /proc.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { median, RandomStream } from '@drmas/engine/math';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { freePort } from '../support/server-process.js';
import { eventually, repeatedly, stopwatch, takesTime } from '../support/time-and-chance.js';
import { writeBaseModel } from '../support/tinker-fake/base-model.js';
import { temporaryRoot } from '../support/tiny-run.js';

const MINUTES = Number(process.env.DRMAS_TEST_MINUTES ?? 0.5);
const VANISHED = Math.max(600, Math.round(MINUTES * 300));
const HONEST = 64;
/** The allowed growth of resident memory from the third quarter of the time to the last, in MB. */
const MOST_GROWTH_MB = MINUTES >= 5 ? 16 : 64;

const root = temporaryRoot();
const random = new RandomStream('vanished', Number(process.env.DRMAS_TEST_SEED ?? 7077));
let program: CompiledProgram;
let server: ChildProcess;
let url = '';
let port = 0;

beforeAll(async () => {
  const model = await writeBaseModel(root, { name: 'writer', config: { context: 1500 } });
  program = await compiledProgram();
  port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const words = ['serve', model, '--port', `${port}`, '--threads', '1', '--max-requests', '128'];
  server = spawn(process.execPath, [program.main, ...words], { stdio: ['ignore', 'ignore', 'inherit'] });
  await eventually(async () => (await healthy()) !== undefined);
});
afterAll(async () => {
  server.kill('SIGKILL');
  await program.remove();
});

const healthy = async () => {
  const response = await fetch(`${url}/health`).catch(() => undefined);
  return (await response?.json()) as unknown;
};

const message = [{ role: 'user', content: 'Write.' }];
const ROUTES: readonly (readonly [string, object])[] = [
  ['/v1/chat/completions', { messages: message }],
  ['/v1/responses', { input: 'Write.' }],
  ['/v1/messages', { messages: message }],
];
const headers = { 'content-type': 'application/json' };

function requestOf(index: number, tokens: number) {
  const [path, body] = ROUTES[index % ROUTES.length] ?? ROUTES[0] ?? ['', {}];
  const limits = path === '/v1/responses' ? { max_output_tokens: tokens } : { max_tokens: tokens };
  return { path, body: JSON.stringify({ model: 'writer', stream: index % 7 !== 0, ...limits, ...body }) };
}

/** Begins an answer and leaves: before it, at its head, or after some of it. */
async function vanish(index: number): Promise<void> {
  const { path, body } = requestOf(index, 1400);
  const gone = new AbortController();
  const moment = random.uniform();
  if (moment < 0.2) void takesTime(moment * 500).then(() => gone.abort());
  try {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body, signal: gone.signal });
    let left = moment < 0.5 ? 0 : Math.floor((moment - 0.5) * 40_000);
    if (left > 0)
      for await (const part of response.body ?? []) {
        left -= part.length;
        if (left <= 0) break;
      }
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    gone.abort();
  }
}

/** Sends a part of a request and cuts the connection. */
async function cut(index: number): Promise<void> {
  const { path, body } = requestOf(index, 1400);
  const bytes = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.write(bytes.slice(0, Math.floor(bytes.length * (0.2 + random.uniform()))));
  await takesTime(random.uniform() * 60);
  socket.destroy();
}

/** Reads whole answers until the others are through. Returns their number. */
async function honest(index: number, over: () => boolean): Promise<number> {
  let answers = 0;
  for (; !over(); answers++) {
    const { path, body } = requestOf(7 * index + 1, 24); // always a stream
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body });
    const text = await response.text();
    expect({ status: response.status, text }).toEqual({
      status: 200,
      text: expect.stringMatching(/\[DONE\]|message_stop|response\.(completed|incomplete)/),
    });
  }
  return answers;
}

/** The connections of the server that neither end has closed. */
function held(): number {
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1);
  const own = port.toString(16).toUpperCase().padStart(4, '0');
  return rows.filter((row) => new RegExp(`^ *\\d+: \\w+:${own} \\w+:\\w+ 01 `).test(row)).length;
}

interface Sample {
  readonly residentMB: number;
  readonly descriptors: number;
}
function sample(): Sample {
  const resident = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1];
  return { residentMB: Number(resident) / 1e3, descriptors: readdirSync(`/proc/${server.pid}/fd`).length };
}

it('keeps all places and its memory while clients disappear, and ends at once afterwards', async () => {
  const samples: Sample[] = [];
  const endSampling = repeatedly(500, () => existsSync('/proc/self/status') && samples.push(sample()));
  const seconds = stopwatch();
  let vanished = 0;
  const leaver = async () => {
    for (let index = vanished++; index < VANISHED; index = vanished++) {
      await (index % 5 === 0 ? cut(index) : vanish(index));
      const due = (MINUTES * 60 * (index + 1)) / VANISHED;
      await takesTime(Math.max(0, 1000 * (due - seconds())));
    }
  };
  let over = false;
  const readers = Array.from({ length: HONEST }, (_, index) => honest(index, () => over));
  await Promise.all(Array.from({ length: 32 }, leaver));
  over = true;
  const answers = (await Promise.all(readers)).reduce((sum, count) => sum + count, 0);
  await eventually(async () => expect(await healthy()).toMatchObject({ running: 0 }));
  endSampling();

  const quarter = (i: number) => samples.slice((i * samples.length) / 4, ((i + 1) * samples.length) / 4);
  const memory = (i: number) => median(quarter(i).map(({ residentMB }) => residentMB));
  const minutes = (seconds() / 60).toFixed(1);
  console.log(`${VANISHED} streams left, ${answers} answers read, ${minutes} minutes, 0 places lost`);
  if (samples.length > 8) {
    console.log(`resident, by quarters: ${[0, 1, 2, 3].map((i) => `${memory(i).toFixed(0)} MB`).join(', ')}`);
    expect(memory(3) - memory(2)).toBeLessThan(MOST_GROWTH_MB);
    // Connections that both ends hold are the readers' own: the server keeps them a while for their next requests.
    await eventually(() => expect(sample().descriptors - held()).toBeLessThan(64));
  }

  for (let index = 0; index < 40; index++) await vanish(index);
  const half = connect(port, '127.0.0.1').on('error', () => {});
  half.write('POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{');
  server.kill('SIGTERM');
  expect(await once(server, 'exit')).toEqual([0, null]);
  half.destroy();
});
