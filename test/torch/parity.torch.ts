/**
 * The engine on PyTorch beside the native one, in every family: from the same seeds both sample the same tokens over
 * three rounds of turns and updates, since first weights and random numbers come from the same place.
 */

import {
  type AdapterSettings,
  type DecoderConfig,
  type GenerateRequest,
  type Generation,
  type PolicyHandle,
  PROJECTIONS,
  type WeightsSpec,
} from '@drmas/engine/contract';
import type { EmbeddedBackend } from '@drmas/engine/embedded';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { startTorch } from '@drmas/engine/internal/torch/start-torch';
import { randomKey } from '@drmas/engine/math';
import { nodeFiles } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOf } from '../contracts/backend/subject.js';
import { features, gemma, lfm2 } from '../contracts/decoder.js';
import { plainAdamW } from '../support/adamw.js';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const tokenizer = bytesTokenizer();
const adapter: AdapterSettings = { rank: 4, alpha: 8, targets: PROJECTIONS };

const shape: DecoderConfig = {
  vocabSize: tokenizer.vocabSize,
  width: 48,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headDim: 12,
  feedForward: 96,
  context: 128,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const families: Readonly<Record<string, DecoderConfig>> = {
  ...Object.fromEntries(
    Object.entries(features).map(
      ([name, { vocabSize, width, heads, kvHeads, headDim, feedForward, context, ...rest }]) => [
        name,
        { ...shape, ...rest, layers: 3 },
      ],
    ),
  ),
  'of Gemma 3': { ...shape, ...gemma, headDim: 16 },
  'of LFM2': { ...shape, ...lfm2 },
};

type Kind = 'adapters' | 'whole' | 'trunk';
const weightsOf = (kind: Kind, config: DecoderConfig, seed: number): WeightsSpec => {
  const base = { type: 'random', config, tokenizer, seed: 1 } as const;
  if (kind === 'adapters') return { type: 'adapter', base, adapter, seed };
  if (kind === 'whole') return { ...base, seed };
  return { ...base, seed, agentAdapters: { agents: ['x', 'y'], settings: adapter, seed } };
};

/** One turn of a team: a group of four answers to each of two tasks, then a second turn that goes on from the first. */
async function turn(policy: PolicyHandle, round: number, agent: string, before?: readonly Generation[]) {
  const requests = Array.from({ length: 8 }, (_, i): GenerateRequest => {
    const text = `agent ${agent}: you count carefully. task ${i >> 2}`;
    const first = [...tokenizer.encode(text)];
    const history = before?.[i];
    return {
      prompt: history === undefined ? first : [...first, ...history.tokens, ...tokenizer.encode(' then?')],
      temperature: i === 5 ? 0.7 : i === 6 ? 0 : 1,
      topP: i === 4 ? 0.9 : 1,
      topK: i === 3 ? 20 : 0,
      maxTokens: 12,
      stopTokens: [],
      key: randomKey('parity', round, i, before === undefined ? 0 : 1),
      agent,
    };
  });
  const answers = await Promise.all(requests.map((request) => policy.generate(request)));
  return {
    answers,
    samples: requests.map((request, i) => ({ ...sampleOf(request, answers[i] as Generation), agent })),
  };
}

/** Each ends with an update. */
const ROUNDS = 3;

async function played(backend: EmbeddedBackend, kind: Kind, config: DecoderConfig) {
  const out = { tokens: [] as string[], logprobs: [] as number[], norms: [] as number[], metrics: [] as number[] };
  const policies = await Promise.all(
    [1, 2].map((seed) => backend.open(weightsOf(kind, config, seed), 'policy', `policy ${seed}`)),
  );
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(policies.map((policy) => policy.publish()));
    const turns = await Promise.all(
      policies.map(async (policy, p) => {
        const agent = p === 0 ? 'x' : 'y';
        const one = await turn(policy, round, agent);
        const two = await turn(policy, round, agent, one.answers);
        return { answers: [...one.answers, ...two.answers], samples: [...one.samples, ...two.samples] };
      }),
    );
    for (const [p, policy] of policies.entries()) {
      const { answers, samples } = turns[p] as (typeof turns)[number];
      out.tokens.push(...answers.map(({ tokens }) => tokens.join(' ')));
      out.logprobs.push(...answers.flatMap(({ logprobs }) => logprobs));
      const { loss, gradientNorm, metrics } = await policy.forwardBackward(
        samples.map((sample, i) => ({ ...sample, advantages: sample.advantages.map((a) => (i % 2 ? a : -a)) })),
        { loss: { type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' }, normalizer: 96, entropyCoefficient: 0.01 },
      );
      out.norms.push(gradientNorm ?? Number.NaN);
      out.metrics.push(loss, metrics.entropy ?? Number.NaN, metrics.maxRatioDeviation ?? Number.NaN);
      await policy.optimStep({ optimizer: plainAdamW(1e-3), clipNorm: 1 });
    }
  }
  for (const policy of policies) await policy.close?.();
  return out;
}

const most = (a: readonly number[], b: readonly number[]) =>
  a.reduce((largest, x, i) => Math.max(largest, Math.abs(x - (b[i] as number))), 0);

describe.skipIf(!available)('the engine on PyTorch beside the native one', () => {
  let native: EmbeddedBackend;
  let torch: EmbeddedBackend;
  beforeAll(async () => {
    native = await startEmbedded({ threads: 1, files: nodeFiles });
    torch = await startTorch({ files: nodeFiles, device: 'torch-cpu' });
  });
  afterAll(() => Promise.all([native.dispose(), torch.dispose()]));

  const cases = Object.keys(families).flatMap((family) =>
    (['adapters', 'whole', 'trunk'] as const).map((kind) => [family, kind] as const),
  );
  it.each(cases)('samples the same tokens and learns the same, %s, %s', async (family, kind) => {
    const config = families[family] as DecoderConfig;
    const [expected, actual] = [await played(native, kind, config), await played(torch, kind, config)];
    expect(actual.tokens).toEqual(expected.tokens);
    for (const field of ['logprobs', 'norms', 'metrics'] as const) {
      const [ofNative, ofTorch] = [expected[field], actual[field]];
      const before = ofNative.length / ROUNDS; // the numbers of the round before the first update
      expect(most(ofTorch.slice(0, before), ofNative.slice(0, before)), field).toBeLessThan(2e-5);
      // AdamW turns rounding in gradients near 0 into whole updates, on each kind of processor into others.
      expect(most(ofTorch, ofNative), field).toBeLessThan(1e-3);
    }
    // The sampler's log-probs are those of the trainer, to the last bit: each first ratio is exactly 1.
    expect(actual.metrics.filter((_, i) => i % 3 === 2)).toEqual(Array(6).fill(0));
  });
});
