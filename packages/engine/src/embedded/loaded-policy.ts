import { answer, type Conversation, callReader, promptOf, samplingOf } from '../backends/agent-reply.js';
import type { DecoderConfig } from '../contract/architecture.js';
import { CheckpointError } from '../errors.js';
import type { Files } from '../host.js';
import { randomKey } from '../math.js';
import { type AgentProfile, readAgentProfile } from '../model/agent-profile.js';
import { readTemplate } from '../model/formats/tokenizer-files.js';
import type { Tokenizer } from '../nouns.js';
import type { EmbeddedBackend } from './embedded-backend.js';
import type { EmbeddedFrozen } from './embedded-policy.js';
import {
  type AnsweredText,
  type AnswerOptions,
  checkedSampling,
  type GeneratedText,
  type GenerateOptions,
  type TokenIds,
} from './generate-options.js';
import { type EmbeddedOptions, startEmbedded } from './start-embedded.js';
import { holdsAdapter, locateBase, openAdapter, openPolicy } from './state-files.js';
import { requireRoom, requireTokens } from './token-checks.js';
import { writingInto } from './writing-into.js';

export interface LoadedPolicyOptions extends EmbeddedOptions {
  /** The directory of the model that an adapter adapts; by default the one that the adapter's file names. */
  readonly base?: string | undefined;
}

/**
 * A model from a directory in the Hugging Face layout, or an adapter in PEFT's layout with its base. A worker thread
 * computes it; calls may overlap. The thread ends with `dispose` or with the process. Later calls are rejected with a
 * BackendError.
 */
export class LoadedPolicy implements AsyncDisposable {
  readonly config: DecoderConfig;
  readonly tokenizer: Tokenizer;
  /** The number of parameters. For an adapter, the base's parameters are not counted. */
  readonly parameters: number;
  /** The agent's name, system prompt and sampling, if they were exported with the weights. */
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
  static async open(directory: string, { base, ...options }: LoadedPolicyOptions): Promise<LoadedPolicy> {
    const { files } = options;
    const adapted = await holdsAdapter(files, directory);
    if (base !== undefined && !adapted)
      throw new CheckpointError(`${directory}: holds no adapter, so it has no base (${base})`);
    const from = adapted ? (base ?? (await locateBase(files, directory))) : directory;
    const chatTemplate = adapted ? await readTemplate(files, directory) : undefined;
    const model = { directory: from, ...(await openPolicy(files, from, { optimizer: false, chatTemplate })) };
    const adapter = adapted ? await openAdapter(files, directory, model.config, { optimizer: false }) : undefined;
    const agent = await readAgentProfile(files, directory);
    const backend = await startEmbedded({ ...options, precisions: ['float32'] });
    try {
      return new LoadedPolicy(backend, await backend.openStored(directory, model, adapter), { files, agent });
    } catch (error) {
      await backend.dispose();
      throw error;
    }
  }

  /**
   * The logits of the next token after each token: T rows of V. V is `config.vocabSize`, at least the tokenizer's.
   * @throws ArgumentError when there are no tokens, too many for the context, or ids outside the vocabulary
   */
  async logits(tokens: TokenIds): Promise<Float32Array> {
    requireTokens('tokens', tokens, this.config);
    return this.#model.logits(Int32Array.from(tokens));
  }

  /**
   * log softmax(logits) of each token of the continuation, given the prompt and the tokens before it: [R].
   * @throws ArgumentError as `logits` does; the prompt needs at least one token, the continuation may be empty
   */
  async logprobs(prompt: TokenIds, continuation: TokenIds): Promise<number[]> {
    requireTokens('prompt', prompt, this.config);
    requireTokens('continuation', continuation, this.config, 0);
    const tokens = Int32Array.from([...prompt, ...continuation]);
    requireTokens('prompt and continuation', tokens, this.config);
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
    requireRoom('prompt', prompt, this.config);
    const sampling = checkedSampling({ ...this.agent?.sampling, ...chosen }, seed);
    await this.#publish();
    const { tokens, logprobs, finishReason } = await this.#model.generate({
      ...sampling,
      prompt: Array.from(prompt),
      stopTokens: ignoreEos ? [] : this.tokenizer.stopTokens,
      key: randomKey('generate', seed ?? 0),
    });
    return { tokens, logprobs, finishReason };
  }

  /**
   * Answers a conversation as the exported agent: with its sampling, and with its system prompt in front unless the
   * conversation begins with it. A string is one user message. A model without an agent samples from the whole
   * distribution, up to the end of the context. The model may call `tools`, in the format of its training.
   * `[...messages, assistant(answered)]` and a `toolResult` for each call continue the conversation.
   * @throws ArgumentError when an option is wrong, the conversation fills the context, or there are tools for an agent
   *   that calls none; TokenizerError if the model has no chat template
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
  async answer(conversation: Conversation, options: AnswerOptions): Promise<AnsweredText> {
    const { seed, signal, onText, tools = [], ...chosen } = options;
    const agentModel = { model: this.#model, agent: this.agent };
    const readCalls = callReader(agentModel, tools, typeof conversation === 'string' ? 1 : conversation.length);
    const prompt = promptOf(agentModel, conversation, tools);
    requireRoom('prompt', prompt, this.config);
    const sampling = checkedSampling(samplingOf(agentModel, chosen), seed);
    await this.#publish();
    const key = randomKey('generate', seed ?? 0);
    const reply = await answer(agentModel, { prompt, sampling, key }, signal, onText);
    return { ...reply, ...readCalls(reply.text, prompt) };
  }

  /**
   * Writes the model in float32, for `loadPolicy` and transformers. It creates a missing directory. An adapter is
   * written without its base, for `peft`. With `merge`, the adapter is merged into the base and the whole model is
   * written.
   * @throws CheckpointError when it cannot be written
   */
  async save(directory: string, { merge = false }: { readonly merge?: boolean } = {}): Promise<void> {
    await writingInto(this.#files, directory, (temporary) =>
      merge ? this.#model.saveMerged(temporary) : this.#model.save(temporary),
    );
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
}
