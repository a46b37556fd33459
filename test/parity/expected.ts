import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RandomStream } from '../../src/base/core/random.js';
import type { DecoderConfig } from '../../src/engine/contract/architecture.js';

/** Writes a model's logits for a few random prompts as expected.json: [{"ids": [T], "logits": [T * V]}]. */
export async function writeExpected(
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
