/** How fast a server samples and trains: small batches, as the referee's own requests are. */
import { datumOf } from '../wire/datum.js';
import type { RefereeBench } from './referee-bench.js';

/** Tokens a second. */
export interface ServerSpeed {
  /** Of 32 samples at once, of up to 32 tokens. */
  readonly sampled: number;
  /** Of 3 updates, each with 16 sequences of 64 tokens. */
  readonly trained: number;
}

const [SAMPLES, LENGTH] = [32, 32];
const [UPDATES, SEQUENCES, TOKENS] = [3, 16, 64];

/** @throws TinkerError if the server cannot sample or train */
export async function measureSpeed(bench: RefereeBench): Promise<ServerSpeed> {
  const probed = await bench.model();
  const tokens = Int32Array.from({ length: TOKENS }, (_, t) => 1 + (t % 10));
  const data = Array.from({ length: SEQUENCES }, () => datumOf(tokens, { weights: new Float32Array(TOKENS).fill(1) }));
  const update = () => bench.update(probed, [{ data, loss_fn: 'cross_entropy' }], { learning_rate: 0 });
  await update(); // some servers compile for the first batch of a shape
  const trained = await seconds(async () => {
    for (let i = 0; i < UPDATES; i++) await update();
  });
  const session = await probed.snapshot();
  const sample = async (seed: number) => {
    const { sequences } = await probed.draw(session, [1, 2, 3, 4, 5, 6], { max_tokens: LENGTH, seed });
    return sequences[0]?.tokens.length ?? 0;
  };
  const together = () => Promise.all(Array.from({ length: SAMPLES }, (_, i) => sample(i)));
  await together();
  let drawn = 0;
  const sampled = await seconds(async () => {
    for (const length of await together()) drawn += length;
  });
  return { sampled: drawn / sampled, trained: (UPDATES * SEQUENCES * (TOKENS - 1)) / trained };
}

async function seconds(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
