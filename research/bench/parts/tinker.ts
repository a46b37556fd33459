/**
 * Updates of two policies on a fake server that answers after 100 ms: concurrently, as in training, and one request at
 * a time.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PolicyHandle } from '@drmas/engine/contract';
import type { TrainingSample } from '@drmas/engine/nouns';
import { plainAdamW } from '../../../test/support/adamw.js';
import { writeBaseModel } from '../../../test/support/tinker-fake/base-model.js';
import { adapterOn, openOnFake } from '../../../test/support/tinker-fake/open.js';
import type { Context } from '../context.js';

const LATENCY_MS = 100;
const UPDATES = 5;
const optimizer = plainAdamW(1e-3);
const sample: TrainingSample = {
  tokens: Int32Array.from([3, 4, 5, 6]),
  mask: Uint8Array.from([0, 0, 1, 1]),
  behaviourLogprobs: new Float32Array(4).fill(-5),
  advantages: new Float32Array(4).fill(1),
  temperature: 1,
  policyVersion: 0,
  agent: 'agent',
};

export async function benchTinker({ say }: Context): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'drmas-bench-'));
  const directory = await writeBaseModel(root);
  const { fake, backend } = await openOnFake({ directory, latencyMs: LATENCY_MS }, { deadlineSeconds: 60 });
  try {
    const policies: PolicyHandle[] = [];
    for (const name of ['one', 'two']) policies.push(await backend.open(adapterOn(directory), 'policy', name));
    const options = { loss: { type: 'gspo', clipLow: 9, clipHigh: 9 }, normalizer: 1 } as const;
    const learn = (policy: PolicyHandle) => policy.forwardBackward([sample], options);
    const step = (policy: PolicyHandle) => policy.optimStep({ optimizer, clipNorm: 0 });
    const timed = async (update: () => Promise<unknown>) => {
      const started = performance.now();
      for (let i = 0; i < UPDATES; i++) await update();
      return (performance.now() - started) / UPDATES;
    };
    const alone = await timed(async () => {
      for (const policy of policies) {
        await learn(policy);
        await step(policy);
        await policy.publish();
      }
    });
    const together = await timed(() =>
      Promise.all(
        policies.map(async (policy) => {
          await Promise.all([learn(policy), step(policy)]);
          await policy.publish();
        }),
      ),
    );
    say(
      `tinker, ${LATENCY_MS} ms latency, 2 policies: an update in turn ${alone.toFixed(0)} ms, together ${together.toFixed(0)} ms`,
    );
    say(`tinker: ${(alone / together).toFixed(2)} x as fast together`);
  } finally {
    await backend.dispose();
    await fake.close();
    rmSync(root, { recursive: true });
  }
}
