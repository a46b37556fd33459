import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { backendContract } from '../../../../test/contracts/backend/index.js';
import { plainAdamW } from '../../../../test/support/adamw.js';
import { coarseAndFine, ggufInBlocks } from '../../../../test/support/coarse-checkpoints.js';
import { safetensorsBytes } from '../../../../test/support/memory-files.js';
import { sampleOf } from '../../../../test/support/samples.js';
import { writeBaseModel } from '../../../../test/support/tinker-fake/base-model.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { CheckpointError } from '../base/core/errors.js';
import type { Files } from '../base/core/files.js';
import { randomKey } from '../base/core/random.js';
import { nodeFiles } from '../base/platform/node-files.js';
import type { ModelHandle } from '../contract/handles.js';
import type { Generation } from '../contract/sampling.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { openModelDirectory } from '../model/formats/hugging-face-directory.js';
import { readTensor } from '../model/formats/safetensors.js';
import { openStoredModel } from '../model/formats/stored-model.js';
import type { NamedTensor } from '../model/formats/tensor.js';
import { bytesTokenizer } from '../model/tokenizers/bytes.js';
import type { EmbeddedFrozen, EmbeddedPolicy } from './embedded-policy.js';
import { startEmbedded } from './start-embedded.js';

const tokenizer = bytesTokenizer();
const random = (seed: number, feedForward: number, context = 32): WeightsSpec => ({
  type: 'random',
  config: {
    vocabSize: tokenizer.vocabSize,
    width: 8,
    layers: 2,
    heads: 2,
    kvHeads: 1,
    headDim: 4,
    feedForward,
    context,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
  },
  tokenizer,
  seed,
});

backendContract('the embedded engine', {
  open: () => startEmbedded({ threads: 2, files: nodeFiles }),
  weights: (seed = 1) => random(seed, 12),
  misfit: random(1, 16),
  learns: 1,
  root: temporaryRoot(),
});

const root = temporaryRoot();
/** Files that fail after `left` more pieces were read. */
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
    vocabSize: 261,
    width: 8,
    layers: 1,
    heads: 2,
    kvHeads: 1,
    headDim: 4,
    feedForward: 12,
    context: 64,
    ropeBase: 10_000,
    normEpsilon: 1e-6,
  };
  const tokens = Int32Array.of(1, 2, 3);

  const slow = { tags: 'verify' };

  it('leaves no policy behind, and no base; the next attempt reads it whole', slow, async () => {
    const directory = await writeBaseModel(root, { name: 'unreadable', config });
    const disk = failingDisk();
    const backend = await startEmbedded({ threads: 1, files: disk.files });
    const whole = { type: 'directory', directory } as const;
    const settings = { rank: 1, alpha: 1, targets: ['q'] as const };
    const adapted = { type: 'adapter', base: whole, adapter: settings, seed: 1 } as const;
    const policies: EmbeddedPolicy[] = [];
    for (const spec of [whole, adapted]) {
      disk.left = 6;
      const failed = backend.open(spec, 'policy', spec.type);
      await expect(failed).rejects.toThrow(CheckpointError);
      await expect(failed).rejects.toThrow(/unreadable\/model\.safetensors: cannot be read: EIO/);
      disk.left = Number.POSITIVE_INFINITY;
      policies.push(await backend.open(spec, 'policy', spec.type));
    }
    // An adapter changes nothing at first.
    const [first, adapter] = await Promise.all(policies.map((policy) => policy.logits(tokens)));
    expect(adapter).toEqual(first);
    const other = await startEmbedded({ threads: 1, files: nodeFiles });
    expect(await (await other.open(whole, 'frozen', 'other')).logits(tokens)).toEqual(first);
    await Promise.all([backend.dispose(), other.dispose()]);
  });

  it('leaves a policy that was there unused until it is read whole', slow, async () => {
    const directory = await writeBaseModel(root, { name: 'interrupted', config });
    const disk = failingDisk();
    const backend = await startEmbedded({ threads: 1, files: disk.files });
    const random = { type: 'random', config, tokenizer: bytesTokenizer(), seed: 7 } as const;
    const policy = await backend.open(random, 'policy', 'policy');
    disk.left = 6;
    await expect(policy.load(directory, { optimizer: false })).rejects.toThrow(CheckpointError);
    const broken = /'policy' has a part of a checkpoint that could not be read/;
    await expect(policy.logits(tokens)).rejects.toThrow(broken);
    await expect(policy.save(root)).rejects.toThrow(broken);
    disk.left = Number.POSITIVE_INFINITY;
    await policy.load(directory, { optimizer: false });
    const whole = await backend.open({ type: 'directory', directory }, 'frozen', 'whole');
    expect(await policy.logits(tokens)).toEqual(await whole.logits(tokens));
    await backend.dispose();
  });
});

describe('a version of a policy', () => {
  const sampling = { prompt: [1, 2], temperature: 1, topK: 0, topP: 1, stopTokens: [], key: randomKey('version') };
  const draw = (policy: EmbeddedPolicy, version?: number) =>
    policy.generate({ ...sampling, maxTokens: 4, ...(version !== undefined && { version }) });
  async function open(context?: number) {
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    const policy = await backend.open(random(1, 12, context), 'policy', 'policy');
    return { backend, policy };
  }

  it('stays playable if the next one is refused because it plays', async () => {
    const { backend, policy } = await open(4096);
    await policy.publish();
    let begun = () => {};
    const first = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const controller = new AbortController();
    const running = policy.generate({ ...sampling, maxTokens: 4000 }, controller.signal, begun);
    await first;
    await expect(policy.publish()).rejects.toThrow("policy 'policy' is playing");
    expect((await draw(policy)).policyVersion).toBe(0);
    controller.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    await draw(policy);
    expect(await policy.publish()).toBe(1);
    await backend.dispose();
  });

  it('is kept until fewer are to be kept, and its place serves later ones', async () => {
    const { backend, policy } = await open();
    const train = async () => {
      await policy.forwardBackward([sampleOf([1, 2, 3], [0, 1, 1])], {
        loss: { type: 'demonstrations' },
        normalizer: 1,
      });
      await policy.optimStep({ optimizer: plainAdamW(0.1), clipNorm: 1 });
    };
    const drawn = new Map<number, Generation>();
    const publish = async (keep: number) => {
      await train();
      const version = await policy.publish(keep);
      drawn.set(version, await draw(policy));
      for (const each of drawn.keys()) {
        if (each > version - keep) expect(await draw(policy, each)).toEqual(drawn.get(each));
        else drawn.delete(each);
        if (!drawn.has(each)) await expect(draw(policy, each)).rejects.toThrow(`version ${each} of policy 'policy'`);
      }
    };
    for (const keep of [3, 3, 3, 1]) await publish(keep);
    expect([...drawn.keys()]).toEqual([3]);
    for (const keep of [2, 3, 3, 2, 4, 4, 4]) await publish(keep);
    expect([...drawn.keys()]).toEqual([7, 8, 9, 10]);
    expect(new Set([...drawn.values()].map(({ logprobs }) => logprobs.join())).size).toBe(4);
    await backend.dispose();
  });
});

it('stops its start when the signal fires', async () => {
  const controller = new AbortController();
  const starting = startEmbedded({ threads: 1, files: nodeFiles, signal: controller.signal });
  controller.abort(new Error('interrupted'));
  await expect(starting).rejects.toThrow('interrupted');
  const { signal } = controller;
  await expect(startEmbedded({ threads: 1, files: nodeFiles, signal })).rejects.toThrow('interrupted');
});

type Kind = 'coarse' | 'fine';

describe('a base whose matrices are stored in bfloat16 or in blocks', () => {
  const adapter = { rank: 2, alpha: 4, targets: ['q', 'v', 'down'] } as const;
  const optimizer = plainAdamW(1e-2);
  const tokens = Int32Array.of(1, 2, 3, 4, 5, 6);

  /** The same numbers in a file in blocks and in a directory in float32. */
  async function blockFile() {
    const sizes = { width: 32, layers: 2, headDim: 16, feedForward: 64, untiedOutput: true } as const;
    const fine = await writeBaseModel(root, { name: 'fine of blocks', config: sizes });
    const coarse = `${root}/coarse.gguf`;
    await nodeFiles.write(coarse, await ggufInBlocks(fine));
    const { tensors } = await openStoredModel(nodeFiles, coarse);
    const named: NamedTensor[] = [];
    for (const tensor of tensors.values()) named.push({ ...tensor, data: await readTensor(tensor) });
    await nodeFiles.write(`${fine}/model.safetensors`, safetensorsBytes(named, { format: 'pt' }));
    return { coarse, fine };
  }

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

  describe.each([
    ['bfloat16', directories, {}],
    ['blocks', blockFile, { tags: 'verify' }],
  ] as const)('gives every result the bits that float32 gives: %s', (kind, write, options) => {
    it('frozen, adapted, trained, sampled, merged, identified', options, async () => {
      const { coarse, fine } = await write();
      const backend = await startEmbedded({ threads: 2, files: nodeFiles });
      const both = {
        coarse: { type: 'directory', directory: coarse },
        fine: { type: 'directory', directory: fine },
      } as const;
      const frozen = async (kind: Kind) => backend.open(both[kind], 'frozen', `frozen ${kind}`);
      const policy = async (kind: Kind) =>
        backend.open({ type: 'adapter', base: both[kind], adapter, seed: 5 }, 'policy', `adapted ${kind}`);
      const models = {
        frozen: { coarse: await frozen('coarse'), fine: await frozen('fine') },
        adapted: { coarse: await policy('coarse'), fine: await policy('fine') },
      };
      const equal = async <Model>({ coarse, fine }: Record<Kind, Model>, work: (model: Model) => Promise<unknown>) =>
        expect(await work(coarse)).toEqual(await work(fine));
      const sample = sampleOf([...tokens], [1, 1, 1, 1, 1, 1]);
      const play = async (model: ModelHandle) => {
        await model.publish();
        const sampling = { temperature: 1, topK: 0, topP: 1, maxTokens: 9, stopTokens: [] };
        return model.generate({ prompt: [1, 2, 3], ...sampling, key: randomKey('base') });
      };
      for (const pair of [models.frozen, models.adapted]) {
        await equal<EmbeddedFrozen>(pair, (model) => model.logits(tokens));
        await equal<EmbeddedFrozen>(pair, (model) => model.logprobs([sample]));
        await equal<EmbeddedFrozen>(pair, play);
      }
      for (let step = 0; step < 2; step++) {
        const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
        await equal(models.adapted, (model) => model.forwardBackward([sample], options));
        await equal(models.adapted, (model) => model.optimStep({ optimizer, clipNorm: 1 }));
        await equal(models.adapted, (model) => model.logits(tokens));
        await equal(models.adapted, play);
      }
      const saved = (name: string) => `${root}/saved ${kind} ${name}`;
      const merged = async (model: EmbeddedFrozen) => {
        await nodeFiles.makeDirectory(saved(model.name));
        await model.saveMerged(saved(model.name));
        return readFile(`${saved(model.name)}/model.safetensors`);
      };
      await equal(models.frozen, merged);
      expect(await readFile(`${saved('frozen coarse')}/model.safetensors`)).toEqual(
        await readFile(`${fine}/model.safetensors`),
      );
      await equal(models.adapted, merged);

      // An adapter of the one is known to fit the other.
      const directory = saved('adapter');
      await nodeFiles.makeDirectory(directory);
      await models.adapted.fine.save(directory);
      const again = await backend.open({ type: 'saved-adapter', base: both.coarse, directory }, 'policy', 'again');
      expect(again.warnings).toEqual([]);
      expect(await again.logits(tokens)).toEqual(await models.adapted.fine.logits(tokens));
      await backend.dispose();
    });
  });

  it('is multiplied in int8 if a policy asks for it, in playing and training alike', async () => {
    const { coarse, fine } = await blockFile();
    const backend = await startEmbedded({ threads: 2, files: nodeFiles });
    const base = { type: 'directory', directory: coarse } as const;
    const open = (precision: 'float32' | 'int8') =>
      backend.open({ type: 'adapter', base, adapter, seed: 5, precision }, 'policy', precision);
    const [inFloat32, inInt8] = [await open('float32'), await open('int8')];
    const sampling = { prompt: [7], temperature: 1, topK: 0, topP: 1, maxTokens: 9, stopTokens: [] };
    for (let step = 0; step < 2; step++) {
      await inInt8.publish();
      const sampled = await inInt8.generate({ ...sampling, key: randomKey('int8', step) });
      const sample = sampleOf(
        sampled.tokens,
        sampled.tokens.map(() => 1),
      );
      const [scored] = await inInt8.logprobs([sample]);
      expect([...(scored as Float32Array)].slice(1)).toEqual(sampled.logprobs);
      expect(await inFloat32.logprobs([sample])).not.toEqual([scored]);
      await inInt8.forwardBackward([sample], { loss: { type: 'demonstrations' }, normalizer: 1 });
      await inInt8.optimStep({ optimizer, clipNorm: 1 });
    }

    // The adapter does not say in which precision it learnt, and what is merged is in float32.
    const [directory, merged] = [`${root}/adapter of int8`, `${root}/merged of int8`];
    for (const each of [directory, merged]) await nodeFiles.makeDirectory(each);
    await inInt8.save(directory);
    await inInt8.saveMerged(merged);
    const again = await backend.open({ type: 'saved-adapter', base, directory }, 'policy', 'again');
    const whole = await backend.open({ type: 'directory', directory: merged }, 'frozen', 'merged');
    const [ofAdapter, ofMerged] = [await again.logits(tokens), await whole.logits(tokens)];
    ofAdapter.forEach((logit, i) => {
      expect(ofMerged[i]).toBeCloseTo(logit, 4);
    });
    expect(ofAdapter).not.toEqual(await inInt8.logits(tokens));

    const refused = /is in int8: expected an adapter, or a model that is not trained, on a GGUF file/;
    const others = { type: 'directory', directory: fine, precision: 'int8' } as const;
    for (const [spec, role] of [
      [others, 'policy'],
      [others, 'frozen'],
      [{ ...base, precision: 'int8' }, 'policy'],
      [
        { type: 'adapter', base: { type: 'directory', directory: fine }, adapter, seed: 5, precision: 'int8' },
        'policy',
      ],
    ] as const)
      await expect(backend.open(spec, role, 'refused')).rejects.toThrow(refused);
    await backend.dispose();
  });

  it('is what a policy of another engine is not like', { tags: 'verify' }, async () => {
    const { coarse } = await directories();
    const [one, other] = await Promise.all([1, 1].map((threads) => startEmbedded({ threads, files: nodeFiles })));
    const spec = { type: 'adapter', base: { type: 'directory', directory: coarse }, adapter, seed: 1 } as const;
    const policy = (await one?.open(spec, 'policy', 'mine')) as EmbeddedPolicy;
    await expect(other?.open({ type: 'like', policy }, 'frozen', 'judge')).rejects.toThrow(/'mine' is one of another/);
    await expect(one?.open(spec, 'critic', 'critic')).rejects.toThrow(/expected weights like a policy's/);
    await Promise.all([one?.dispose(), other?.dispose()]);
  });
});
