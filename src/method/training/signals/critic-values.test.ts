import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeFiles } from '@drmas/engine/platform';
import { expect, it } from 'vitest';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { openCritics } from './critic-values.js';

const root = temporaryRoot();

it("opens a critic from a checkpoint, or on its policy's weights if the recipe had none before", async () => {
  const opened: unknown[] = [];
  const warned: string[] = [];
  const open = async (spec: object) => void opened.push(spec);
  const models = ['solver', 'verifier', 'judge'].map((name) => {
    return { name, handle: name, backend: { open }, settings: name === 'judge' ? {} : { critic: {} } };
  });
  const host = { files: nodeFiles, warn: (_: string, message: string) => void warned.push(message) };
  const critics = (directory?: string) =>
    openCritics({ trained: models, host } as never, directory === undefined ? undefined : { step: 1, directory });
  const stored = join(root, 'solver.critic');
  await mkdir(stored);
  expect([...(await critics(root)).keys()]).toEqual(['solver', 'verifier']);
  expect(opened).toEqual([
    { type: 'like', policy: 'solver', directory: stored },
    { type: 'like', policy: 'verifier', directory: undefined },
  ]);
  expect(warned).toEqual([
    expect.stringMatching(/^the critic of 'verifier' begins anew, because .*verifier.critic is not/),
  ]);
  await critics();
  expect(warned).toHaveLength(1);
});
