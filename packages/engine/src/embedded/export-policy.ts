/** Exports a policy of a checkpoint into a separate directory, without the optimiser's state. */
import { cp, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ExportRequest, PreparedExport } from '../backends/backend-declaration.js';
import { RunError, TokenizerError } from '../errors.js';
import { type GgufModel, ggufHeader, ggufOf } from '../model/formats/gguf/gguf-model.js';
import { nameBase, readAdapterDescription } from '../model/formats/peft.js';
import { holdsModel, openStoredModel } from '../model/formats/stored-model.js';
import { addHuggingFaceTokenizer, readTemplate } from '../model/formats/tokenizer-files.js';
import { nodeFiles } from '../platform.js';
import { loadPolicy } from './load-policy.js';
import { AGENTS, holdsAdapter, locateBase, OWN_BASE, openAdapter, openPolicy, TRUNK } from './state-files.js';

const GGUF = 'model.gguf';

/**
 * @throws RunError when there is no model, or a whole model instead of the wanted adapter; CheckpointError,
 *   TokenizerError when a GGUF file cannot express the model
 */
export async function prepareExport(request: ExportRequest): Promise<PreparedExport> {
  const { policy, from, format, tell } = request;
  const adapter = await holdsAdapter(nodeFiles, from);
  if (!adapter && !(await holdsModel(nodeFiles, from))) throw new RunError(`${from} holds no model`);
  if (!adapter && format === 'peft') throw new RunError(`policy '${policy}' is a whole model, no adapter: --format hf`);
  const baseOf = (directory: string) => locateBase(nodeFiles, directory);
  if (format === 'gguf') {
    const whole = adapter ? await baseOf(from) : from;
    const chatTemplate = adapter ? await readTemplate(nodeFiles, from) : undefined;
    const { config, tokenizer } = await openPolicy(nodeFiles, whole, { optimizer: false, chatTemplate });
    const model = { config, tokenizer, name: policy };
    ggufHeader(model); // refuses before anything is written
    return { write: (directory) => writeGguf(directory, model, adapter ? from : undefined, whole), baseOf };
  }
  return {
    async write(directory) {
      await (adapter && format === 'hf' ? merge(from, directory) : copy(from, directory, adapter));
      for (const whole of [directory, join(directory, OWN_BASE)]) await completeTokenizer(whole, tell);
    },
    baseOf,
  };
}

/** Writes a whole model. An adapter is merged into its base first, in a temporary directory. */
async function writeGguf(
  directory: string,
  model: GgufModel,
  adapter: string | undefined,
  whole: string,
): Promise<void> {
  const merged = join(directory, 'merged');
  if (adapter !== undefined) await merge(adapter, merged);
  const { tensors } = await openStoredModel(nodeFiles, adapter === undefined ? whole : merged);
  await writeFile(join(directory, GGUF), ggufOf(model, tensors.values()));
  await rm(merged, { recursive: true, force: true });
}

/**
 * Copies the files, once it is known that they can be read.
 * @throws CheckpointError naming file, tensor and expectation
 */
async function copy(from: string, directory: string, adapter: boolean): Promise<void> {
  const whole = adapter ? await locateBase(nodeFiles, from) : from;
  const { config } = await openPolicy(nodeFiles, whole, { optimizer: false });
  if (adapter) await openAdapter(nodeFiles, from, config, { optimizer: false });
  await copyFiles(from, directory);
  if (!adapter || (await readAdapterDescription(nodeFiles, from)).base !== TRUNK) return;
  // The trunk is trained with the adapter, so it exists nowhere else.
  await copyFiles(whole, join(directory, OWN_BASE));
  await nameBase(nodeFiles, directory, OWN_BASE);
}

/** Copies the files without the optimiser's state and, of a trunk, without the adapters of its agents. */
const copyFiles = (from: string, to: string) =>
  cp(from, to, {
    recursive: true,
    filter: (source) => !basename(source).startsWith('optimizer.') && source !== join(from, AGENTS),
  });

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
