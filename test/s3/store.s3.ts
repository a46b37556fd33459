/** Copies of runs on a real server with S3's interface. Killed runs continue from them in another place. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { RandomStream } from '@drmas/engine/math';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openObjects } from '../../src/cluster/objects/open-objects.js';
import { S3Objects } from '../../src/cluster/objects/s3-objects.js';
import { objectStoreContract, storedSteps } from '../contracts/objects.js';
import { drmas } from '../support/command-line.js';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { type S3Server, s3Environment, startS3Server } from '../support/s3-server.js';
import { takesTime } from '../support/time-and-chance.js';
import { temporaryRoot, useCache } from '../support/tiny-run.js';
import { WAIT, writeTinyStudy } from '../support/tiny-study.js';

const environment = await s3Environment();
const available = !('unavailable' in environment);
if (!available) console.log(`SKIPPED: the tests on a server of S3, because ${environment.unavailable}`);

const root = temporaryRoot();
let server: S3Server;
let program: CompiledProgram;
beforeAll(async () => {
  if (!available) return;
  server = await startS3Server(environment.python);
  program = await compiledProgram();
});
afterAll(async () => {
  await program?.remove();
  await server?.stop();
});

describe.skipIf(!available)('a real server', () => {
  let opened = 0;
  objectStoreContract('S3', () =>
    S3Objects.open(
      { bucket: 'mine', prefix: `contract ${opened++}/` },
      { environment: process.env, partBytes: 5 << 20 },
    ),
  );

  it('names a fault before training begins', async () => {
    const file = await writeTinyStudy(root);
    const never = await drmas(['train', file, '--run', join(root, 'never'), '--store', 's3://nobodys/x']);
    expect(never).toMatchObject({ code: 2, err: expect.stringContaining('there is no bucket nobodys') });
  });

  it('has all files of a run that is killed again and again, which ends as if it had not been killed', async () => {
    const file = await writeTinyStudy(root);
    const train = (run: string, ...words: string[]) => [
      'train',
      file,
      '--run',
      run,
      '--threads',
      '1',
      '--json',
      ...words,
    ];
    const home = join(root, 'home', 'mine');
    useCache(join(root, 'cache-home'));
    expect((await drmas(train(home))).code).toBe(0);

    let [code, last, kills]: [number | null, string, number] = [null, '', 0];
    for (let life = 1; code !== 0; life++) {
      last = join(root, `life-${life}`, 'mine');
      useCache(join(root, `cache-${life}`)); // another machine
      const child = spawn(process.execPath, [program.main, ...train(last, '--resume', '--store', 's3://mine/lives')], {
        env: { ...process.env, [WAIT]: '100' },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      // Each life but the last ends a random while after its first new checkpoint.
      if (life <= 4) void killAfter(child, life).then(() => kills++);
      [code] = (await once(child, 'close')) as [number | null];
      expect([0, null]).toContain(code);
    }
    expect(kills).toBeGreaterThan(2);
    expect(await timeless(join(last, 'events.jsonl'))).toEqual(await timeless(join(home, 'events.jsonl')));
    for (const agent of ['solver', 'verifier'])
      for (const name of ['model.safetensors', 'optimizer.safetensors']) {
        const weights = (run: string) => readFile(join(run, 'checkpoints', 'step-000008', agent, name));
        expect(Buffer.compare(await weights(last), await weights(home))).toBe(0);
      }
    // Checkpoints of earlier processes are gone, except at the last step, at which such a process may have ended.
    const stored = await storedSteps(await openObjects('s3://mine/lives'), 'mine');
    expect(stored.filter((step) => step < 8)).toEqual([2, 4, 6]);
    expect(stored).toContain(8);
    // A new run does not begin if a run of its name exists.
    const again = await drmas(train(join(root, 'again', 'mine'), '--store', 's3://mine/lives'));
    expect(again).toMatchObject({ code: 2, err: expect.stringContaining('resume it with --resume') });
  });
});

const moments = new RandomStream('moments of kills');

/** Kills a process at once, a random moment after it has written so many checkpoints. */
async function killAfter(child: ChildProcess, checkpoints: number): Promise<void> {
  let seen = 0;
  if (child.stdout === null) throw new Error('no output');
  for await (const line of createInterface({ input: child.stdout }))
    if (line.includes('"type":"checkpoint"') && ++seen === checkpoints) break;
  await takesTime(moments.uniform() * 300);
  child.kill('SIGKILL');
}

const timeless = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line, (key, value) => (/^time$|[sS]econds/.test(key) ? undefined : value)));
