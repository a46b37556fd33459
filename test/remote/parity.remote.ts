/**
 * The same model twice: in SkyRL's server, written in JAX, and in this package's own engine. Neither knows the other.
 */

import { RandomStream } from '@drmas/engine/math';
import { loadPolicy } from '@drmas/engine/node';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { datum, Wire } from './wire.js';

const remote = inject('remote');

describe.skipIf('unavailable' in remote)('a checkpoint in the server and in the embedded engine', () => {
  let wire: Wire;
  let model: string;
  let local: Awaited<ReturnType<typeof loadPolicy>>;
  beforeAll(async () => {
    if ('unavailable' in remote) return;
    wire = await Wire.open(remote.url);
    model = await wire.createModel({ rank: 4, seed: 1 });
    local = await loadPolicy(remote.model, { threads: 1 });
  });
  afterAll(() => local?.dispose());

  const random = new RandomStream('remote parity');
  const sequence = (length: number) => Array.from({ length }, () => random.integer(0, 258));

  it('gives the same log-probs, hence the same negative log-likelihood', async () => {
    const rows = [10, 30, 31].map(sequence);
    const data = rows.map((row) => datum(row));
    const { loss_fn_outputs } = await wire.pass(model, { data, loss_fn: 'cross_entropy' }, 'forward');
    let [theirs, ours, most] = [0, 0, 0];
    for (const [i, [first, ...rest]] of rows.entries()) {
      const expected = await local.logprobs([first as number], rest);
      const logprobs = loss_fn_outputs[i]?.logprobs.data ?? [];
      expect(logprobs.length).toBe(rest.length);
      for (const [t, logprob] of logprobs.entries()) {
        most = Math.max(most, Math.abs(logprob - (expected[t] as number)));
        theirs -= logprob;
        ours -= expected[t] as number;
      }
    }
    const relative = Math.abs(theirs - ours) / ours;
    console.log(
      `negative log-likelihood ${theirs.toFixed(5)} there, ${ours.toFixed(5)} here: ${relative.toExponential(1)}`,
    );
    console.log(`largest difference of a log-prob: ${most.toExponential(1)}`);
    expect(relative).toBeLessThan(1e-5);
    expect(most).toBeLessThan(1e-4);
  });

  it('gives a greedy answer and its log-probs', async () => {
    const prompt = sequence(12);
    const sampling_params = { max_tokens: 8, seed: 1, temperature: 0 };
    const [theirs] = (await wire.sample(model, { prompt, num_samples: 1, sampling_params })).sequences;
    const ours = await local.generate({ prompt, maxTokens: 8, temperature: 0, seed: 1, ignoreEos: true });
    expect(theirs?.tokens).toEqual(ours.tokens);
    for (const [t, logprob] of (theirs?.logprobs ?? []).entries())
      expect(logprob).toBeCloseTo(ours.logprobs[t] as number, 4);
  });
});
