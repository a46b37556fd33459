import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objectStoreContract } from '../../../test/contracts/objects.js';
import { FolderObjects, openObjects } from './open-objects.js';

describe('folder objects', () => {
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-folder-'));
  });
  afterAll(() => rm(root, { recursive: true }));

  const open = async () => new FolderObjects(await mkdtemp(join(root, 'store-')));
  objectStoreContract('a folder', open, {}, { tags: 'verify' });

  it('is not what another scheme names', async () => {
    for (const place of ['s4://bucket/runs', 'gs://bucket', 'https://example.org/runs'])
      await expect(openObjects(place)).rejects.toThrow(/^expected --store s3:\/\/bucket\/prefix/);
  });

  it('refuses a folder that cannot be made', async () => {
    await writeFile(join(root, 'file'), '');
    await expect(openObjects(join(root, 'file', 'store'))).rejects.toMatchObject({
      name: 'StoreError',
      message: expect.stringContaining(join(root, 'file', 'store')),
    });
  });
});
