/** A queue whose Redis holds anything, and workers that lie: the run goes on and equals an undisturbed one. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { RandomStream } from '@drmas/engine/math';
import { nodeHost, packageVersion } from '@drmas/engine/platform';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it } from 'vitest';
import { queueExecutor } from '../../src/cluster/queue/queue-executor.js';
import { QueueKey } from '../../src/cluster/queue/queue-key.js';
import { runWorker } from '../../src/cluster/queue/queue-worker.js';
import { redisOptions } from '../../src/cluster/queue/redis.js';
import { announcementKey, packed, queueOf, type Registered, unpacked } from '../../src/cluster/queue/wire.js';
import { codeHash } from '../../src/method/recipe/code-hash.js';
import { scriptedContext } from '../../src/runs/testing/play-scripted.js';
import { scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import { withEnvironment } from '../support/environment.js';
import { eventually, takesTime } from '../support/time-and-chance.js';
import { oneCallTeam as team, temporaryRoot } from '../support/tiny-run.js';
import { comparable, kill, killAll, noRedis, onQueue, program, REDIS, recipe, startWorker, train } from './workers.js';

const unavailable = await noRedis();
if (unavailable !== undefined) console.log(`SKIPPED: hostile queues, because ${unavailable}`);
const root = temporaryRoot();
const redis = new Redis(REDIS, { lazyConnect: true });
const key = new QueueKey(process.env.DRMAS_QUEUE_KEY ?? '', 'the test');
const steps = ['--set', 'training.steps=8'];

afterAll(async () => {
  await killAll();
  redis.disconnect();
});

/** The warnings of a run by code. */
const warnings = ({ events }: Awaited<ReturnType<typeof train>>, code: string) =>
  events.flatMap((event) => (event.type === 'warning' && event.code === code ? [event.message] : []));

/** The run that has announced itself on a queue. */
async function announced(queue: string, at = redis) {
  for (;;) {
    const text = await at.get(announcementKey(queue)).catch(() => null);
    if (text !== null) return key.read(queue, text);
    await takesTime(50);
  }
}

/** Registers a worker that the test plays. */
async function registered(queue: string, at = redis) {
  const run = await announced(queue, at);
  const ask = async (path: string, body: unknown, secret: string) => {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`${run.url}/${path}`, { method: 'POST', headers, body: packed(body) });
    const { status, ok } = response;
    return { status, answer: ok ? unpacked(new Uint8Array(await response.arrayBuffer())) : await response.json() };
  };
  const { codeHash } = run;
  const registration = { codeHash, version: packageVersion(), name: 'liar', nonce: 'n' };
  const { answer } = await ask('register', registration, key.door(run.run));
  const { secret } = answer as Registered;
  return { run, ask: (path: string, body: unknown) => ask(path, body, secret) };
}

const score = { team: 1, agents: {}, parts: {} };
const turn = {
  id: '0123456789abcdef',
  agent: 'solver',
  policy: 'solver',
  policyVersion: 0,
  turn: 0,
  call: 0,
  messages: [],
  prompt: [1],
  response: [2],
  logprobs: [-1],
  temperature: 1,
  finishReason: 'stop',
  text: '',
  value: '1',
  valid: true,
  penalty: 0,
};
type Taken = { readonly task: unknown; readonly sample: number };
const forgeries: ((taken: Taken) => unknown)[] = [
  () => ({}),
  () => null,
  () => 'text',
  ({ task, sample }) => ({ task, sample, score }),
  ({ task, sample }) => ({ task, sample, turns: [{ ...turn, agent: '__proto__' }], score }),
  ({ task, sample }) => ({ task, sample, turns: [{ ...turn, response: [2 ** 32 + 5] }], score }),
  ({ task, sample }) => ({ task, sample, turns: [{ ...turn, logprobs: undefined }], score }),
  ({ task, sample }) => ({ task, sample, turns: [{ ...turn, logprobs: [Number.NaN] }], score }),
  ({ task, sample }) => ({ task, sample, turns: [{ ...turn, logprobs: [2] }], score }),
  ({ task, sample }) => ({ task, sample, turns: [turn], score }),
  ({ task, sample }) => ({ task, sample, turns: Array.from({ length: 99 }, () => turn), score }),
  ({ task, sample }) => ({ task, sample, turns: [], score: { ...score, team: 1e308 } }),
  ({ task, sample }) => ({ task, sample, turns: [], score: { ...score, team: 'much' } }),
  ({ sample }) => ({ task: { id: 'mine', data: {} }, sample, turns: [], score }),
  ({ task, sample }) => ({ task, sample: sample + 1, turns: [], score }),
];

describe.skipIf(unavailable !== undefined)('a run on a queue', () => {
  it(`refuses ${forgeries.length} forged episodes by name, has them played again, and equals a run in one process`, async () => {
    const queue = `test-${process.pid}-forged`;
    const honest = startWorker({ queue, concurrency: 4, toolMs: 50 });
    const training = train('forged-on-queue', [...onQueue(queue), ...steps], 50);
    const forged = new Set<string>();
    const answers: { status: number; answer: unknown }[] = [];
    const waiting = [...forgeries];
    try {
      while (waiting.length > 0) {
        const { run, ask } = await registered(queue);
        const [forge] = waiting;
        let given = () => {};
        const done = new Promise<void>((resolve) => {
          given = resolve;
        });
        const lie = async (job = '') => {
          if (forged.has(job) || forge !== waiting[0]) throw new Error('another worker plays it');
          forged.add(job);
          waiting.shift();
          const { answer } = await ask('take', { job });
          answers.push(await ask('over', { job, episode: forge?.(answer as Taken) }));
          given();
        };
        const liar = new Worker(queueOf(queue, run.run), ({ id }) => lie(id), { connection: redisOptions(REDIS) });
        liar.on('error', () => {});
        await done;
        await liar.close(true);
      }
      const there = await training;
      expect(answers.map(({ status }) => status)).toEqual(forgeries.map(() => 403));
      const named = warnings(there, 'queue.episode');
      expect(named).toHaveLength(forgeries.length);
      for (const message of named)
        expect(message).toMatch(
          /^worker \d+ \(liar\) handed in an episode of .* that this run did not sample: .*another one plays/,
        );
      const here = await train('forged-in-process', steps, 0);
      expect(await comparable(there)).toEqual(await comparable(here));
    } finally {
      await kill(honest);
    }
  });

  it('goes on if values in Redis are no JSON or of another type, and ends no worker', async () => {
    const queue = `test-${process.pid}-damaged`;
    const workers = [0, 1].map(() => startWorker({ queue, concurrency: 4, toolMs: 50 }));
    const training = train('damaged-on-queue', [...onQueue(queue), ...steps], 50);
    const random = new RandomStream('damage', ...(process.env.DRMAS_TEST_SEED ? [process.env.DRMAS_TEST_SEED] : []));
    const state = { over: false, damaged: 0 };
    const damaging = (async () => {
      const { run } = await announced(queue);
      while (!state.over) {
        await takesTime(400);
        const keys = [announcementKey(queue), ...(await redis.keys(`bull:${queueOf(queue, run)}:*`))].sort();
        const place = keys[random.integer(0, keys.length - 1)] as string;
        const kind = random.integer(0, 2);
        const isHash = (await redis.type(place)) === 'hash';
        if (isHash && kind > 0) await redis.hset(place, 'data', 'not { json', 'opts', '[');
        else if (kind === 1)
          await redis.multi().del(place).lpush(place, 'x').exec(); // else the queue may be faster
        else await redis.set(place, 'not { json');
        state.damaged++;
      }
    })();
    try {
      const there = await training;
      state.over = true;
      await damaging;
      console.log(`${state.damaged} values in Redis were damaged while 8 steps of 32 episodes were played`);
      expect(state.damaged).toBeGreaterThan(10);
      expect(warnings(there, 'queue.redis').length).toBeGreaterThan(0);
      const here = await train('damaged-in-process', steps, 0);
      expect(await comparable(there)).toEqual(await comparable(here));
      expect(workers.map(({ exitCode }) => exitCode)).toEqual([null, null]);
    } finally {
      state.over = true;
      await Promise.all(workers.map(kill));
    }
  });
});

const server = spawnSync('redis-server', ['--version']);

async function redisServer(port: number) {
  // A primary writes dump.rdb.
  const words = ['--port', `${port}`, '--save', '', '--dir', mkdtempSync(join(root, 'redis-'))];
  const child = spawn('redis-server', words, { stdio: ['ignore', 'pipe', 'ignore'] });
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (part) => String(part).includes('Ready to accept') && resolve());
  });
  return child;
}

/** A Redis of the test, with a queue's executor that plays nothing itself. */
async function redisOfTest() {
  const port = 17_000 + (process.pid % 1000);
  const child = await redisServer(port);
  const context = scriptedContext(
    team,
    scriptedSampler(() => '2'),
  );
  const url = `redis://127.0.0.1:${port}`;
  const [said, warned]: [string[], string[]] = [[], []];
  const executor = (address = url) =>
    queueExecutor(context, {
      code: { source: recipe, codeHash: 'code' },
      rollout: {
        type: 'queue',
        isolate: false,
        queue: 'mine',
        leaseSeconds: 30,
        url: address,
        host: '127.0.0.1',
        port: 0,
      } as never,
      recipe: 'digest',
      gateway: undefined,
      host: { notify: (message) => void said.push(message), warn: (_, message) => void warned.push(message) },
    });
  return { child, url, executor, said, warned };
}

const step = { team, tasks: [{ id: 'a', data: {} }], groupSize: 2, phase: 'training', step: 1 } as const;

/** Plays episodes of a run as an honest worker does, without a turn. */
const emptily =
  (ask: Awaited<ReturnType<typeof registered>>['ask']) =>
  async ({ id: job = '' }) => {
    const { answer } = await ask('take', { job });
    const { task, sample } = answer as Taken;
    await ask('over', { job, episode: { task, sample, turns: [], score: { ...score, team: 0 } } });
  };

describe.skipIf(server.error !== undefined)('a Redis that drops values, or refuses commands', () => {
  it('loses no episode: its jobs wait in a list again', async () => {
    const { child, url, executor } = await redisOfTest();
    const client = new Redis(url);
    try {
      const opened = await executor();
      const { run, ask } = await registered('mine', client);
      const playing = opened.playGroups(step);
      const waiting = `bull:${queueOf('mine', run.run)}:wait`;
      while ((await client.llen(waiting)) < step.groupSize) await takesTime(20);
      await client.del(waiting);
      const worker = new Worker(queueOf('mine', run.run), emptily(ask), { connection: redisOptions(url) });
      worker.on('error', () => {});
      expect((await playing).flatMap(({ episodes }) => episodes)).toHaveLength(step.groupSize);
      await worker.close(true);
      await opened.close?.();
    } finally {
      client.disconnect();
      child.kill('SIGKILL');
    }
  }, 30_000);

  it('is left for the new primary after a failover, which refuses nobody', async () => {
    const { child, url, executor } = await redisOfTest();
    const port = Number(new URL(url).port);
    const standby = await redisServer(port + 1000);
    const old = new Redis(url);
    let primary = port;
    const address = createTcpServer((socket) => {
      const onward = connect(primary, '127.0.0.1');
      for (const each of [socket, onward]) each.on('error', () => {});
      socket.pipe(onward).pipe(socket);
    }).listen(port + 2000, '127.0.0.1');
    const stable = `redis://127.0.0.1:${port + 2000}`;
    try {
      const opened = await executor(stable);
      const { run, ask } = await registered('mine', old);
      const options = { connection: redisOptions(stable), stalledInterval: 500 };
      const worker = new Worker(queueOf('mine', run.run), emptily(ask), options);
      worker.on('error', () => {});
      await worker.waitUntilReady();
      primary = port + 1000;
      await old.replicaof('127.0.0.1', primary); // the connections to it stay
      await expect(old.set('a', 'b')).rejects.toThrow('READONLY');
      expect((await opened.playGroups(step)).flatMap(({ episodes }) => episodes)).toHaveLength(step.groupSize);
      await worker.close(true);
      await opened.close?.();
    } finally {
      old.disconnect();
      for (const each of [child, standby]) each.kill('SIGKILL');
      address.close();
    }
  }, 30_000);

  it('has nothing of a run that is refused because another one uses its queue', async () => {
    const { child, url, executor } = await redisOfTest();
    const client = new Redis(url);
    try {
      const first = await executor();
      const before = await client.keys('*');
      await expect(executor()).rejects.toThrow(/another run uses the queue 'mine'/);
      expect((await client.keys('*')).sort()).toEqual(before.sort());
      await first.close?.();
    } finally {
      client.disconnect();
      child.kill('SIGKILL');
    }
  });

  it('waits for a run that took its queue while it was paused, and goes on after it', async () => {
    const { child, url, executor, warned } = await redisOfTest();
    const client = new Redis(url);
    try {
      const first = await executor();
      const own = await announced('mine', client);
      await client.del(announcementKey('mine')); // as it expires while the process is stopped
      const second = await executor();
      const other = await announced('mine', client);
      expect(other.run).not.toBe(own.run);
      await eventually(() => expect(warned).toEqual([expect.stringContaining(other.url)]));
      expect(await announced('mine', client)).toEqual(other);
      await second.close?.();
      expect(await announced('mine', client)).toEqual(own);
      await first.close?.();
    } finally {
      client.disconnect();
      child.kill('SIGKILL');
    }
  }, 40_000);

  it('is refused before the run begins if it does not allow what a queue needs', async () => {
    const { child, url, executor } = await redisOfTest();
    const client = new Redis(url);
    const restore = withEnvironment({ REDIS_PASSWORD: 'some' });
    try {
      await client.call('ACL', 'SETUSER', 'some', 'on', '>some', '~*', '+@read', '+@write', '+@connection');
      await expect(executor(url.replace('//', '//some@'))).rejects.toThrow(/refuses what a queue needs: NOPERM/);
      await client.config('SET', 'requirepass', 'another');
      await expect(executor()).rejects.toThrow(/wants its password in REDIS_PASSWORD: WRONGPASS/);
    } finally {
      restore();
      client.disconnect();
      child.kill('SIGKILL');
    }
  });
});

describe.skipIf(server.error !== undefined)('the executor of a run whose Redis is gone', () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'ends its episodes at once, and itself in seconds, after %s',
    async (how) => {
      const { child, executor: open } = await redisOfTest();
      try {
        const executor = await open();
        const controller = new AbortController();
        child.kill(how);
        await takesTime(100); // the client learns that the connection is lost
        const playing = executor.playGroups({ ...step, signal: controller.signal });
        playing.catch(() => {});
        await takesTime(100);
        controller.abort(new Error('Ctrl-C'));
        await expect(playing).rejects.toThrow('Ctrl-C');
        await executor.close?.();
      } finally {
        child.kill('SIGKILL');
      }
    },
    20_000,
  );
});

it.skipIf(server.error !== undefined)(
  'a run says how to start a worker when the last one has died in the middle of an episode',
  async () => {
    const { child, url, executor, said } = await redisOfTest();
    const client = new Redis(url);
    try {
      const opened = await executor();
      const { run, ask } = await registered('mine', client);
      const playing = opened.playGroups(step);
      const queue = queueOf('mine', run.run);
      const connection = redisOptions(url);
      const often = { connection, lockDuration: 1000, stalledInterval: 500 };
      const dying = new Worker(queue, () => new Promise(() => {}), often);
      dying.on('error', () => {});
      while ((await client.keys(`bull:${queue}:*:lock`)).length === 0) await takesTime(20);
      await dying.close(true);
      while (!said.some((message) => message.startsWith('no worker plays for this run: drmas serve worker')))
        await takesTime(100);
      const worker = new Worker(queue, emptily(ask), often);
      worker.on('error', () => {});
      expect((await playing).flatMap(({ episodes }) => episodes)).toHaveLength(step.groupSize);
      await worker.close(true);
      await opened.close?.();
    } finally {
      client.disconnect();
      child.kill('SIGKILL');
    }
  },
  40_000,
);

it.skipIf(server.error !== undefined)(
  'a worker whose Redis is gone ends at once if it is interrupted',
  async () => {
    const { child, url } = await redisOfTest();
    const controller = new AbortController();
    let waits = () => {};
    const waiting = new Promise<void>((resolve) => {
      waits = resolve;
    });
    const host = { ...nodeHost({ threads: 1 }), signal: controller.signal, notify: () => waits() };
    const working = runWorker({ url, queue: 'mine', recipe, concurrency: 1 }, host);
    await waiting;
    child.kill('SIGKILL');
    await takesTime(200); // the client learns that the connection is lost
    controller.abort(new Error('Ctrl-C'));
    await working;
  },
  20_000,
);

describe.skipIf(unavailable !== undefined)('a worker without a recipe', () => {
  /** The output of a worker until a line matches. */
  function printed({ stderr }: ChildProcess, until: RegExp): Promise<string> {
    return new Promise((resolve) => {
      let text = '';
      const hear = (part: unknown) => {
        text += String(part);
        if (!until.test(text)) return;
        stderr?.off('data', hear);
        resolve(text);
      };
      stderr?.on('data', hear);
    });
  }

  it('runs no file that Redis names: unsigned, signed with another key, outside its folder, or of other code', async () => {
    const queue = `test-${process.pid}-evil`;
    const [evil, ran] = [join(root, 'evil.ts'), join(root, 'ran')];
    await writeFile(evil, `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(ran)}, '');\n`);
    const run = { run: 'x', url: 'http://127.0.0.1:9', source: evil, codeHash: 'other' };
    const announce = (text: string) => redis.set(announcementKey(queue), text, 'EX', 60);
    const words = ['--import', 'tsx', program, 'serve', 'worker', '--url', REDIS, '--queue', queue];
    const start = (...more: string[]) =>
      spawn(process.execPath, [...words, ...more], { stdio: ['ignore', 'ignore', 'pipe'] });
    const worker = start();
    try {
      await announce(JSON.stringify({ ...run, secret: 's' }));
      expect(await printed(worker, /ignoring .*\n/)).toContain('it is not the announcement of a run');
      await announce(new QueueKey('z'.repeat(32), 'elsewhere').sign(queue, run));
      expect(await printed(worker, /ignoring .*\n/)).toContain('not signed with the key in DRMAS_QUEUE_KEY');
      await announce(key.sign(queue, run));
      expect(await printed(worker, /not playing .*\n/)).toContain(
        `a worker without a recipe file runs only files below the folder that it names: drmas serve worker --url ${REDIS} --queue ${queue} --recipes ${root}`,
      );
      const strict = start('--recipes', join(root, 'nowhere'));
      expect(await printed(strict, /not playing .*\n/)).toContain(`${evil} does not lie below`);
      const inside = start('--recipes', root);
      expect(await printed(inside, /not playing .*\n/)).toMatch(
        /the code of \S+evil\.ts here differs from the code of the run/,
      );
      const named = start(evil);
      expect(await printed(named, /not playing .*\n/)).toMatch(
        /the code of \S+evil\.ts here differs from the code of the run/,
      );
      await Promise.all([strict, inside, named].map(kill));
      expect(existsSync(ran)).toBe(false);
      expect(worker.exitCode).toBeNull();
    } finally {
      await kill(worker);
      await redis.del(announcementKey(queue));
    }
  });

  it('plays for no run that lacks the key, although it announced itself with an old announcement', async () => {
    const queue = `test-${process.pid}-replayed`;
    const answer = { secret: 's', proof: 'guessed', recipe: 'r', settings: {}, leaseSeconds: 1 };
    const server = createServer((_, response) => void response.end(packed(answer))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const hash = await codeHash(recipe);
    const old = { run: 'old', url: `http://127.0.0.1:${port}`, source: recipe, codeHash: hash };
    await redis.set(announcementKey(queue), key.sign(queue, old), 'EX', 60);
    const worker = startWorker({ queue, concurrency: 1, toolMs: 0 });
    try {
      expect(await printed(worker, /not playing .*\n/)).toContain('it does not have the key');
    } finally {
      await kill(worker);
      server.close();
    }
  });
});
