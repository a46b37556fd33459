/** A table of choices on disk: one file that a person can read, and the optimiser's state beside it. */

import { CheckpointError } from '@drmas/engine/errors';
import { parseJson, parseWith, readOrRefuse } from '@drmas/engine/formats';
import type { Files } from '@drmas/engine/host';
import { type OptimizerState, optimizerTypes, tableSize } from '@drmas/engine/model';
import { z } from 'zod';
import type { TableShape } from './choice-table.js';

const TABLE = 'choices.json';
const OPTIMIZER = 'choices.optimizer.json';

const names = z.array(z.string()).readonly();
const numbers = z.array(z.number());
const tableFile = z.strictObject({
  choices: names,
  features: names,
  length: z.int().positive(),
  logits: z
    .array(numbers)
    .describe('One row a feature; then one row a choice, if responses are longer than one choice.'),
});
const optimizerFile = z.strictObject({
  type: z.enum(optimizerTypes),
  step: z.int().nonnegative(),
  version: z.int().nonnegative(),
  buffers: z.record(z.string(), numbers),
});

/** Everything that training changes in a table. */
export interface TableState {
  readonly logits: Float32Array; // [rows, C]
  readonly optimizer?: OptimizerState & { readonly version: number };
}

export async function writeTable(files: Files, directory: string, shape: TableShape, state: TableState): Promise<void> {
  const { choices, features, length } = shape;
  const rows = Array.from({ length: state.logits.length / choices.length }, (_, r) =>
    Array.from(state.logits.subarray(r * choices.length, (r + 1) * choices.length)),
  );
  await files.write(
    `${directory}/${TABLE}`,
    `${JSON.stringify({ choices, features, length, logits: rows }, null, 1)}\n`,
  );
  if (state.optimizer === undefined) return;
  const { buffers, ...header } = state.optimizer;
  const lists = Object.fromEntries(Object.entries(buffers).map(([name, values]) => [name, Array.from(values)]));
  await files.write(`${directory}/${OPTIMIZER}`, JSON.stringify({ ...header, buffers: lists }));
}

/** Reads a table. @throws CheckpointError with the file and the expected value */
export async function readTable(
  files: Files,
  directory: string,
  { optimizer }: { readonly optimizer: boolean },
): Promise<{ readonly shape: TableShape; readonly state: TableState }> {
  const file = `${directory}/${TABLE}`;
  const { logits: rows, ...shape } = parseWith(tableFile, await readJsonFile(files, file), file);
  const logits = Float32Array.from(rows.flat());
  if (rows.some((row) => row.length !== shape.choices.length) || logits.length !== tableSize(shape))
    throw new CheckpointError(`${file}: expected ${tableSize(shape)} logits, ${shape.choices.length} a row`);
  if (!optimizer) return { shape, state: { logits } };
  const state = `${directory}/${OPTIMIZER}`;
  const { buffers, ...header } = parseWith(optimizerFile, await readJsonFile(files, state), state);
  for (const [name, values] of Object.entries(buffers))
    if (values.length !== logits.length)
      throw new CheckpointError(`${state}: expected ${logits.length} numbers in ${name}, found ${values.length}`);
  const floats = Object.entries(buffers).map(([name, values]) => [name, Float32Array.from(values)] as const);
  return { shape, state: { logits, optimizer: { ...header, buffers: Object.fromEntries(floats) } } };
}

const readJsonFile = async (files: Files, file: string): Promise<unknown> =>
  parseJson(await readOrRefuse(file, () => files.readText(file)), file);
