/**
 * Trains an adapter of all projections for a few steps on random tokens, saves it, and beside it its logits for a few
 * random prompts as expected.json, for peft.py. usage: node --import tsx test/parity/save-adapter.ts BASE TO
 */
import { mkdir } from 'node:fs/promises';
import { RandomStream } from '../../src/base/core/random.js';
import { nodeFiles } from '../../src/base/platform/node-files.js';
import { PROJECTIONS } from '../../src/engine/contract/architecture.js';
import { startEmbedded } from '../../src/engine/embedded/start-embedded.js';
import { plainAdamW } from '../support/adamw.js';
import { writeExpected } from './expected.js';

const [directory, to] = process.argv.slice(2);
if (directory === undefined || to === undefined) throw new Error('usage: save-adapter.ts BASE TO');
const backend = await startEmbedded({ threads: 2, files: nodeFiles });
const base = { type: 'directory', directory } as const;
const adapter = { rank: 4, alpha: 10, targets: PROJECTIONS };
const policy = await backend.open({ type: 'adapter', base, adapter, seed: 1 }, 'policy', 'adapter');
const { config } = policy;
const random = new RandomStream('adapter');
const length = 20;
const zeros = new Float32Array(length);
const samples = Array.from({ length: 8 }, () => ({
  tokens: Int32Array.from({ length }, () => random.integer(0, config.vocabSize - 1)),
  mask: new Uint8Array(length).fill(1, 1),
  behaviourLogprobs: zeros,
  advantages: zeros,
  temperature: 1,
  policyVersion: 0,
  agent: 'adapter',
}));
const optimizer = plainAdamW(1e-2);
for (let step = 0; step < 20; step++) {
  await policy.forwardBackward(samples, { loss: { type: 'demonstrations' }, normalizer: 8 * (length - 1) });
  await policy.optimStep({ optimizer, clipNorm: 1 });
}
await mkdir(to, { recursive: true });
await policy.save(to);
await writeExpected(to, config, (ids) => policy.logits(Int32Array.from(ids)));
await backend.dispose();
