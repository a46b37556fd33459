import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { backendContract } from '../../../test/contracts/backend.js';
import { plainAdamW } from '../../../test/support/adamw.js';
import { coarseAndFine } from '../../../test/support/bfloat16-checkpoint.js';
import { sampleOf } from '../../../test/support/samples.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { CheckpointError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { randomKey } from '../../core/random.js';
import { openModelDirectory } from '../../model/formats/hugging-face-directory.js';
import { readTensor } from '../../model/formats/safetensors.js';
import type { NamedTensor } from '../../model/formats/tensor.js';
import { bytesTokenizer } from '../../model/tokenizers/bytes.js';
import { nodeFiles } from '../../platform/node-files.js';
import { EmbeddedBackend } from './embedded-backend.js';

const root = temporaryRoot();
backendContract('the embedded engine', () => EmbeddedBackend.start({ threads: 2, files: nodeFiles }), root);

/** Files of which `left` more pieces can be read. */
function failingDisk(): { left: number; readonly files: Files } {
  const disk = { left: Number.POSITIVE_INFINITY, files: nodeFiles };
  const readBytes: Files['readBytes'] = async (...range) => {
    if (disk.left-- <= 0) throw new Error('EIO: the disk is gone');
    return nodeFiles.readBytes(...range);
  };
  disk.files = { ...nodeFiles, readBytes };
  return disk;
}

describe('a checkpoint that cannot be read to its end', () => {
  const config = {
    ...{ vocabSize: 261, width: 8, layers: 1, heads: 2, kvHeads: 1, headDim: 4, feedForward: 12 },
    ...{ context: 64, ropeBase: 10_000, normEpsilon: 1e-6 },
  };
  const tokens = Int32Array.of(1, 2, 3);

  it('leaves no policy behind, and no base; the next attempt reads it whole', async () => {
    const directory = await writeBaseModel(root, { name: 'unreadable', config });
    const disk = failingDisk();
    const backend = await EmbeddedBackend.start({ threads: 1, files: disk.files });
    const whole = { type: 'directory', directory } as const;
    const settings = { rank: 1, alpha: 1, targets: ['q'] as const };
    const adapted = { type: 'adapter', base: whole, adapter: settings, seed: 1 } as const;
    for (const spec of [whole, adapted]) {
      disk.left = 6;
      const failed = backend.createPolicy(spec.type, spec);
      await expect(failed).rejects.toThrow(CheckpointError);
      await expect(failed).rejects.toThrow(/unreadable\/model\.safetensors: cannot be read: EIO/);
      disk.left = Number.POSITIVE_INFINITY;
      await backend.createPolicy(spec.type, spec);
    }
    // An adapter changes nothing at first.
    expect(await backend.logits('adapter', tokens)).toEqual(await backend.logits('directory', tokens));
    const other = await EmbeddedBackend.start({ threads: 1, files: nodeFiles });
    await other.createPolicy('other', whole);
    expect(await other.logits('other', tokens)).toEqual(await backend.logits('directory', tokens));
    await Promise.all([backend.dispose(), other.dispose()]);
  });

  it('leaves a policy that was there unused until it is read whole', async () => {
    const directory = await writeBaseModel(root, { name: 'interrupted', config });
    const disk = failingDisk();
    const backend = await EmbeddedBackend.start({ threads: 1, files: disk.files });
    await backend.createPolicy('policy', { type: 'random', config, tokenizer: bytesTokenizer(), seed: 7 });
    disk.left = 6;
    await expect(backend.load('policy', directory, { optimizer: false })).rejects.toThrow(CheckpointError);
    const broken = /'policy' has a part of a checkpoint that could not be read/;
    await expect(backend.logits('policy', tokens)).rejects.toThrow(broken);
    await expect(backend.save('policy', root, { optimizer: false })).rejects.toThrow(broken);
    disk.left = Number.POSITIVE_INFINITY;
    await backend.load('policy', directory, { optimizer: false });
    await backend.createPolicy('whole', { type: 'directory', directory });
    expect(await backend.logits('policy', tokens)).toEqual(await backend.logits('whole', tokens));
    await backend.dispose();
  });
});

describe('a base whose matrices are stored in bfloat16', () => {
  const adapter = { rank: 2, alpha: 4, targets: ['q', 'v', 'down'] } as const;
  const optimizer = plainAdamW(1e-2);
  const tokens = Int32Array.of(1, 2, 3, 4, 5, 6);

  /** The same numbers in two directories. */
  async function directories() {
    const fine = await writeBaseModel(root, { name: 'fine', config: { attentionBias: 'qkv', untiedOutput: true } });
    const coarse = await writeBaseModel(root, { name: 'coarse', config: { attentionBias: 'qkv', untiedOutput: true } });
    const { tensors } = await openModelDirectory(nodeFiles, fine);
    const named: NamedTensor[] = [];
    for (const tensor of tensors.values()) named.push({ ...tensor, data: await readTensor(tensor) });
    const files = coarseAndFine(named);
    await nodeFiles.write(`${fine}/model.safetensors`, files.fine);
    await nodeFiles.write(`${coarse}/model.safetensors`, files.coarse);
    return { coarse, fine };
  }

  it('gives every result the bits that float32 gives: frozen, adapted, trained, sampled, merged, identified', async () => {
    const { coarse, fine } = await directories();
    const backend = await EmbeddedBackend.start({ threads: 2, files: nodeFiles });
    const both = {
      coarse: { type: 'directory', directory: coarse },
      fine: { type: 'directory', directory: fine },
    } as const;
    const equal = async (work: (name: string, kind: 'coarse' | 'fine') => Promise<unknown>, name: string) =>
      expect(await work(`${name} coarse`, 'coarse')).toEqual(await work(`${name} fine`, 'fine'));
    for (const [kind, base] of Object.entries(both)) {
      await backend.createPolicy(`frozen ${kind}`, { type: 'frozen', base });
      await backend.createPolicy(`adapted ${kind}`, { type: 'adapter', base, adapter, seed: 5 });
    }
    const sample = sampleOf([...tokens], [1, 1, 1, 1, 1, 1]);
    const play = async (policy: string) => {
      await backend.publish(policy);
      await backend.sync(policy);
      const sampling = { temperature: 1, topK: 0, topP: 1, maxTokens: 9, stopTokens: [] };
      return backend.generate({ policy, prompt: [1, 2, 3], ...sampling, key: randomKey('base') });
    };
    for (const name of ['frozen', 'adapted']) {
      await equal((policy) => backend.logits(policy, tokens), name);
      await equal((policy) => backend.forward(policy, [sample]), name);
      await equal(play, name);
    }
    for (let step = 0; step < 2; step++) {
      const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
      await equal((policy) => backend.forwardBackward(policy, [sample], options), 'adapted');
      await equal((policy) => backend.optimStep(policy, { optimizer, clipNorm: 1 }), 'adapted');
      await equal((policy) => backend.logits(policy, tokens), 'adapted');
      await equal(play, 'adapted');
    }
    const saved = (name: string) => `${root}/saved ${name}`;
    const write = async (policy: string, merge: boolean) => {
      await nodeFiles.makeDirectory(saved(policy));
      await backend.save(policy, saved(policy), { optimizer: false, merge });
      return readFile(`${saved(policy)}/model.safetensors`);
    };
    await equal((policy) => write(policy, true), 'frozen');
    expect(await readFile(`${saved('frozen coarse')}/model.safetensors`)).toEqual(
      await readFile(`${fine}/model.safetensors`),
    );
    await equal((policy) => write(policy, true), 'adapted');

    // An adapter of the one is known to fit the other.
    const own = `${root}/saved adapter`;
    await nodeFiles.makeDirectory(own);
    await backend.save('adapted fine', own, { optimizer: false });
    const again = await backend.createPolicy('again', { type: 'saved-adapter', base: both.coarse, directory: own });
    expect(again.warnings).toBeUndefined();
    expect(await backend.logits('again', tokens)).toEqual(await backend.logits('adapted fine', tokens));
    await backend.dispose();
  });

  it('is not trained, nor loaded into', async () => {
    const { coarse } = await directories();
    const backend = await EmbeddedBackend.start({ threads: 1, files: nodeFiles });
    await backend.createPolicy('judge', { type: 'frozen', base: { type: 'directory', directory: coarse } });
    const before = await backend.logits('judge', tokens);
    const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
    const sample = sampleOf([...tokens], [1, 1, 1, 1, 1, 1]);
    await expect(backend.forwardBackward('judge', [sample], options)).rejects.toThrow(/frozen/);
    await expect(backend.optimStep('judge', { optimizer, clipNorm: 1 })).rejects.toThrow(/frozen/);
    await expect(backend.load('judge', coarse, { optimizer: false })).rejects.toThrow(/'judge' is frozen/);
    await expect(backend.critics.create('critic', 'judge')).rejects.toThrow(/frozen/);
    expect(await backend.logits('judge', tokens)).toEqual(before);
    await backend.dispose();
  });
});
