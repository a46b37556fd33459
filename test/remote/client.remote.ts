/**
 * The client and the backend on a real server: the same numbers as our own engine, policies that leave each other
 * alone, errors.
 */
import { writeFile } from 'node:fs/promises';
import { type PolicyHandle, PROJECTIONS, type WeightsSpec } from '@drmas/engine/contract';
import { RandomStream, randomKey } from '@drmas/engine/math';
import { loadPolicy } from '@drmas/engine/node';
import { nodeHost } from '@drmas/engine/platform';
import { referee } from '@drmas/tinker/internal/client/referee/referee';
import { TinkerBackend } from '@drmas/tinker/internal/client/tinker-backend';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { sampleOf } from '../support/samples.js';
import { timeOfDay } from '../support/time-and-chance.js';

const remote = inject('remote');
const adamw = { type: 'adamw', beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0 } as const;
const demonstrations = { loss: { type: 'demonstrations' }, normalizer: 30 } as const;
const random = new RandomStream('remote client');
const samples = [10, 17, 30].map((length) => {
  const response = Array.from({ length }, () => random.integer(0, 258));
  return sampleOf(response, new Array(length).fill(1));
});

describe.skipIf('unavailable' in remote)('the tinker backend on a real server', () => {
  let backend: TinkerBackend;
  const policies: PolicyHandle[] = [];
  const adapterOn = (directory: string, seed = 1, rank = 4): WeightsSpec => ({
    type: 'adapter',
    base: { type: 'directory', directory },
    adapter: { rank, alpha: rank, targets: PROJECTIONS },
    seed,
  });
  const connect = (url: string, first: WeightsSpec) =>
    TinkerBackend.connect(
      { type: 'tinker', url, profile: 'auto', models: {}, concurrency: 64, saveEvery: 10, deadlineSeconds: 300 },
      { host: nodeHost(), models: [first] },
    );
  beforeAll(async () => {
    if ('unavailable' in remote) return;
    const weights = adapterOn(remote.model);
    backend = await connect(remote.url, weights);
    for (const name of ['quick', 'still']) policies.push(await backend.open(weights, 'policy', name));
  });
  afterAll(() => backend?.dispose());

  it('measures the facts in the notes about this server', () => {
    expect(backend.profile).toMatchObject({
      reduction: 'sequence-mean',
      negativeWeights: false,
      forward: true,
      promptLogprobs: 'after-first',
      loggedTemperature: 'one',
      errorShape: 'detail',
    });
  });

  it("gives our own engine's log-probs on the same checkpoint", async () => {
    if ('unavailable' in remote) return;
    const [quick] = policies as [PolicyHandle, PolicyHandle];
    const ours = await loadPolicy(remote.model, { threads: 1 });
    const rows = await quick.logprobs(samples);
    let most = 0;
    for (const [i, { tokens }] of samples.entries()) {
      const [first, ...rest] = Array.from(tokens);
      const expected = await ours.logprobs([first as number], rest);
      for (const [t, logprob] of Array.from(expected).entries())
        most = Math.max(most, Math.abs(logprob - (rows[i]?.[t + 1] ?? Number.NaN)));
    }
    await ours.dispose();
    console.log(`largest difference of a log-prob through the client: ${most.toExponential(1)}`);
    expect(most).toBeLessThan(1e-4);
  });

  it('trains one policy and leaves the other as it was; sampler and trainer agree', async () => {
    const [quick, still] = policies as [PolicyHandle, PolicyHandle];
    const loss = async (policy: PolicyHandle) =>
      -(await policy.logprobs(samples)).reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0), 0);
    const [before, untouched] = [await loss(quick), await loss(still)];
    for (let step = 0; step < 5; step++)
      for (const [policy, learningRate] of [
        [quick, 1e-2],
        [still, 1e-9],
      ] as const) {
        const passed = policy.forwardBackward(samples, demonstrations);
        const stepped = policy.optimStep({ optimizer: { ...adamw, learningRate }, clipNorm: 0 });
        expect((await stepped).applied).toBe(true);
        await passed;
      }
    expect(await loss(quick)).toBeLessThan(0.9 * before);
    expect(Math.abs((await loss(still)) - untouched)).toBeLessThan(1e-2);

    await quick.publish();
    const prompt = [257, 65, 66, 67];
    const request = { prompt, stopTokens: [258], maxTokens: 6, temperature: 1, topP: 1, topK: 0 };
    const written = await quick.generate({ ...request, key: randomKey(1) });
    expect(written.tokens.length).toBeGreaterThan(0);
    const tokens = Int32Array.from([...prompt, ...written.tokens]);
    const mask = new Uint8Array(tokens.length).fill(1, prompt.length);
    const zeros = new Float32Array(tokens.length);
    const whole = { ...sampleOf([], []), tokens, mask, behaviourLogprobs: zeros, advantages: zeros };
    const [row] = await quick.logprobs([whole]);
    for (const [t, logprob] of written.logprobs.entries()) expect(row?.[prompt.length + t]).toBeCloseTo(logprob, 4);
  });

  it('names the requests that the server refuses', async () => {
    if ('unavailable' in remote) return;
    await expect(backend.open(adapterOn(remote.model, 1, 64), 'policy', 'wide')).rejects.toThrow(
      /rank 64 must be between 1 and 8/i,
    );
    await expect(connect(remote.url, adapterOn('/no/such/model'))).rejects.toThrow(
      /the server has no model '\/no\/such\/model'/,
    );
    let places = 0;
    const fill = async () => {
      for (let i = 0; i < 8; i++) {
        await backend.open(adapterOn(remote.model), 'policy', `more${i}`);
        places++;
      }
    };
    await expect(fill()).rejects.toThrow(/Maximum number of LoRA adapters/);
    expect(places).toBeGreaterThan(0);
  });
});

describe.skipIf('unavailable' in remote)('the referee on a real server', () => {
  it('finds the differences that the profile declares, within five minutes', async () => {
    if ('unavailable' in remote) return;
    const ours = await loadPolicy(remote.model, { threads: 1 });
    const report = await referee({
      url: remote.url,
      apiKey: undefined,
      profile: 'auto',
      budgetSeconds: 300,
      tolerance: 1e-3,
      hostile: true,
      reference: (sequences) =>
        Promise.all(
          sequences.map(async ([first = 0, ...rest]) => Float32Array.of(0, ...(await ours.logprobs([first], rest)))),
        ),
    });
    await ours.dispose();
    const results = process.env.DRMAS_REFEREE_RESULTS; // the matrix of docs/referee.md is made from such a file
    if (results) await writeFile(results, JSON.stringify({ time: new Date(timeOfDay()).toISOString(), ...report }));
    expect(report.profile).toBe('skyrl-jax');
    const wrong = report.findings.filter(({ outcome }) => outcome === 'differs' || outcome === 'refused');
    expect(wrong).toEqual([]);
    expect(report.findings.filter(({ outcome }) => outcome === 'known difference').length).toBeGreaterThan(15);
    expect(report.seconds).toBeLessThan(300);
  }, 400_000);
});
