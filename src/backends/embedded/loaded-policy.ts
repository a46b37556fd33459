import type { DecoderConfig } from '../../contract/architecture.js';
import type { FinishReason } from '../../core/episode.js';
import { ArgumentError, CheckpointError, DrmasError, messageOf } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { randomKey } from '../../core/random.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { EmbeddedBackend, type EmbeddedOptions } from './embedded-backend.js';
import type { EmbeddedFrozen } from './embedded-policy.js';
import { holdsAdapter, locateBase, openAdapter, openPolicy } from './state-files.js';

/** Token ids, in the vocabulary of the policy. */
export type TokenIds = readonly number[] | Int32Array;

/** A request to `LoadedPolicy.generate`. */
export interface GenerateOptions {
  readonly prompt: TokenIds; // [P], at least one
  readonly maxTokens: number;
  /** 0 takes the most probable token each time. */
  readonly temperature: number;
  /** Equal seeds (and prompts) give equal tokens, whatever else is running. */
  readonly seed: number;
  /** Goes on after the tokens that end a text. */
  readonly ignoreEos?: boolean;
}

/** What `LoadedPolicy.generate` returns. */
export interface GeneratedText {
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  /**
   * log softmax(logits / temperature) of each token over the full vocabulary; at temperature 0: log softmax(logits).
   */
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
}

export interface OpenOptions extends EmbeddedOptions {
  /** The directory of the model that an adapter adapts; by default the one that the adapter's file names. */
  readonly base?: string | undefined;
}

/**
 * A model from a directory in the Hugging Face layout, or an adapter in PEFT's and the model it adapts, computed in a
 * worker thread; calls may overlap. The thread, and with it the process, lives until `dispose`; calls after that are
 * rejected with a BackendError.
 */
export class LoadedPolicy {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** The number of parameters; of an adapter, without those of its base. */
  readonly parameters: number;
  readonly #backend: EmbeddedBackend;
  readonly #model: EmbeddedFrozen;
  readonly #files: Files;
  #published: Promise<unknown> | undefined;

  private constructor(backend: EmbeddedBackend, model: EmbeddedFrozen, files: Files) {
    this.#backend = backend;
    this.#model = model;
    this.#files = files;
    this.config = model.config;
    this.tokenizer = model.tokenizer;
    this.parameters = model.parameters;
  }

  /** @throws CheckpointError naming file, tensor and expectation; TokenizerError */
  static async open(directory: string, { base, ...options }: OpenOptions): Promise<LoadedPolicy> {
    const { files } = options;
    const adapted = await holdsAdapter(files, directory);
    if (base !== undefined && !adapted)
      throw new CheckpointError(`${directory}: holds no adapter, so it has no base (${base})`);
    const from = adapted ? (base ?? (await locateBase(files, directory))) : directory;
    const model = { directory: from, ...(await openPolicy(files, from, { optimizer: false })) };
    const adapter = adapted ? await openAdapter(files, directory, model.config, { optimizer: false }) : undefined;
    const backend = await EmbeddedBackend.start(options);
    try {
      return new LoadedPolicy(backend, await backend.openStored(directory, model, adapter), files);
    } catch (error) {
      await backend.dispose();
      throw error;
    }
  }

  /**
   * What the model expects after each token: T rows of V logits. V is `config.vocabSize`, at least the tokenizer's.
   * @throws ArgumentError when there are no tokens, too many for the context, or ids outside the vocabulary
   */
  async logits(tokens: TokenIds): Promise<Float32Array> {
    this.#require('tokens', tokens, 1);
    return this.#model.logits(Int32Array.from(tokens));
  }

  /**
   * log softmax(logits) of each token of the continuation, given the prompt and the tokens before it: [R].
   * @throws ArgumentError as `logits` does; the prompt needs at least one token, the continuation may be empty
   */
  async logprobs(prompt: TokenIds, continuation: TokenIds): Promise<number[]> {
    this.#require('prompt', prompt, 1);
    this.#require('continuation', continuation, 0);
    const tokens = Int32Array.from([...prompt, ...continuation]);
    this.#require('prompt and continuation', tokens, 1);
    const zeros = new Float32Array(tokens.length);
    const sample = {
      tokens,
      mask: new Uint8Array(tokens.length).fill(1, prompt.length),
      behaviourLogprobs: zeros,
      advantages: zeros,
      temperature: 1,
      policyVersion: 0,
      agent: this.#model.name,
    };
    const [row] = await this.#model.logprobs([sample]);
    return Array.from((row ?? zeros).subarray(prompt.length));
  }

  /** @throws ArgumentError when an option is wrong or the prompt leaves no room in the context */
  async generate({ prompt, maxTokens, temperature, seed, ignoreEos = false }: GenerateOptions): Promise<GeneratedText> {
    this.#require('prompt', prompt, 1);
    if (prompt.length >= this.config.context)
      throw new ArgumentError(`prompt: ${prompt.length} tokens leave no room in a context of ${this.config.context}`);
    if (!Number.isSafeInteger(maxTokens) || maxTokens < 1)
      throw new ArgumentError(`maxTokens: expected a whole number of at least 1, found ${maxTokens}`);
    if (!Number.isFinite(temperature) || temperature < 0)
      throw new ArgumentError(`temperature: expected a number of at least 0, found ${temperature}`);
    if (!Number.isSafeInteger(seed)) throw new ArgumentError(`seed: expected a whole number, found ${seed}`);
    this.#published ??= this.#model.publish();
    await this.#published;
    const { tokens, logprobs, finishReason } = await this.#model.generate({
      prompt: Array.from(prompt),
      maxTokens,
      temperature,
      topK: 0,
      topP: 1,
      stopTokens: ignoreEos ? [] : this.tokenizer.stopTokens,
      key: randomKey('generate', seed),
    });
    return { tokens, logprobs, finishReason };
  }

  /**
   * Writes what `loadPolicy` and transformers load, in float32; the directory is made where it is missing. An adapter
   * is written without its base, as `peft` loads it; with `merge` it is folded into the base, and a whole model is
   * written.
   * @throws CheckpointError when it cannot be written
   */
  async save(directory: string, { merge = false }: { readonly merge?: boolean } = {}): Promise<void> {
    try {
      await this.#files.makeDirectory(directory);
      await (merge ? this.#model.saveMerged(directory) : this.#model.save(directory));
    } catch (error) {
      if (error instanceof DrmasError) throw error;
      throw new CheckpointError(`${directory}: cannot be written: ${messageOf(error)}`);
    }
  }

  dispose(): Promise<void> {
    return this.#backend.dispose();
  }

  #require(what: string, tokens: TokenIds, least: number): void {
    const { context, vocabSize } = this.config;
    if (!Array.isArray(tokens) && !(tokens instanceof Int32Array))
      throw new ArgumentError(`${what}: expected a list of token ids, found ${typeof tokens}`);
    if (tokens.length < least) throw new ArgumentError(`${what}: expected at least one token`);
    if (tokens.length > context)
      throw new ArgumentError(`${what}: ${tokens.length} tokens do not fit a context of ${context}`);
    const wrong = tokens.findIndex((token) => !(Number.isInteger(token) && token >= 0 && token < vocabSize));
    if (wrong >= 0)
      throw new ArgumentError(
        `${what}: token ${tokens[wrong]} at position ${wrong} is outside the vocabulary of ${vocabSize}`,
      );
  }
}
