/** Loads models and tokenizers from directories and hubs, for programs that use drmas as a library. */
import { requireKnown } from '../errors.js';
import { modelDirectory } from '../hub/model-directory.js';
import { readTemplate, readTokenizer } from '../model/formats/tokenizer-files.js';
import type { Tokenizer } from '../nouns.js';
import { kernelThreads, nodeFiles } from '../platform.js';
import { LoadedPolicy } from './loaded-policy.js';
import { holdsAdapter, locateBase } from './state-files.js';

/** The options of `loadPolicy`. */
export interface LoadPolicyOptions {
  /**
   * Threads of the engine's kernels. Default: one a core except one, which is left to the program. Their number changes
   * no result.
   */
  readonly threads?: number;
  /** The base of an adapter, in the form of the first argument. Default: the base that adapter_config.json names. */
  readonly base?: string;
  /** Receives messages about slow work at the start, such as a download or compiling the kernels. */
  readonly onProgress?: (message: string) => void;
  /** Ends a download. */
  readonly signal?: AbortSignal;
}

/**
 * Loads a model with its tokenizer. It can be:
 * - a directory in the Hugging Face layout: Llama, Mistral, Qwen2, Qwen3, SmolLM3, Gemma 3 or LFM2, in float32,
 *   bfloat16 or float16, in one safetensors file or several
 * - a GGUF file of the first five families (Mistral without a window), or the name of a model that Ollama or LM Studio
 *   has on disk
 * - an adapter in PEFT's format, on the model that it names or on `base`
 * - a policy of a checkpoint of drmas
 *
 * The engine computes in float32. If all matrices are stored in bfloat16, or in Q8_0, Q4_0 or Q4_1, they stay so, which
 * changes no result. `model` is a directory, or `org/name[@revision]` on a hub. Files that the cache lacks are
 * downloaded.
 * @throws CheckpointError naming file, tensor and expectation; HubError when it cannot be downloaded; TokenizerError
 *   when the tokenizer cannot be used
 *
 * @example
 * ```ts
 * import { loadPolicy } from 'drmas';
 *
 * const policy = await loadPolicy('runs/first/checkpoints/step-000060/solver');
 * const prompt = policy.tokenizer.encode('19a+7');
 * const { tokens } = await policy.generate({ prompt, maxTokens: 40, temperature: 0, seed: 1 });
 * await policy.dispose();
 * ```
 */
export async function loadPolicy(model: string, options: LoadPolicyOptions = {}): Promise<LoadedPolicy> {
  requireKnown<LoadPolicyOptions>(options, { threads: true, base: true, onProgress: true, signal: true });
  const { base, signal, onProgress } = options;
  const threads = kernelThreads(options.threads, 1);
  const place = { signal, onProgress };
  const directory = await modelDirectory(model, place);
  const baseDirectory = base === undefined ? undefined : await modelDirectory(base, place);
  return LoadedPolicy.open(directory, { threads, files: nodeFiles, base: baseDirectory, onProgress });
}

/**
 * Loads the tokenizer and chat template of a model, without its weights. For an adapter, it loads the base's tokenizer.
 * @throws CheckpointError naming the file that is missing or unreadable; HubError when it cannot be downloaded;
 * TokenizerError when its contents cannot be used
 *
 * @example
 * ```ts
 * import { loadTokenizer } from 'drmas';
 *
 * const tokenizer = await loadTokenizer('Qwen/Qwen2.5-0.5B-Instruct');
 * tokenizer.decode(tokenizer.encode('12 + 7'));
 * ```
 */
export async function loadTokenizer(
  model: string,
  { signal, onProgress }: Pick<LoadPolicyOptions, 'signal' | 'onProgress'> = {},
): Promise<Tokenizer> {
  const directory = await modelDirectory(model, { files: 'tokenizer', signal, onProgress });
  const adapted = await holdsAdapter(nodeFiles, directory);
  if (!adapted) return readTokenizer(nodeFiles, directory);
  return readTokenizer(nodeFiles, await locateBase(nodeFiles, directory), await readTemplate(nodeFiles, directory));
}
