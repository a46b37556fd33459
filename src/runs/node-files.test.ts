import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { nodeFiles } from './node-files.js';

it('gives the size of files alone', async () => {
  expect(await nodeFiles.size('package.json')).toBeGreaterThan(100);
  await expect(nodeFiles.size(tmpdir())).rejects.toThrow('it is a directory');
  await expect(nodeFiles.size('/dev/null')).rejects.toThrow('it is no regular file');
});
