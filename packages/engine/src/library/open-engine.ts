/**
 * The engine as a library: models that sample, score and learn in a worker thread of this process, for programs that
 * have a training loop of their own.
 */
import type { Device, Precision } from '../contract/architecture.js';
import type { BaseSpec, OwnWeights } from '../contract/weights-spec.js';
import type { EmbeddedBackend } from '../embedded/embedded-backend.js';
import { startEmbedded } from '../embedded/start-embedded.js';
import type { EngineHardware } from '../embedded/thread/engine-thread.js';
import { ArgumentError, type OptionNames, parseSpec, requireKnown } from '../errors.js';
import { modelDirectory } from '../hub/model-directory.js';
import { wholeWeights } from '../model/initial-weights.js';
import { languageModelSchema } from '../model/model-schema.js';
import {
  completeAdapter,
  completeWhole,
  type LoraInput,
  type WholeModelInput,
  type WholeModelSpec,
} from '../model/model-spec.js';
import { kernelThreads, nodeFiles } from '../platform.js';
import { TrainableModel } from './trainable-model.js';

/** The options of `openEngine`. */
export interface EngineOptions {
  /** Threads of the kernels. Default: one a core. Their number changes no result. */
  readonly threads?: number | undefined;
  /** `cpu`, or `gpu` through WebGPU (experimental). Default `cpu`, unless `DRMAS_KERNELS` is `webgpu`. */
  readonly device?: Device | undefined;
  /**
   * The kernels, in place of `DRMAS_KERNELS`. Default: the fastest that this machine has. `native-avx2` gives the same
   * bits on every processor.
   */
  readonly kernels?: 'native' | 'native-avx2' | 'wasm' | 'reference' | undefined;
  /** The seed of random first weights and of sampling. Default 1. */
  readonly seed?: number | undefined;
  /**
   * Keeps less in memory for the backward pass and computes it again: more time, the same gradients up to rounding.
   * Default false.
   */
  readonly recompute?: boolean | undefined;
  /** Receives a message before work that takes long, such as a download or compiling the kernels. */
  readonly onProgress?: ((message: string) => void) | undefined;
  /** Ends downloads. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of one model. */
export interface ModelOptions {
  /** The model's name in messages. Default `model`. */
  readonly name?: string | undefined;
  /**
   * The seed of this model's random first weights and of its sampling. Default: the engine's. The base of an adapter
   * always has the engine's, so that adapters with different seeds share it.
   */
  readonly seed?: number | undefined;
  /** The precision of matrix products. Default `float32`. */
  readonly precision?: Precision | undefined;
}

const ENGINE: OptionNames<EngineOptions> = {
  ...{ threads: true, device: true, kernels: true, seed: true, recompute: true, onProgress: true, signal: true },
};
const MODEL: OptionNames<ModelOptions> = { name: true, seed: true, precision: true };

/** An engine that holds several models. Adapters on equal bases share one base in memory. */
export class TrainingEngine implements AsyncDisposable {
  readonly #backend: EmbeddedBackend;
  readonly #options: EngineOptions & { readonly seed: number };
  #disposed: Promise<void> | undefined;

  /** @internal */
  constructor(backend: EmbeddedBackend, options: EngineOptions & { readonly seed: number }) {
    this.#backend = backend;
    this.#options = options;
  }

  /** The kernels that compute, their instruction set and their threads. */
  get hardware(): EngineHardware {
    return this.#backend.hardware;
  }

  /**
   * Opens a model that trains: `tinyDecoder(...)`, `checkpoint(...)`, or `lora(...)` on one of them.
   * @throws ArgumentError naming the key that is wrong; CheckpointError, TokenizerError about a directory; HubError
   *   about a download
   */
  async open(model: WholeModelInput | LoraInput, options: ModelOptions = {}): Promise<TrainableModel> {
    requireKnown(options, MODEL);
    return this.#open(model, options, false);
  }

  /** @internal Opens the only model of this engine, which ends with the model. */
  openOnly(model: WholeModelInput | LoraInput, options: ModelOptions): Promise<TrainableModel> {
    return this.#open(model, options, true);
  }

  async #open(model: WholeModelInput | LoraInput, options: ModelOptions, only: boolean): Promise<TrainableModel> {
    const { name = 'model', seed = this.#options.seed, precision } = options;
    requireSeed(seed);
    const weights = await this.#weights(parseSpec(languageModelSchema, model, 'model'), seed);
    const policy = await this.#backend.open({ ...weights, ...(precision && { precision }) }, 'policy', name);
    const close = () => (only ? this.dispose() : (this.#disposed ?? policy.close()));
    return new TrainableModel(policy, { files: nodeFiles, hardware: this.hardware, seed, close });
  }

  /** Ends the engine and all of its models, whatever they compute. */
  dispose(): Promise<void> {
    this.#disposed ??= this.#backend.dispose();
    return this.#disposed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #weights(input: WholeModelInput | LoraInput, seed: number): Promise<OwnWeights> {
    if (input.type !== 'lora') return this.#base(completeWhole(input), seed);
    const model = completeAdapter(input);
    const base = await this.#base(model.base, this.#options.seed);
    if ('from' in model) return { type: 'saved-adapter', base, directory: model.from };
    const { rank, alpha, targets } = model;
    return { type: 'adapter', base, adapter: { rank, alpha, targets }, seed };
  }

  /** A checkpoint with its directory. Files that the cache lacks are downloaded. */
  async #base(model: WholeModelSpec, seed: number): Promise<BaseSpec> {
    if (model.type !== 'checkpoint') return wholeWeights(model, seed);
    const { signal, onProgress } = this.#options;
    const path = await modelDirectory(model.path, { signal, onProgress });
    return wholeWeights({ ...model, path }, seed, model.path);
  }
}

/**
 * Starts an engine for several models. `openModel` is enough for one.
 * @throws ArgumentError naming the option that is wrong; BackendError if the engine cannot start
 *
 * @example
 * ```ts
 * import { checkpoint, lora, openEngine } from 'drmas/engine';
 *
 * await using engine = await openEngine({ threads: 2 });
 * const base = checkpoint('Qwen/Qwen2.5-0.5B-Instruct');
 * const solver = await engine.open(lora(base, { rank: 8 }), { name: 'solver', seed: 1 });
 * const verifier = await engine.open(lora(base, { rank: 8 }), { name: 'verifier', seed: 2 });
 * ```
 */
export async function openEngine(options: EngineOptions = {}): Promise<TrainingEngine> {
  requireKnown(options, ENGINE);
  return startEngine(options);
}

/** @param precisions The precisions of the engine's models, if they are known. Default: all */
async function startEngine(options: EngineOptions, precisions?: readonly Precision[]): Promise<TrainingEngine> {
  const { seed = 1, device, kernels, recompute, onProgress } = options;
  const threads = kernelThreads(options.threads);
  requireSeed(seed);
  const settings = { threads, device, kernels, recompute, precisions };
  const backend = await startEmbedded({ ...settings, files: nodeFiles, onProgress });
  return new TrainingEngine(backend, { ...options, seed });
}

/**
 * Opens one model in a new engine, which ends with the model.
 * @throws ArgumentError naming the option or the model's key that is wrong; CheckpointError, TokenizerError about a
 *   directory; HubError about a download; BackendError if the engine cannot start
 *
 * @example
 * ```ts
 * import { openModel, tinyDecoder, trainingSample } from 'drmas/engine';
 *
 * const tiny = { width: 48, layers: 2, heads: 3, feedForward: 128, context: 64 };
 * await using model = await openModel(tinyDecoder({ ...tiny, tokenizer: { type: 'bytes' } }), { seed: 7 });
 * const [group = []] = await model.generate({ prompts: ['2 + 2 = '], n: 8, maxTokens: 4 });
 * const samples = group.map((completion) => trainingSample(completion, completion.text.includes('4') ? 1 : -1));
 * const { loss } = await model.forwardBackward(samples, { loss: { type: 'ppo-clip' } });
 * const step = await model.optimStep({ learningRate: 1e-3 });
 * console.log(loss, step.applied);
 * ```
 */
export async function openModel(
  model: WholeModelInput | LoraInput,
  options: EngineOptions & ModelOptions = {},
): Promise<TrainableModel> {
  requireKnown(options, { ...ENGINE, ...MODEL });
  const engine = await startEngine(options, [options.precision ?? 'float32']);
  try {
    return await engine.openOnly(model, options);
  } catch (error) {
    await engine.dispose();
    throw error;
  }
}

function requireSeed(seed: number): void {
  if (!Number.isSafeInteger(seed)) throw new ArgumentError(`seed: expected a whole number, found ${seed}`);
}
