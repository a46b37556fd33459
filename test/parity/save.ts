/**
 * Saves a copy of a model, and beside it its logits for a few random prompts as expected.json, for transformers.py.
 * usage: node --import tsx test/parity/save.ts FROM TO
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RandomStream } from '../../src/core/random.js';
import { loadPolicy } from '../../src/training/load.js';

const [from, to] = process.argv.slice(2);
if (from === undefined || to === undefined) throw new Error('usage: save.ts FROM TO');
const policy = await loadPolicy(from);
await policy.save(to);
const random = new RandomStream('parity');
const { context, vocabSize } = policy.config;
const cases: { ids: number[]; logits: number[] }[] = [];
for (const length of [1, 17, Math.min(context, 300)]) {
  const ids = Array.from({ length }, () => random.integer(0, vocabSize - 1));
  cases.push({ ids, logits: Array.from(await policy.logits(ids)) });
}
await writeFile(join(to, 'expected.json'), JSON.stringify(cases));
await policy.dispose();
