/** Checkpoints of Hugging Face against transformers' own numbers: logits, choices, log-probs, gradients, AdamW. */

import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { DecoderSampler } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { decoderTensors } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { DecoderWeights } from '@drmas/engine/internal/model/decoder/weights/model-weights';
import { decoderPlaces } from '@drmas/engine/internal/model/formats/decoder-layout';
import { openModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { openSafetensors, readTensor } from '@drmas/engine/internal/model/formats/safetensors';
import { takeTensor } from '@drmas/engine/internal/model/formats/tensor-place';
import type { Kernels } from '@drmas/engine/kernels';
import type { Sequence } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { goldenModelFiles, goldenModelNumbers, goldenModels, packedModels } from '../goldens.js';
import { memoryFiles } from '../support/memory-files.js';
import { fromHuggingFace, onHost, tensorsOnHost } from '../support/on-host.js';

interface GoldenModel {
  readonly logits: readonly { readonly ids: number[]; readonly tensor: string; readonly argmax: number[] }[];
  readonly greedy: { readonly prompt: number[]; readonly generated: number[] };
  readonly continuation: {
    readonly prompt: number[];
    readonly continuation: number[];
    readonly logprobs: number[];
    readonly entropies: number[];
    readonly logprobsAtTemperature: Readonly<Record<string, number[]>>;
  };
  readonly crossEntropy: {
    readonly batch: readonly { readonly ids: number[]; readonly lossMask: number[] }[];
    readonly loss: number;
    readonly targetTokens: number;
    readonly globalGradNorm: number;
  };
  readonly adamw: {
    readonly lr: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weightDecay: number;
    readonly clipGradNorm: number | null;
    readonly losses: number[];
    readonly parameterNormsAfter: Readonly<Record<string, number>>;
    readonly parameterSumsAfter: Readonly<Record<string, number>>;
  };
}

const norm = (values: ArrayLike<number>) => Math.sqrt(Array.from(values).reduce((sum, x) => sum + x * x, 0));
const furthest = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((most, x, i) => Math.max(most, Math.abs(x - (b[i] as number))), 0);

async function load(kernels: Kernels, name: Parameters<typeof goldenModelFiles>[0]) {
  const files = memoryFiles(goldenModelFiles(name));
  const { model, tensors } = await openModelDirectory(files, 'm');
  const policy = new PolicyModel(kernels, model.config);
  await fromHuggingFace(tensorsOnHost(policy.tensors), tensors, model.config);
  policy.weightsChanged();
  const golds = await openSafetensors(files, 'm/golden_tensors.safetensors');
  const numbers = new Map<string, Float32Array>();
  for (const [key, tensor] of golds.tensors) numbers.set(key, await readTensor(tensor));
  return {
    policy,
    stored: tensors,
    config: model.config,
    expected: goldenModelNumbers<GoldenModel>(name),
    tensor: (key: string) => numbers.get(key) ?? new Float32Array(),
    /** A flat buffer's parts by Hugging Face's names. */
    named: (flat: Float32Array) =>
      decoderPlaces(decoderTensors(model.config, Float32Array.from(flat)), model.config).map(takeTensor),
  };
}

/** The contract of the golden checkpoints on every kernel set. */
export function checkpointContract(name: string, create: () => Kernels): void {
  describe.each([...goldenModels, ...packedModels])(`%s on ${name} kernels`, (checkpoint) => {
    const loaded = load(create(), checkpoint);
    const subject = () => loaded;

    it('keeps the numbers of the files, which are those that it gives back', async () => {
      const { policy, stored, named } = await subject();
      const kept = named(onHost(policy.trained));
      expect(kept.map(({ name }) => name).sort()).toEqual([...stored.keys()].sort());
      for (const { name, data } of kept) {
        const tensor = stored.get(name);
        expect(tensor && (await readTensor(tensor)), name).toEqual(data);
      }
    });

    it('has the logits', async () => {
      const { policy, expected, tensor } = await subject();
      for (const { ids, tensor: key } of expected.logits) {
        expect(furthest(await policy.logits(Int32Array.from(ids)), tensor(key))).toBeLessThan(1e-4);
      }
    });

    it('continues greedily in the same words', async () => {
      const { policy, config, expected } = await subject();
      const { prompt, generated } = expected.greedy;
      const kernels = create();
      const sampler = new DecoderSampler(kernels, new DecoderWeights(kernels, config));
      sampler.load('policy', policy.trained, 0);
      const sampling = { temperature: 0, topK: 0, topP: 1, maxTokens: generated.length };
      sampler.submit({ id: 0, policy: 'policy', prompt, ...sampling, stopTokens: [], key: [0, 0] });
      let results = await sampler.step();
      while (results.length === 0) results = await sampler.step();
      expect(results[0]?.tokens).toEqual(generated);
    });

    it('gives a continuation its log-probs and entropies', async () => {
      const { policy, expected } = await subject();
      const { prompt, continuation, logprobs, entropies, logprobsAtTemperature } = expected.continuation;
      const tokens = Int32Array.from([...prompt, ...continuation]);
      const mask = Uint8Array.from(tokens, (_, t) => (t < prompt.length ? 0 : 1));
      const score = (temperature: number) => policy.score([{ tokens, mask, temperature }]);
      const { logprobs: rows, entropies: spreads } = await score(1);
      expect(furthest((rows[0] as Float32Array).subarray(prompt.length), logprobs)).toBeLessThan(1e-4);
      expect(furthest((spreads[0] as Float32Array).subarray(prompt.length), entropies)).toBeLessThan(1e-4);
      for (const [temperature, row] of Object.entries(logprobsAtTemperature)) {
        const scores = (await score(Number(temperature))).logprobs[0] as Float32Array;
        expect(furthest(scores.subarray(prompt.length), row), temperature).toBeLessThan(2e-4);
      }
    });

    it('has the cross-entropy, the gradient of every parameter, and the AdamW steps of torch', async () => {
      const { policy, expected, tensor, named } = await subject();
      const { batch, loss, targetTokens, globalGradNorm } = expected.crossEntropy;
      const sequences = batch.map(({ ids, lossMask }): Sequence => {
        // The first token is never predicted, even if its mask is 1.
        const mask = Uint8Array.from(lossMask, (written, t) => (t === 0 ? 0 : written));
        return { tokens: Int32Array.from(ids), mask, temperature: 1 };
      });
      const step = async () => {
        const { logprobs } = await policy.accumulate(sequences, (indices) =>
          indices.map((i) => new Float32Array((sequences[i] as Sequence).tokens.length).fill(-1 / targetTokens)),
        );
        expect(logprobs.flatMap((row) => [...row]).filter((logprob) => logprob !== 0)).toHaveLength(targetTokens);
        return -logprobs.reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0), 0) / targetTokens;
      };
      expect(Math.abs((await step()) - loss) / loss).toBeLessThan(1e-5);
      for (const { name: parameter, data } of named(onHost(policy.gradient))) {
        const theirs = tensor(`grad.${parameter}`);
        const difference = norm(data.map((x, i) => x - (theirs[i] as number)));
        expect(difference / norm(theirs), parameter).toBeLessThan(1e-4);
        expect(furthest(data, theirs), parameter).toBeLessThan(1e-4 * Math.max(...theirs.map(Math.abs)));
      }
      expect(Math.abs(norm(onHost(policy.gradient)) / globalGradNorm - 1)).toBeLessThan(1e-4);

      const { lr, beta1, beta2, eps, weightDecay, clipGradNorm, losses } = expected.adamw;
      const optimizer = { type: 'adamw', learningRate: lr, beta1, beta2, epsilon: eps, weightDecay } as const;
      const settings = { optimizer, clipNorm: clipGradNorm ?? 0 };
      // The norms of the originals belong to the weights that give the last loss.
      const measured = [loss];
      while (measured.length < losses.length) {
        expect((await policy.optimStep(settings)).applied).toBe(true);
        measured.push(await step());
      }
      for (const [i, value] of losses.entries())
        expect(Math.abs((measured[i] as number) / value - 1)).toBeLessThan(1e-5);
      for (const { name: parameter, data } of named(onHost(policy.trained))) {
        const length = expected.adamw.parameterNormsAfter[parameter] as number;
        const sum = expected.adamw.parameterSumsAfter[parameter] as number;
        expect(Math.abs(norm(data) / length - 1), parameter).toBeLessThan(5e-5);
        expect(Math.abs(data.reduce((a, b) => a + b, 0) - sum), parameter).toBeLessThan(
          5e-5 * length * Math.sqrt(data.length),
        );
      }
    });
  });
}
