import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { type CompiledProgram, compiledProgram } from '../../../test/support/compiled-program.js';
import { type RayFake, rayFake } from '../../../test/support/ray-fake.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { lines, timeless, twoVariants, WAIT, writeTinyStudy } from '../../../test/support/tiny-study.js';
import { cacheDirectory } from '../../tensor/native/build-cache.js';

const root = temporaryRoot();
let file: string;

let ray: RayFake;
let program: CompiledProgram;
beforeAll(async () => {
  program = await compiledProgram();
  file = await writeTinyStudy(root);
  ray = await rayFake(unzipped);
});
afterAll(async () => {
  await ray.close();
  await program.remove();
});

/** The flags of a study there; its store has compiled kernels, and nothing else yet. */
async function onRay(name: string): Promise<string[]> {
  const store = join(root, name);
  await mkdir(join(store, 'cache'), { recursive: true });
  await symlink(join(cacheDirectory(), 'native'), join(store, 'cache', 'native'));
  return ['--ray', ray.url, '--store', store, '--ray-command', `node ${program.main}`];
}

const variants = twoVariants(2);

describe('a study on Ray', () => {
  it('finds what the same study finds at home, although a node dies', async () => {
    const home = await drmas(['ablate', file, ...variants, '--run', join(root, 'home')]);
    expect(home.code).toBe(0);
    const away = join(root, 'away');
    const there = await onRay('store');
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
    expect(ray.packages.size).toBe(1);
    // The job that died was submitted again, and its run went on from its checkpoint: the step before it was not played
    // anew, for it has the time that it had.
    const second = [...ray.jobs.keys()].filter((id) => id.endsWith('-2'));
    expect(second).toEqual([expect.stringMatching(/^drmas-drmas-seed-1-/)]);
    const [before, after] = [1, 2].map((attempt) => {
      const { printed = '' } = ray.jobs.get(second[0]?.replace(/2$/, `${attempt}`) ?? '') ?? {};
      return printed.split('\n').find((line) => line.startsWith('{"type":"step","step":2,'));
    });
    expect(before).toBeDefined();
    expect(after).toBe(before);
    // Started again it finds its jobs: none is submitted twice.
    const jobs = ray.jobs.size;
    const later = await drmas(['ablate', away, '--json', ...there]);
    expect(timeless(later.out)).toEqual(timeless(home.out));
    expect(ray.jobs.size).toBe(jobs);
  }, 240_000);

  it('leaves a job alone where it is interrupted, and finds it again', async () => {
    const there = await onRay('store-of-one');
    const words = ['train', file, '--run', join(root, 'one'), '--threads', '1', '--json', ...there];
    const jobIds = () => [...ray.jobs.keys()].filter((id) => id.startsWith('drmas-one-'));
    const controller = new AbortController();
    const begun = drmas(words, { signal: controller.signal });
    while (jobIds().length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    controller.abort(new Error('interrupted'));
    const { code, err } = await begun;
    expect(err).toMatch(/its job on Ray goes on/);
    expect(code).toBe(130);
    const { code: ended, out } = await drmas([...words, '--go-on']);
    expect(ended).toBe(0);
    expect(lines(out).at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed' });
    expect(jobIds()).toHaveLength(1);
  }, 120_000);

  it('waits for a job that goes on although Ray has lost its node', async () => {
    const there = await onRay('store-cut-off');
    ray.cutOffOnce('drmas-cut-', '"type":"checkpoint"');
    const short = ['--set', 'training.steps=4', '--threads', '1', '--json'];
    process.env[WAIT] = '4000'; // so that it still goes on when it is submitted again
    const { code, out, err } = await drmas(['train', file, '--run', join(root, 'cut'), ...short, ...there]).finally(
      () => delete process.env[WAIT],
    );
    expect(err).toMatch(/an earlier one, on a node that Ray has lost, still writes its run\): submitted again/);
    expect(code).toBe(0);
    const steps = lines(out).flatMap(({ type, step }) => (type === 'step' ? [step] : []));
    expect(steps).toEqual([1, 2, 3, 4]);
  }, 240_000);

  it('refuses an address at which there is no Ray, and flags that need it', async () => {
    expect(await drmas(['ablate', file, ...variants, '--ray', 'http://127.0.0.1:9'])).toMatchObject({
      code: 2,
      err: /there is no Ray at http:\/\/127\.0\.0\.1:9/,
    });
    expect((await drmas(['train', file, '--store', root])).err).toMatch(/they need --ray/);
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
