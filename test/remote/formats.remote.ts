/** The files of `save`, read by the usual libraries for such files: they give the same logits. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { goldenModels, packedModels, writeGoldenModel } from '../goldens.js';
import { drmas } from '../support/command-line.js';
import { tinyRecipe, trainTiny } from '../support/tiny-run.js';

const remote = inject('remote');
const parity = (name: string) => fileURLToPath(new URL(`../parity/${name}`, import.meta.url));
const run = promisify(execFile);

describe.skipIf('unavailable' in remote)('saved files', () => {
  const { python, model } = 'unavailable' in remote ? { python: '', model: '' } : remote;
  let root: string;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'drmas-parity-'));
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  const ours = (script: string, ...words: string[]) => run('node', ['--import', 'tsx', parity(script), ...words]);
  /** Rejects if logits differ by more than 3e-4, or if a tensor is left over or missing. */
  const theirs = async (script: string, ...words: string[]) => {
    const { stdout } = await run(python, [parity(script), ...words], { env: { ...process.env, HF_HUB_OFFLINE: '1' } });
    expect(stdout).toMatch(/largest difference/);
    console.log(stdout.trim());
  };

  it('of models are loaded by transformers', async () => {
    const goldens = [...goldenModels, ...packedModels].map((name) => writeGoldenModel(join(root, name), name));
    const saved = await Promise.all(
      [model, ...goldens].map(async (from, place) => {
        const to = join(root, `saved-${place}`);
        await ours('save.ts', from, to);
        return to;
      }),
    );
    await theirs('transformers.py', ...saved);
  });

  it('of an agent with a tokenizer of drmas answer in the code that export prints', async () => {
    const { path } = await trainTiny(root, tinyRecipe({}, ['training.steps=1']));
    const { out } = await drmas(['export', path, '--agent', 'solver', '--to', join(root, 'exported')]);
    const [, code = ''] = /^with transformers, in Python\n((?: {2}.*\n)+)/m.exec(out) ?? [];
    expect(code).toContain('"content": "<solver>"');
    await run(python, ['-c', code.replace(/^ {2}/gm, '')], { env: { ...process.env, HF_HUB_OFFLINE: '1' } });
  });

  it.each(['qwen3', 'lfm2'])(
    'of an adapter of %s are loaded by peft, written anew, and loaded here again',
    async (of) => {
      const base = of === 'qwen3' ? model : writeGoldenModel(join(root, 'base'), 'lfm2-mini');
      const [adapter, resaved, copy, merged] = ['adapter', 'resaved', 'copy', 'merged'].map((name) =>
        join(root, `${of}-${name}`),
      );
      await ours('save.ts', base, adapter as string, '--adapter');
      await theirs('peft.py', adapter as string, '--resave', resaved as string);
      await ours('save.ts', resaved as string, copy as string);
      await theirs('peft.py', copy as string);
      await ours('save.ts', adapter as string, merged as string, '--merge');
      await theirs('transformers.py', merged as string);
    },
  );
});
