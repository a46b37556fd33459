import { appendFile, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { kernelsEqual } from '../../../../../test/contracts/kernels.js';
import { temporaryRoot } from '../../../../../test/support/tiny-run.js';
import { checksum, shippedSources, sourceHash } from './build.js';
import { compileSets, inspectNative, loadNativeKernels } from './load-kernels.js';
import { loadPrebuilt, PREBUILT_MANIFEST, prebuiltDirectory } from './prebuilt.js';

const root = temporaryRoot();
const none = join(root, 'none');
const compiled = await loadNativeKernels({ threads: 1, prebuilt: none });
const name = `${process.platform}-${process.arch}${process.platform === 'linux' ? '-glibc' : ''}.node`;

/** A directory of addons that holds the one which was compiled here. */
async function shipped(directory: string, sources?: string): Promise<string> {
  const [set] = await compileSets([{}], {});
  if (set === undefined || 'reason' in set) throw new Error(set?.reason);
  const place = join(root, directory);
  await mkdir(place);
  await copyFile(set.path, join(place, name));
  const files = { [name]: checksum(await readFile(set.path)) };
  const manifest = { sources: sources ?? (await sourceHash(shippedSources())), compiler: 'this one', files };
  await writeFile(join(place, PREBUILT_MANIFEST), JSON.stringify(manifest));
  return place;
}

describe.skipIf('reason' in compiled)('addons that ship', () => {
  it('are loaded first, unless CXX names a compiler', async () => {
    const prebuilt = await shipped('whole');
    expect(await loadPrebuilt(prebuilt)).toMatchObject({ name });
    expect((await inspectNative({ prebuilt })).prebuilt).toMatchObject({ name });
    const environment = { ...process.env, CXX: 'g++' };
    expect((await inspectNative({ prebuilt, environment })).prebuilt).toEqual({ reason: 'CXX names a compiler' });
    // Without a compiler too.
    const loaded = await loadNativeKernels({ threads: 1, prebuilt, environment: { PATH: '/nowhere' } });
    expect(loaded).toHaveProperty('kernels');
    if ('kernels' in loaded) loaded.kernels.dispose();
  });

  it('are not loaded when they are damaged, of other sources, or not there; then they are compiled', {
    tags: 'verify',
  }, async () => {
    const damaged = await shipped('damaged');
    await appendFile(join(damaged, name), 'x');
    const old = await shipped('old', 'other');
    for (const [prebuilt, reason] of [
      [damaged, 'its checksum is not the noted one'],
      [old, 'those that ship were made of other sources'],
      [none, 'none ship with this copy of drmas'],
    ] as const) {
      expect(await loadPrebuilt(prebuilt)).toEqual({ reason: expect.stringContaining(reason) });
      const loaded = await loadNativeKernels({ threads: 1, prebuilt });
      expect(loaded).toHaveProperty('kernels');
      if ('kernels' in loaded) loaded.kernels.dispose();
    }
  });
});

const here = await loadPrebuilt();
describe.skipIf('reason' in here || 'reason' in compiled)('the addon of npm run generate -- prebuilt', () => {
  it.each(['avx512', 'avx2', 'portable'] as const)(
    'computes the bits of the one compiled here: %s',
    {
      tags: 'verify',
    },
    async (isa) => {
      const open = async (prebuilt: string) => {
        const loaded = await loadNativeKernels({ threads: 2, isa, prebuilt });
        return 'kernels' in loaded ? loaded.kernels : undefined;
      };
      const [shipped, local] = [await open(prebuiltDirectory()), await open(none)];
      expect(shipped === undefined).toBe(local === undefined);
      if (shipped === undefined || local === undefined) return; // this processor does not have the instructions
      kernelsEqual(shipped, local);
      shipped.dispose();
      local.dispose();
    },
  );
});
