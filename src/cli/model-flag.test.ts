import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { goldenPath } from '../../test/goldens.js';
import { drmas, plainRecipe } from '../../test/support/command-line.js';
import { temporaryRoot } from '../../test/support/tiny-run.js';
import { nodeFiles } from '../base/platform/node-files.js';
import { ggufOf } from '../engine/model/formats/gguf/gguf-model.js';
import { openModelDirectory } from '../engine/model/formats/hugging-face-directory.js';
import { RunDirectory } from '../method/store/run-directory.js';
import { withDevice } from './flags.js';

const root = temporaryRoot();

describe('--model', () => {
  it('becomes a setting that --set can refine, with paths from the working directory', async () => {
    await mkdir(join(root, 'm'));
    const near = relative(process.cwd(), join(root, 'm'));
    const lora = (path: string) => `model={"type":"lora","base":{"type":"checkpoint","path":"${path}"},"rank":16}`;
    expect(withDevice({ set: ['model.rank=4'], model: near })).toEqual({
      set: [lora(join(root, 'm')), 'model.rank=4'],
    });
    expect(withDevice({ set: [], model: 'smollm2:135m' }).set).toEqual([lora('smollm2:135m')]);
    expect(withDevice({ set: ['seed=1'] })).toEqual({ set: ['seed=1'] });
  });

  it("trains adapters on a GGUF file in place of a file's own model, without a warm start", async () => {
    const { model, tokenizer, tensors } = await openModelDirectory(nodeFiles, goldenPath('models/qwen2-mini'));
    const gguf = join(root, 'model.gguf');
    await writeFile(gguf, ggufOf({ config: model.config, tokenizer, name: 'x' }, tensors.values()));
    const file = join(root, 'pair.ts');
    await writeFile(file, plainRecipe);
    const run = join(root, 'run');
    const short = ['training.steps=1', 'training.tasksPerStep=1', 'training.groupSize=2', 'evaluation.tasks=1'];
    const set = [...short, 'evaluation.samples=1', 'warmStart=null', 'model.rank=2'].flatMap((each) => ['--set', each]);
    expect(await drmas(['train', file, '--model', gguf, '--run', run, '--threads', '1', ...set])).toMatchObject({
      code: 0,
    });
    const { record } = await RunDirectory.open(run);
    expect(record.resolved).toMatchObject({
      policies: { solver: { model: { type: 'lora', rank: 2, base: { type: 'checkpoint', path: gguf } } } },
    });
    const to = join(root, 'out');
    expect(await drmas(['export', run, '--agent', 'solver', '--to', to])).toMatchObject({ code: 0 });
    expect(await nodeFiles.exists(join(to, 'model.safetensors'))).toBe(true); // merged with the file's weights
  });
});
