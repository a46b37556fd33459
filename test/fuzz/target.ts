/** A reader of outside data, as the fuzzer sees it. */

import { appendFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DrmasError } from '@drmas/engine/errors';
import { processorSeconds } from '../support/time-and-chance.js';

export interface Target {
  readonly name: string;
  /** Valid or nearly valid inputs, which the fuzzer changes. */
  readonly seeds: readonly (Uint8Array | string)[];
  /** Words of the format, which changes put in. */
  readonly words: readonly string[];
  /** Inputs of the full form; the short one takes a hundredth or so. */
  readonly inputs: number;
  /** Reads the input. It must throw only drmas's errors, or errors that `allows` accepts. */
  run(input: Buffer): unknown;
  readonly allows?: (error: Error) => boolean;
}

/** Processor time that one input may take, and memory that the process may have, in bytes. */
const MOST_SECONDS = 1;
export const MOST_MEMORY = 1.5e9;

/** The fault in a target's reading of an input. Undefined if there is no fault. */
export async function complaintAbout(target: Target, input: Buffer): Promise<string | undefined> {
  let complaint: string | undefined;
  const run = async () => target.run(input);
  const reading = () => processorSeconds(() => run().catch(complain));
  let seconds = await reading();
  // The first time may pay for garbage that other tests left in this process.
  if (seconds > MOST_SECONDS) seconds = Math.min(seconds, await reading());
  function complain(error: unknown): void {
    if (!(error instanceof Error)) complaint = `threw ${String(error)}, which is no error`;
    else if (!(error instanceof DrmasError) && target.allows?.(error) !== true)
      complaint = `threw an error of no type of ours: ${error.stack?.slice(0, 600) ?? error.message}`;
    else if (error.message.length > LONGEST_MESSAGE)
      complaint = `threw a message of ${error.message.length} characters`;
  }
  if (seconds > MOST_SECONDS) complaint ??= `took ${seconds.toFixed(2)} s of processor time`;
  const polluted = Object.keys(Object.prototype);
  if (polluted.length > 0) complaint ??= `left ${polluted.join()} in Object.prototype`;
  return complaint;
}

/** A message is for a person. */
const LONGEST_MESSAGE = 6000;

// Inputs that failed once. `npm run fuzz` adds to them, the tests replay them.

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
