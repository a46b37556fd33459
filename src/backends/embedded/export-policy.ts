/** A policy of a checkpoint as a directory of its own, without the optimiser's state. */
import { cp } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RunError, TokenizerError } from '../../core/errors.js';
import { addHuggingFaceTokenizer } from '../../model/formats/tokenizer-files.js';
import { nodeFiles } from '../../platform/node-files.js';
import type { ExportRequest, PreparedExport } from '../backend-declaration.js';
import { loadPolicy } from './load-policy.js';
import { holdsAdapter, locateBase, OWN_BASE, openAdapter, openPolicy } from './state-files.js';

/** @throws RunError when there is no model, or a whole one where an adapter is wanted */
export async function prepareExport({ policy, from, format, tell }: ExportRequest): Promise<PreparedExport> {
  const adapter = await holdsAdapter(nodeFiles, from);
  if (!adapter && !(await nodeFiles.exists(join(from, 'config.json')))) throw new RunError(`${from} holds no model`);
  if (!adapter && format === 'peft') throw new RunError(`policy '${policy}' is a whole model, no adapter: --format hf`);
  return {
    async write(directory) {
      await (adapter && format === 'hf' ? merge(from, directory) : copy(from, directory, adapter));
      for (const whole of [directory, join(directory, OWN_BASE)]) await completeTokenizer(whole, tell);
    },
    baseOf: (directory) => locateBase(nodeFiles, directory),
  };
}

/**
 * Copies the files, once it is known that they can be read.
 * @throws CheckpointError naming file, tensor and expectation
 */
async function copy(from: string, directory: string, adapter: boolean): Promise<void> {
  const whole = adapter ? await locateBase(nodeFiles, from) : from;
  const { config } = await openPolicy(nodeFiles, whole, { optimizer: false });
  if (adapter) await openAdapter(nodeFiles, from, config, { optimizer: false });
  await cp(from, directory, { recursive: true, filter: (source) => !basename(source).startsWith('optimizer.') });
}

/** Folds the adapter into its base. */
async function merge(from: string, directory: string): Promise<void> {
  const policy = await loadPolicy(from, { threads: 1 });
  try {
    await policy.save(directory, { merge: true });
  } finally {
    await policy.dispose();
  }
}

async function completeTokenizer(directory: string, tell: (why: string) => void): Promise<void> {
  try {
    await addHuggingFaceTokenizer(nodeFiles, directory);
  } catch (error) {
    if (!(error instanceof TokenizerError)) throw error;
    tell(`there is no tokenizer.json, since ${error.message}`);
  }
}
