import type { DecoderConfig } from '../../contract/architecture.js';
import { ArgumentError, CheckpointError, DrmasError, messageOf } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { randomKey } from '../../core/random.js';
import type { Tokenizer } from '../../core/tokenizer.js';
import { type AgentProfile, readAgentProfile } from '../../model/agent-profile.js';
import { readTemplate } from '../../model/formats/tokenizer-files.js';
import { answer, type Conversation, promptOf, samplingOf } from '../voice.js';
import { EmbeddedBackend, type EmbeddedOptions } from './embedded-backend.js';
import type { EmbeddedFrozen } from './embedded-policy.js';
import {
  type AnsweredText,
  type AnswerOptions,
  checkedSampling,
  type GeneratedText,
  type GenerateOptions,
  type TokenIds,
} from './generate-options.js';
import { holdsAdapter, locateBase, openAdapter, openPolicy } from './state-files.js';

export interface OpenOptions extends EmbeddedOptions {
  /** The directory of the model that an adapter adapts; by default the one that the adapter's file names. */
  readonly base?: string | undefined;
}

/**
 * A model from a directory in the Hugging Face layout, or an adapter in PEFT's and the model it adapts, computed in a
 * worker thread; calls may overlap. The thread lives until `dispose`, or with the process; calls after that are
 * rejected with a BackendError.
 */
export class LoadedPolicy implements AsyncDisposable {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** The number of parameters; of an adapter, without those of its base. */
  readonly parameters: number;
  /** What was exported with the weights of an agent: its name, system prompt and sampling. */
  readonly agent: AgentProfile | undefined;
  readonly #backend: EmbeddedBackend;
  readonly #model: EmbeddedFrozen;
  readonly #files: Files;
  #published: Promise<unknown> | undefined;

  private constructor(
    backend: EmbeddedBackend,
    model: EmbeddedFrozen,
    { files, agent }: { readonly files: Files; readonly agent: AgentProfile | undefined },
  ) {
    this.agent = agent;
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
    const chatTemplate = adapted ? await readTemplate(files, directory) : undefined;
    const model = { directory: from, ...(await openPolicy(files, from, { optimizer: false, chatTemplate })) };
    const adapter = adapted ? await openAdapter(files, directory, model.config, { optimizer: false }) : undefined;
    const agent = await readAgentProfile(files, directory);
    const backend = await EmbeddedBackend.start(options);
    try {
      return new LoadedPolicy(backend, await backend.openStored(directory, model, adapter), { files, agent });
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
  async generate({ prompt, seed, ignoreEos = false, ...chosen }: GenerateOptions): Promise<GeneratedText> {
    this.#requireRoom(prompt);
    const sampling = checkedSampling({ ...this.agent?.sampling, ...chosen }, seed);
    await this.#publish();
    const { tokens, logprobs, finishReason } = await this.#model.generate({
      ...sampling,
      prompt: Array.from(prompt),
      stopTokens: ignoreEos ? [] : this.tokenizer.stopTokens,
      key: randomKey('generate', seed),
    });
    return { tokens, logprobs, finishReason };
  }

  /**
   * Answers a conversation as the agent that was exported: with its system prompt in front, unless the conversation
   * begins with it, and its sampling. A string is one user message. Of a model that is no agent's, the whole
   * distribution is sampled up to the end of the context.
   * @throws ArgumentError when an option is wrong or the conversation leaves no room in the context; TokenizerError
   *   where the model has no chat template
   *
   * @example
   * ```ts
   * import { loadPolicy } from 'drmas';
   *
   * const policy = await loadPolicy('models/solver');
   * const { text } = await policy.answer('19a+7', { seed: 1, onText: (piece) => process.stdout.write(piece) });
   * await policy.dispose();
   * ```
   */
  async answer(conversation: Conversation, { seed, signal, onText, ...chosen }: AnswerOptions): Promise<AnsweredText> {
    const voice = { model: this.#model, agent: this.agent };
    const prompt = promptOf(voice, conversation);
    this.#requireRoom(prompt);
    const sampling = checkedSampling(samplingOf(voice, chosen), seed);
    await this.#publish();
    return answer(voice, { prompt, sampling, key: randomKey('generate', seed) }, signal, onText);
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #publish(): Promise<unknown> {
    this.#published ??= this.#model.publish();
    return this.#published;
  }

  #requireRoom(prompt: TokenIds): void {
    const { context } = this.config;
    this.#require('prompt', prompt, 1);
    if (prompt.length >= context)
      throw new ArgumentError(`prompt: ${prompt.length} tokens leave no room in a context of ${context}`);
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
