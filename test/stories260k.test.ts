import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';

const data = fileURLToPath(new URL('./fixtures/stories260k', import.meta.url));

describe('examples/convert-llama2c.ts', () => {
  it('writes a model that tells the story which transformers tells with it', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'drmas-stories-'));
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    const before = process.argv;
    process.argv = ['node', 'convert', join(data, 'stories260K.bin'), join(data, 'tok512.bin'), directory];
    try {
      await import('../examples/convert-llama2c.js');
      expect(log.mock.calls.flat().join('\n')).toContain(
        'One day, she saw a big, red ball. She wanted to play with it, but it was too high.\nLily\'s mom said, "Lily,',
      );
    } finally {
      process.argv = before;
      log.mockRestore();
      await rm(directory, { recursive: true });
    }
  });
});
