/**
 * Saves a copy of a model or an adapter, and beside it its logits for a few random prompts as expected.json, for
 * transformers.py and peft.py. With --merge an adapter becomes a whole model. With --adapter it saves a new adapter of
 * all projections of the model, trained for a few steps on random tokens.
 * usage: node --import tsx test/parity/save.ts FROM TO [--merge | --adapter]
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DecoderConfig, PROJECTIONS } from '@drmas/engine/contract';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { RandomStream } from '@drmas/engine/math';
import { loadPolicy } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { plainAdamW } from '../support/adamw.js';

const [from, to, flag] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('usage: save.ts FROM TO [--merge | --adapter]');
await (flag === '--adapter' ? saveAdapter(from, to) : saveCopy(from, to, flag === '--merge'));

async function saveCopy(from: string, to: string, merge: boolean): Promise<void> {
  const policy = await loadPolicy(from);
  await policy.save(to, { merge });
  await writeExpected(to, policy.config, (ids) => policy.logits(ids));
  await policy.dispose();
}

async function saveAdapter(directory: string, to: string): Promise<void> {
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
}

/** Writes a model's logits for a few random prompts as expected.json: [{"ids": [T], "logits": [T * V]}]. */
async function writeExpected(
  directory: string,
  { context, vocabSize }: DecoderConfig,
  logits: (ids: number[]) => Promise<Float32Array>,
): Promise<void> {
  const random = new RandomStream('parity');
  const cases: { ids: number[]; logits: number[] }[] = [];
  for (const length of [1, 17, Math.min(context, 300)]) {
    const ids = Array.from({ length }, () => random.integer(0, vocabSize - 1));
    cases.push({ ids, logits: Array.from(await logits(ids)) });
  }
  await writeFile(join(directory, 'expected.json'), JSON.stringify(cases));
}
