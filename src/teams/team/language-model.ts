/**
 * The interface of AI SDK 6 and 7 to a model: the part of `LanguageModelV3` of `@ai-sdk/provider` that a text model
 * needs. Mastra, VoltAgent and `aisdk()` of OpenAI Agents use it too. drmas declares it here so that users need not
 * install that package. `language-model.test-d.ts` compares it with the package's own types.
 */

export type Json = null | string | number | boolean | Json[] | { [key: string]: Json | undefined };

/** Metadata of a provider in a part, as a framework returns it. It is read-only in version 7 of AI SDK. */
export interface ProviderOptions {
  readonly [provider: string]: { readonly [key: string]: unknown };
}

/** Metadata of a provider in a part, by the provider's name. Frameworks return it with the part. */
export type ProviderData = Record<string, { [key: string]: Json | undefined }>;

/** A part of a message, of any kind. `providerOptions` is the metadata that came with the part from a model. */
export interface PromptPart {
  readonly type: string;
  readonly providerOptions?: ProviderOptions | undefined;
}

/** A message of a prompt. */
export interface PromptMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | readonly PromptPart[];
  readonly providerOptions?: ProviderOptions | undefined;
}

/** One call of a model. */
export interface ModelCall {
  readonly prompt: readonly PromptMessage[];
  readonly maxOutputTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly seed?: number | undefined;
  /** The effort of thinking, in AI SDK 7. */
  readonly reasoning?: string | undefined;
  readonly responseFormat?: { readonly type: 'text' } | { readonly type: 'json'; readonly schema?: object | undefined };
  readonly tools?: readonly ({ readonly type: string; readonly name: string } & Partial<FunctionTool>)[] | undefined;
  readonly toolChoice?:
    | { readonly type: 'auto' | 'none' | 'required' }
    | { readonly type: 'tool'; readonly toolName: string }
    | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

/** A tool of AI SDK, which a call of the model may offer. */
export interface FunctionTool {
  readonly description?: string | undefined;
  readonly inputSchema?: object | boolean | undefined;
  readonly strict?: boolean | undefined;
}

/** A setting that the model does not heed. */
export interface ModelWarning {
  type: 'unsupported';
  feature: string;
  details?: string;
}

/** A part of a model's response. */
export type ContentPart =
  | { type: 'text'; text: string; providerMetadata: ProviderData }
  | { type: 'reasoning'; text: string; providerMetadata: ProviderData }
  | { type: 'tool-call'; toolCallId: string; toolName: string; input: string; providerMetadata: ProviderData };

/** The tokens of an answer, in AI SDK's form of version 3 and 4. */
export interface ModelUsage {
  inputTokens: { total: number; noCache: number; cacheRead: undefined; cacheWrite: undefined };
  outputTokens: { total: number; text: number | undefined; reasoning: number | undefined };
}

/** Why an answer ended, in AI SDK's form of version 3 and 4. */
export interface ModelFinish {
  unified: 'stop' | 'length' | 'tool-calls';
  raw: string;
}

/** The answer of a model. */
export interface ModelResult {
  content: ContentPart[];
  finishReason: ModelFinish;
  usage: ModelUsage;
  warnings: ModelWarning[];
  response: { id: string; modelId: string };
}

/** A piece of an answer that is streamed. */
export type ModelStreamPart =
  | { type: 'stream-start'; warnings: ModelWarning[] }
  | { type: 'response-metadata'; id: string; modelId: string }
  | {
      type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end';
      id: string;
      providerMetadata: ProviderData;
    }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  | Extract<ContentPart, { type: 'tool-call' }>
  | { type: 'finish'; finishReason: ModelFinish; usage: ModelUsage };

/** A model that a framework can call. */
export interface LanguageModel {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  doGenerate(call: ModelCall): Promise<ModelResult>;
  doStream(call: ModelCall): Promise<{ stream: ReadableStream<ModelStreamPart> }>;
}
