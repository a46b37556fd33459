/** Inputs that failed once. `npm run fuzz` adds to them, the tests replay them. */
import { appendFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = fileURLToPath(new URL('corpus.jsonl', import.meta.url));

/** The stored inputs by their names, `target--seed-number`. */
export function corpus(): Map<string, Buffer> {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as { name: string; base64: string });
  return new Map(entries.map(({ name, base64 }) => [name, Buffer.from(base64, 'base64')]));
}

/** Stores an input. */
export const addToCorpus = (name: string, input: Buffer): void =>
  appendFileSync(file, `${JSON.stringify({ name, base64: input.toString('base64') })}\n`);
