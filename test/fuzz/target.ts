/** A reader of outside data, as the fuzzer sees it. */
import { DrmasError } from '../../src/base/core/errors.js';

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

/** Processor time that one input may take, in milliseconds, and memory that the process may have, in bytes. */
const LONGEST_MS = 1000;
export const MOST_MEMORY = 1.5e9;

/** The fault in a target's reading of an input. Undefined if there is no fault. */
export async function complaintAbout(target: Target, input: Buffer): Promise<string | undefined> {
  const before = process.cpuUsage();
  let complaint: string | undefined;
  try {
    await target.run(input);
  } catch (error) {
    if (!(error instanceof Error)) complaint = `threw ${String(error)}, which is no error`;
    else if (!(error instanceof DrmasError) && target.allows?.(error) !== true)
      complaint = `threw an error of no type of ours: ${error.stack?.slice(0, 600) ?? error.message}`;
    else if (error.message.length > LONGEST_MESSAGE)
      complaint = `threw a message of ${error.message.length} characters`;
  }
  const { user, system } = process.cpuUsage(before);
  const took = (user + system) / 1000;
  if (took > LONGEST_MS) complaint ??= `took ${took.toFixed(0)} ms of processor time`;
  const polluted = Object.keys(Object.prototype);
  if (polluted.length > 0) complaint ??= `left ${polluted.join()} in Object.prototype`;
  return complaint;
}

/** A message is for a person. */
const LONGEST_MESSAGE = 6000;
