import { describe, expect, it } from 'vitest';
import { plain, randomSequence } from '../../../../../test/contracts/decoder.js';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import { expectGradient, expectSameBits } from '../../../../../test/support/expectations.js';
import { onHost } from '../../../../../test/support/on-host.js';
import { ArgumentError } from '../../base/core/errors.js';
import { RandomStream } from '../../base/core/random.js';
import { PROJECTIONS } from '../../contract/architecture.js';
import { selectKernels } from '../../tensor/select.js';
import type { AgentSequence } from './agent-decoders.js';
import { PolicyModel } from './policy-model.js';
import { parameterCount } from './weights/decoder-tensors.js';
import type { TrunkWeights } from './weights/model-weights.js';

const { kernels } = await selectKernels({ threads: 2 });
const random = new RandomStream('agents of a trunk');
const shape = { trunk: plain, agents: ['one', 'two'], adapter: { rank: 3, alpha: 5, targets: PROJECTIONS } };
const sequences: AgentSequence[] = [17, 2, 33, 9].map((length, i) => ({
  ...randomSequence(random, length, i % 2 === 0 ? 1 : 0.7),
  agent: shape.agents[i % 2],
}));
const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));
const trunkSize = parameterCount(plain);

const fresh = () => {
  const model = new PolicyModel(kernels, shape);
  model.initialise(3);
  model.initialiseAdapters(4);
  return model;
};
/** Adapters whose B's are not 0. */
const trained = () => {
  const model = fresh();
  const [weights, deviation] = [onHost(model.trained), new RandomStream('trained agents')];
  for (const [i, x] of weights.entries()) weights[i] = x + 0.2 * deviation.normal();
  model.weightsChanged();
  return model;
};
const adaptersOf = ({ weights: { trained } }: PolicyModel) => (trained as TrunkWeights).adapters;
const accumulate = (model: PolicyModel, of = sequences) =>
  model.accumulate(of, (indices) => indices.map((i) => upstream[sequences.indexOf(of[i] as AgentSequence)] as never));
const ofAgent = (agent: string) => sequences.filter((sequence) => sequence.agent === agent);

describe('a trunk with an adapter for each agent', () => {
  it('has the gradient that finite differences give, in trunk and adapters', async () => {
    const model = trained();
    const loss = async () => {
      model.weightsChanged();
      return (await model.score(sequences)).logprobs.reduce(
        (sum, row, s) => sum + row.reduce((a, x, t) => a + x * (upstream[s]?.[t] ?? 0), 0),
        0,
      );
    };
    await accumulate(model);
    const gradient = onHost(model.gradient).slice();
    const { trained: weights } = model.weights;
    const parts = { trunk: (weights as TrunkWeights).trunk, ...Object.fromEntries(adaptersOf(model)) };
    let start = 0;
    for (const [name, { tensors }] of Object.entries(parts)) {
      const values = onHost(tensors.flat);
      const analytic = gradient.subarray(start, start + values.length);
      start += values.length;
      expect(Math.hypot(...analytic), name).toBeGreaterThan(0);
      await expectGradient(name, { weights: values, gradient: analytic, loss, step: 2e-3, random });
    }
  });

  it("adds the trunk's gradients of all agents, and gives an adapter none of another agent's rows", async () => {
    const model = trained();
    const parts: Float32Array[] = [];
    for (const agent of shape.agents) {
      await accumulate(model, ofAgent(agent));
      parts.push(onHost(model.gradient).slice());
      model.discardGradient();
    }
    const [one, two] = parts as [Float32Array, Float32Array];
    const each = (one.length - trunkSize) / 2;
    expect(one.subarray(trunkSize + each).every((x) => x === 0)).toBe(true);
    expect(two.subarray(trunkSize, trunkSize + each).every((x) => x === 0)).toBe(true);
    await accumulate(model);
    const both = onHost(model.gradient);
    for (let i = 0; i < trunkSize; i++) expect(both[i]).toBeCloseTo((one[i] as number) + (two[i] as number), 3);
    expectSameBits(both.subarray(trunkSize, trunkSize + each), one.subarray(trunkSize, trunkSize + each));
    expectSameBits(both.subarray(trunkSize + each), two.subarray(trunkSize + each));
  });

  it('begins with the bits of its trunk, and keeps those of a model without adapters for no agent', async () => {
    const whole = new PolicyModel(kernels, plain);
    whole.initialise(3);
    const { logprobs } = await whole.score(sequences);
    expect((await fresh().score(sequences)).logprobs).toEqual(logprobs);
    const model = fresh();
    const nobody = sequences.map(({ agent, ...rest }) => rest);
    await model.accumulate(nobody, (indices) => indices.map((i) => upstream[i] as Float32Array));
    await whole.accumulate(nobody, (indices) => indices.map((i) => upstream[i] as Float32Array));
    expectSameBits(onHost(model.gradient).subarray(0, trunkSize), onHost(whole.gradient));
    expect(
      onHost(model.gradient)
        .subarray(trunkSize)
        .every((x) => x === 0),
    ).toBe(true);
  });

  it.each([
    ['trunk', { trunk: 0, adapters: 1 }],
    ['adapters', { trunk: 1, adapters: 0 }],
  ] as const)('leaves the %s as they are at a rate of 0, also out of the norm', async (part, partRates) => {
    const model = trained();
    const before = onHost(model.trained).slice();
    await accumulate(model);
    const gradient = onHost(model.gradient);
    const moved = part === 'trunk' ? gradient.subarray(trunkSize) : gradient.subarray(0, trunkSize);
    const norm = Math.hypot(...moved);
    const step = { optimizer: { ...plainAdamW(0.1), weightDecay: 0.1 }, clipNorm: 1, partRates };
    const result = await model.optimStep(step);
    expect(result.norm).toBeCloseTo(norm, 3);
    const after = onHost(model.trained);
    const [still, changed] = part === 'trunk' ? [[0, trunkSize], [trunkSize]] : [[trunkSize], [0, trunkSize]];
    expectSameBits(after.subarray(...(still as [number])), before.subarray(...(still as [number])));
    expect(after.subarray(...(changed as [number]))).not.toEqual(before.subarray(...(changed as [number])));
  });

  it('moves the trunk at its share of the rate', async () => {
    const [whole, half] = [trained(), trained()];
    const optimizer = plainAdamW(0.1);
    for (const [model, trunk] of [
      [whole, 1],
      [half, 0.5],
    ] as const) {
      await accumulate(model);
      await model.optimStep({ optimizer, clipNorm: 0, partRates: { trunk, adapters: 1 } });
    }
    const [first, full, less] = [trained(), whole, half].map((model) => onHost(model.trained));
    const distance = (to: Float32Array | undefined, i: number) => (to?.[i] ?? 0) - (first?.[i] ?? 0);
    for (let i = 0; i < trunkSize; i += 7) expect(distance(less, i)).toBeCloseTo(distance(full, i) / 2, 5);
    expectSameBits((less as Float32Array).subarray(trunkSize), (full as Float32Array).subarray(trunkSize));
  });

  it('refuses an agent without an adapter', async () => {
    const stranger = sequences.map((sequence) => ({ ...sequence, agent: 'three' }));
    await expect(trained().score(stranger)).rejects.toThrow(ArgumentError);
    await expect(trained().score(stranger)).rejects.toThrow("agent 'three' has no adapter: expected one of one, two");
  });
});
