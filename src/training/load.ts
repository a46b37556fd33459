/** Models and tokenizers from directories, for programs of one's own. */
import { availableParallelism } from 'node:os';
import { LoadedPolicy } from '../backends/embedded/loaded-policy.js';
import { holdsAdapter, locateBase } from '../backends/embedded/state-files.js';
import type { Tokenizer } from '../core/tokenizer.js';
import { readTokenizer } from '../model/formats/tokenizer-files.js';
import { nodeFiles } from '../runs/node-files.js';

export interface LoadPolicyOptions {
  /** Threads of the engine's kernels; by default one a core. */
  readonly threads?: number;
  /** For an adapter: the directory of the model that it adapts; by default the one that adapter_config.json names. */
  readonly base?: string;
  /** Told what takes long at the start, such as compiling the kernels. */
  readonly onProgress?: (message: string) => void;
}

/**
 * Loads a model from a directory in the Hugging Face layout: Llama, Qwen2 or Qwen3, in float32, bfloat16 or float16, in one
 * safetensors file or several, with its tokenizer; or an adapter in PEFT's format, on the model that it names or on
 * `base`; or a policy of a checkpoint of drmas. It is computed in float32.
 * @throws CheckpointError naming file, tensor and expectation; TokenizerError when the tokenizer cannot be used
 */
export function loadPolicy(directory: string, options: LoadPolicyOptions = {}): Promise<LoadedPolicy> {
  const { threads = availableParallelism(), ...rest } = options;
  return LoadedPolicy.open(directory, { threads, files: nodeFiles, ...rest });
}

/**
 * Loads the tokenizer and chat template of such a directory; of an adapter, those of its base.
 * @throws CheckpointError naming the file that is missing or unreadable; TokenizerError when its contents cannot be used
 */
export async function loadTokenizer(directory: string): Promise<Tokenizer> {
  const adapted = await holdsAdapter(nodeFiles, directory);
  return readTokenizer(nodeFiles, adapted ? await locateBase(nodeFiles, directory) : directory);
}
