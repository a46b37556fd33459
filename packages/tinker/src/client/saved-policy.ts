/** A policy in a checkpoint: the server's name of its weights, and the model that they belong to. */

import { CheckpointError } from '@drmas/engine/errors';
import { formatJson, parseWith, readJson } from '@drmas/engine/formats';
import type { Files } from '@drmas/engine/host';
import { z } from 'zod';

export const SAVED_POLICY = 'tinker.json';

const savedPolicy = z.object({
  version: z.literal(1),
  /** The address of the server that has the weights. */
  url: z.string(),
  path: z.string().min(1),
  baseModel: z.string(),
  rank: z.int().min(1),
  updates: z.int().min(0),
  /** The version of the weights' publication. */
  policyVersion: z.int().min(0),
});

export type SavedPolicy = z.output<typeof savedPolicy>;

export async function writeSavedPolicy(files: Files, directory: string, saved: SavedPolicy): Promise<void> {
  await files.write(`${directory}/${SAVED_POLICY}`, formatJson(saved));
}

/** @throws CheckpointError when the file is missing or damaged */
export async function readSaved(files: Files, directory: string): Promise<SavedPolicy> {
  const file = `${directory}/${SAVED_POLICY}`;
  return parseWith(savedPolicy, await readJson(files, file), file);
}

/** @throws CheckpointError when the file is missing, damaged, or belongs to another model than the policy's */
export async function readSavedPolicy(
  files: Files,
  directory: string,
  policy: string,
  expected: { readonly baseModel: string; readonly rank: number },
): Promise<SavedPolicy> {
  const saved = await readSaved(files, directory);
  for (const key of ['baseModel', 'rank'] as const)
    if (saved[key] !== expected[key])
      throw new CheckpointError(
        `${directory}: policy '${policy}' has ${key} ${expected[key]}, the checkpoint ${saved[key]}`,
      );
  return saved;
}
