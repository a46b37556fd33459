/**
 * Eight short runs whose events, episodes and weights must not change: SHA-256 of all of them, as version 0.1.0 made
 * them. Events are those since `health.groupSpread` is measured over groups with two turns of the agent, and since
 * scores that are all equal have exact intervals. The kernels are `native-avx2`, whose bits are the same on every
 * processor with AVX2, and WebAssembly.
 * `DRMAS_FREEZE=1` writes the hashes anew, which is right only for a change that is meant to change results.
 * `npm run frozen` runs this whole file, and compares the pages of the reference with the source: commands, settings,
 * public names, estimators and their vectors.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { resume, train } from 'drmas';
import { afterAll, describe, expect, it } from 'vitest';
import { withEnvironment } from '../support/environment.js';
import { temporaryRoot } from '../support/tiny-run.js';

const file = (name: string) => fileURLToPath(new URL(`../fixtures/frozen/${name}`, import.meta.url));
const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
const redis = process.env.DRMAS_TEST_REDIS ?? 'redis://127.0.0.1:6379';

/** Sizes that let a shipped recipe train for three steps within a second or two. */
const short = [
  ...['warmStart.steps=20', 'warmStart.batch=8', 'training.steps=3', 'training.tasksPerStep=2', 'training.groupSize=4'],
  ...['training.checkpointEvery=3', 'evaluation.every=3', 'evaluation.tasks=2', 'evaluation.samples=2'],
];

const runs: Readonly<Record<string, { readonly recipe: string; readonly set: readonly string[] }>> = {
  repair: { recipe: 'repair', set: short },
  math: { recipe: 'math', set: short },
  desk: { recipe: 'desk', set: short },
  shop: { recipe: 'shop', set: [...short, 'advantage.type=grpo'] },
  search: { recipe: 'search', set: short },
  lora: { recipe: file('lora.ts'), set: [] },
  critic: { recipe: file('critic.ts'), set: [] },
};

type Hashes = Record<string, Record<string, string>>;

const root = temporaryRoot();
/** An empty directory: a test that is tried again begins anew. */
const fresh = () => mkdtemp(join(root, 'run-'));
const newHashes: Hashes = {};
const expected = JSON.parse(await readFile(file('hashes.json'), 'utf8').catch(() => '{}')) as Hashes;

afterAll(async () => {
  if (process.env.DRMAS_FREEZE === '1') {
    await writeFile(file('hashes.json'), `${JSON.stringify({ ...expected, ...newHashes }, null, 2)}\n`);
  }
});

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');

/** The events without the fields that a clock or the machine decides. */
function lastingEvents(log: string): string {
  const lasting = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string })
    .filter(({ type }) =>
      ['step', 'evaluation', 'warmup', 'spike', 'skipped', 'warning', 'episode.failed'].includes(type),
    );
  return JSON.stringify(lasting, (key, value) =>
    /^(time|seconds|phaseSeconds|message|explanation)$/.test(key) ? undefined : value,
  );
}

async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .sort();
}

/** SHA-256 of a run's events, episodes and weights. */
async function hashesOf(run: string): Promise<Record<string, string>> {
  const all = await filesBelow(run);
  const joined = async (pattern: RegExp) => {
    const hash = createHash('sha256');
    for (const name of all.filter((each) => pattern.test(each))) {
      hash.update(name);
      hash.update(sha256(await readFile(join(run, name))));
    }
    return hash.digest('hex');
  };
  return {
    events: sha256(lastingEvents(await readFile(join(run, 'events.jsonl'), 'utf8'))),
    episodes: await joined(/^episodes\/.*\.jsonl$/),
    weights: await joined(/^checkpoints\/.*\.safetensors$/),
  };
}

async function check(name: string, run: string): Promise<void> {
  const hashes = await hashesOf(run);
  if (process.env.DRMAS_FREEZE === '1') newHashes[name] = hashes;
  else expect(hashes).toEqual(expected[name]);
}

/** Whether a server answers at the address of Redis. */
const redisAnswers = await new Promise<boolean>((resolve) => {
  const { hostname, port } = new URL(redis);
  const socket = createConnection({ host: hostname, port: Number(port || 6379) });
  socket.once('connect', () => {
    socket.destroy();
    resolve(true);
  });
  socket.once('error', () => resolve(false));
});

/** Does work with the kernels of one kind. */
async function on(kernels: 'native-avx2' | 'wasm', work: () => Promise<void>): Promise<void> {
  const restore = withEnvironment({ DRMAS_KERNELS: kernels });
  try {
    await work();
  } finally {
    restore();
  }
}

describe('frozen runs', () => {
  for (const [name, { recipe, set }] of Object.entries(runs)) {
    for (const threads of [1, 2]) {
      // The daily tests play the quick runs once, and one of them on two threads too.
      const daily = name === 'lora' || (threads === 1 && !['math', 'desk', 'search'].includes(name));
      const tags = daily ? [] : ['verify' as const];
      it(`${name} on ${threads} thread(s)`, { tags }, async () => {
        const run = await fresh();
        await on('native-avx2', async () => void (await train(recipe, { run, set, threads })));
        await check(name, run);
      });
    }
    it(`${name} on WebAssembly`, { tags: 'verify' }, async () => {
      const run = await fresh();
      await on('wasm', async () => void (await train(recipe, { run, set, threads: 1 })));
      await check(`${name} on WebAssembly`, run);
    });
  }

  // The worker is a program of its own: it imports `drmas` from the build.
  const built = existsSync(new URL('../../dist/src/index.js', import.meta.url));
  it.skipIf(!redisAnswers || !built)('lora on a queue', { tags: 'verify' }, async () => {
    const queue = `frozen-${process.pid}`;
    const words = ['--import', 'tsx', program, 'serve', 'worker', file('lora.ts'), '--url', redis, '--queue', queue];
    const worker: ChildProcess = spawn(process.execPath, words, { stdio: 'ignore' });
    try {
      const run = await fresh();
      const set = ['rollout.type=queue', `rollout.url=${redis}`, `rollout.queue=${queue}`];
      await on('native-avx2', async () => void (await train(file('lora.ts'), { run, set, threads: 1 })));
      await check('lora', run);
    } finally {
      worker.kill('SIGKILL');
    }
  });

  it('the resume of a run that version 0.1.0 made', async () => {
    const run = await fresh();
    const packed = gunzipSync(await readFile(file('run-of-0.1.0.json.gz'))).toString();
    for (const [name, content] of Object.entries(JSON.parse(packed) as Record<string, string>)) {
      await mkdir(dirname(join(run, name)), { recursive: true });
      await writeFile(join(run, name), Buffer.from(content, 'base64'));
    }
    await on('native-avx2', async () => void (await resume(run, undefined, { threads: 1, acceptChanges: true })));
    await check('resumed', run);
  });
});
