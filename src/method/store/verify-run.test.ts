import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Files } from '@drmas/engine/host';
import { nodeFiles } from '@drmas/engine/platform';
import { expect, it } from 'vitest';
import { recordRun } from '../../../test/support/recorded-run.js';
import { verifyRun } from './verify-run.js';

it('reads one file at a time, however many steps a run has', async () => {
  const root = await mkdtemp(join(tmpdir(), 'drmas-verify-'));
  const path = join(root, 'run');
  const run = await recordRun(path);
  await run.close();
  await writeFile(join(path, 'episodes', 'step-000009.jsonl'), '{}\n');
  let [now, most] = [0, 0];
  const files: Files = {
    ...nodeFiles,
    async readBytes(...place) {
      most = Math.max(most, ++now);
      return nodeFiles.readBytes(...place).finally(() => now--);
    },
  };
  const states = await verifyRun(path, files);
  expect(states.filter(({ path }) => path.startsWith('episodes/')).map(({ state }) => state)).toEqual(
    expect.arrayContaining(['whole', 'unchecked']),
  );
  expect(most).toBe(1);
  await rm(root, { recursive: true });
});
