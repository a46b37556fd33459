// @module-tag verify
import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { filesBelow } from '@drmas/engine/disk';
import { cacheDirectory, nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { type CompiledProgram, compiledProgram } from '../../../test/support/compiled-program.js';
import { withEnvironment } from '../../../test/support/environment.js';
import { type RayFake, rayFake } from '../../../test/support/ray-fake.js';
import { S3_REGION, type S3Fake, s3Fake } from '../../../test/support/s3-fake.js';
import { eventually } from '../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { lines, timeless, twoVariants, WAIT, writeTinyStudy } from '../../../test/support/tiny-study.js';

const root = temporaryRoot();
let file: string;

const SECRET = 'a-secret-of-the-nodes';
let ray: RayFake;
let s3: S3Fake;
let restore: () => void;
let program: CompiledProgram;
beforeAll(async () => {
  s3 = await s3Fake(['mine']);
  restore = withEnvironment({
    AWS_ACCESS_KEY_ID: 'AKIDALL',
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_REGION: S3_REGION,
    AWS_ENDPOINT_URL: s3.url,
  });
  program = await compiledProgram();
  file = await writeTinyStudy(root);
  ray = await rayFake(unzipped);
});
afterAll(async () => {
  await ray.close();
  await s3.close();
  restore();
  await program.remove();
});

/** The flags of a study there, whose store is a folder with compiled kernels, or a place of S3. */
async function onRay(name: string, kind: 'folder' | 'S3' = 'folder'): Promise<string[]> {
  const folder = join(root, name);
  if (kind === 'folder') {
    await mkdir(join(folder, 'cache'), { recursive: true });
    await symlink(join(cacheDirectory(), 'native'), join(folder, 'cache', 'native'));
  }
  const store = kind === 'folder' ? folder : `s3://mine/${name}`;
  return ['--ray', ray.url, '--store', store, '--ray-command', `node ${program.main}`];
}

const variants = twoVariants(2);
let home: Awaited<ReturnType<typeof drmas>>;
beforeAll(async () => {
  home = await drmas(['ablate', file, ...variants, '--run', join(root, 'home')]);
  expect(home.code).toBe(0);
}, 60_000);

describe('a study on Ray', () => {
  it.each(['folder', 'S3'] as const)(
    'finds what it finds at home, by a store in %s, although a node dies',
    async (kind) => {
      const away = join(root, `away-${kind}`);
      const there = await onRay(`store-${kind}`, kind);
      const [packagesBefore, jobsBefore] = [ray.packages.size, ray.jobs.size];
      ray.refuse(1);
      ray.killOnce('drmas-seed-1', '"type":"checkpoint"');
      const { code, out } = await drmas(['ablate', file, ...variants, '--run', away, ...there]);
      expect(
        lines(out)
          .at(-1)
          .runs.map(({ message }: { message?: string }) => message),
      ).toEqual(Array(4).fill(undefined));
      expect(code).toBe(0);
      expect(timeless(out)).toEqual(timeless(home.out));
      expect(ray.packages.size).toBe(packagesBefore + (kind === 'folder' ? 1 : 0)); // one for both
      expect(ray.jobs.size).toBe(jobsBefore + 5);
      // The job that died was submitted again, and its run went on from its checkpoint: the step before it was not
      // played anew, for it has the time that it had.
      const second = [...ray.jobs.keys()].slice(jobsBefore).filter((id) => id.endsWith('-2'));
      expect(second).toEqual([expect.stringMatching(/^drmas-drmas-seed-1-/)]);
      const [before, after] = [1, 2].map((attempt) => {
        const { printed = '' } = ray.jobs.get(second[0]?.replace(/2$/, `${attempt}`) ?? '') ?? {};
        return printed.split('\n').find((line) => line.startsWith('{"type":"step","step":2,'));
      });
      expect(before).toBeDefined();
      expect(after).toBe(before);
      // The second run of a pair was given the warm start of the first, with the times that it had.
      const warmups = async (variant: string) =>
        (await readFile(join(away, `${variant}-seed-2`, 'events.jsonl'), 'utf8')).match(/^.*"type":"warmup".*$/gm);
      expect((await warmups('grpo'))?.length).toBeGreaterThan(0);
      expect(await warmups('drmas')).toEqual(await warmups('grpo'));
      // Started again it finds its jobs: none is submitted twice.
      const jobs = ray.jobs.size;
      const later = await drmas(['ablate', away, '--json', ...there]);
      expect(timeless(later.out)).toEqual(timeless(home.out));
      expect(ray.jobs.size).toBe(jobs);
      // Keys of the store are on the nodes, and nowhere else.
      const shown = [...ray.jobs.values()].map(({ entrypoint, environment, printed }) => [
        entrypoint,
        environment,
        printed,
      ]);
      const packed = [...ray.packages.values()].map((bytes) => [...unzipped(bytes).values()]);
      const kept = await Promise.all(
        (await filesBelow(nodeFiles, away)).map((name) => readFile(join(away, name), 'utf8')),
      );
      expect(JSON.stringify([shown, packed, kept, out, later])).not.toContain(SECRET);
      if (kind === 'S3')
        expect(ray.jobs.get(second[0] ?? '')?.environment).toEqual({ AWS_REGION: S3_REGION, AWS_ENDPOINT_URL: s3.url });
    },
    240_000,
  );

  it('leaves a job alone where it is interrupted, and finds it again', async () => {
    const there = await onRay('store-of-one');
    const words = ['train', file, '--run', join(root, 'one'), '--threads', '1', '--json', ...there];
    const jobIds = () => [...ray.jobs.keys()].filter((id) => id.startsWith('drmas-one-'));
    const controller = new AbortController();
    const begun = drmas(words, { signal: controller.signal });
    await eventually(() => jobIds().length > 0);
    controller.abort(new Error('interrupted'));
    const { code, err } = await begun;
    expect(err).toMatch(/its job on Ray continues/);
    expect(code).toBe(130);
    const { code: ended, out } = await drmas([...words, '--resume']);
    expect(ended).toBe(0);
    expect(lines(out).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(jobIds()).toHaveLength(1);
  }, 120_000);

  it('lets a job be that goes on although Ray has lost its node', async () => {
    const there = await onRay('store-cut-off');
    ray.cutOffOnce('drmas-cut-', '"type":"checkpoint"');
    const short = ['--set', 'training.steps=4', '--threads', '1', '--json'];
    process.env[WAIT] = '1000'; // so that it still goes on when it is submitted again
    const { code, out, err } = await drmas(['train', file, '--run', join(root, 'cut'), ...short, ...there]).finally(
      () => delete process.env[WAIT],
    );
    expect(err).toMatch(/died \(Job supervisor actor died unexpectedly\.\): submitted again/);
    expect(code).toBe(0);
    const steps = lines(out).flatMap(({ type, step }) => (type === 'step' ? [step] : []));
    expect(steps).toEqual([1, 2, 3, 4]);
  }, 240_000);

  it('asks for the log of a job that succeeded until it has all events, and fails if there is no log', async () => {
    const words = ['--set', 'training.steps=2', '--threads', '1', '--json', ...(await onRay('store-unread'))];
    ray.failLog('drmas-unread-', 503, 2);
    const { code, out, err } = await drmas(['train', file, '--run', join(root, 'unread'), ...words]);
    expect(err).toMatch(
      /Ray does not answer \(Ray answered GET the log of drmas-unread-\S+ with 503: .*Ray answers again/s,
    );
    expect(lines(out).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(code).toBe(0);
    ray.failLog('drmas-lost-', 404, 1);
    expect(await drmas(['train', file, '--run', join(root, 'lost'), ...words])).toMatchObject({
      code: 1,
      err: /the job drmas-lost-\S+ succeeded, but Ray's log of it lacks the end of the run/,
    });
  }, 120_000);

  it('submits nothing where its store cannot be used', async () => {
    const jobs = ray.jobs.size;
    const words = ['train', file, '--run', join(root, 'never'), '--ray', ray.url, '--store'];
    expect(await drmas([...words, 's3://nobodys/x'])).toMatchObject({ code: 2, err: /there is no bucket nobodys/ });
    expect(await drmas([...words, 's3://mine/x?y'])).toMatchObject({ code: 2, err: /expected --store s3:/ });
    expect(await drmas([...words, join(file, 'x')])).toMatchObject({ code: 2, err: /mine\.ts\/x/ });
    expect(ray.jobs.size).toBe(jobs);
    expect(existsSync(join(root, 'never'))).toBe(false);
  });

  it('refuses an address at which there is no Ray, and flags that need it', async () => {
    expect(await drmas(['ablate', file, ...variants, '--ray', 'http://127.0.0.1:9'])).toMatchObject({
      code: 2,
      err: /there is no Ray at http:\/\/127\.0\.0\.1:9/,
    });
    expect((await drmas(['ablate', file, ...variants, '--store', root])).err).toMatch(/need --ray/);
  });
});

/** Reads an archive by its local headers. */
function unzipped(bytes: Uint8Array): Map<string, string> {
  const data = Buffer.from(bytes);
  const files = new Map<string, string>();
  for (let at = 0; data.readUInt32LE(at) === 0x04034b50; ) {
    const [size, name] = [data.readUInt32LE(at + 18), data.readUInt16LE(at + 26)];
    const begin = at + 30 + name;
    const path = data.subarray(at + 30, begin).toString();
    files.set(path, inflateRawSync(data.subarray(begin, begin + size)).toString());
    at = begin + size;
  }
  return files;
}
