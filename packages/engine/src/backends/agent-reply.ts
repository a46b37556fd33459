/** Replies of a trained agent outside of training, with its system prompt and sampling. The text can be streamed. */

import {
  type GenerateRequest,
  type Generation,
  isGreedy,
  type OnTokens,
  type PlayableHandle,
  type Sampling,
} from '../contract/sampling.js';
import { ArgumentError } from '../errors.js';
import type { RandomKey } from '../math.js';
import type { AgentProfile } from '../model/agent-profile.js';
import { TextStream } from '../model/tokenizers/text-stream.js';
import { callsIn, toolFormatNames } from '../model/tool-formats/index.js';
import { opensThinking, withoutThinking } from '../model/tool-formats/thinking.js';
import { type Message, system, type Tool, type ToolCall, user } from '../nouns.js';

/** A model, and the profile of the agent that it was trained as; undefined if the model has none. */
export interface AgentModel {
  readonly model: PlayableHandle;
  readonly agent: AgentProfile | undefined;
}

/** The input of an agent. A string is one user message. */
export type Conversation = string | readonly Message[];

/** A conversation with the agent's system prompt in front, as in training, unless it already begins with the prompt. */
function conversationWith({ agent }: Pick<AgentModel, 'agent'>, conversation: Conversation): readonly Message[] {
  const messages = typeof conversation === 'string' ? [user(conversation)] : conversation;
  const prompt = agent?.system;
  const [first] = messages;
  const isThere = prompt === undefined || (first?.role === 'system' && first.content === prompt);
  return isThere ? messages : [system(prompt), ...messages];
}

/** The ids of a conversation with an agent, and of the tools on offer. */
export function promptOf(agentModel: AgentModel, conversation: Conversation, tools?: readonly Tool[]): number[] {
  return agentModel.model.tokenizer.chat(conversationWith(agentModel, conversation), undefined, tools);
}

/** An answer's words apart from its calls of tools. */
export interface ContentWithCalls {
  /** The text without thinking and without calls. */
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
}

/**
 * The function that takes an answer's thinking and calls of these tools out of its text. A text whose calls cannot be
 * read, or do not fit the tools, has none.
 * @param id Names the answer in its conversation, in the ids of calls
 * @throws ArgumentError for tools, if the agent calls none
 */
export function callReader(
  { model, agent }: AgentModel,
  tools: readonly Tool[],
  id: string | number,
): (text: string, prompt: readonly number[]) => ContentWithCalls {
  const format = toolFormatNames.find((name) => name === (agent ? agent.tools : model.tokenizer.toolFormat));
  if (tools.length > 0 && format === undefined)
    throw new ArgumentError(`tools: ${agent ? `the agent '${agent.name}'` : 'the model'} has no format for calls`);
  return (text, prompt) => {
    const { rest } = withoutThinking(text, opensThinking(model.tokenizer, prompt));
    const read = format && tools.length > 0 ? callsIn(rest, format, tools) : undefined;
    const toolCalls = (read?.calls ?? []).map((call, n) => ({ id: `call_${id}_${n}`, ...call }));
    return { content: read?.content ?? rest, toolCalls };
  };
}

/** The agent's sampling with the caller's changes; without an agent the model's whole distribution. */
export function samplingOf({ model, agent }: AgentModel, wished: Partial<Sampling> = {}): Sampling {
  const whole = { temperature: 1, topP: 1, topK: 0, maxTokens: model.context };
  return { ...whole, ...agent?.sampling, ...wished };
}

interface AnswerRequest {
  readonly prompt: readonly number[]; // [P]
  readonly sampling: Sampling;
  readonly key: RandomKey;
}

interface SampledReply extends Omit<Generation, 'policyVersion'> {
  /** The text without the token that ended it. */
  readonly text: string;
}

/**
 * Samples an answer.
 * @param onText Receives the text piece by piece
 * @throws BackendError as `generate` does; rejects with the signal's reason
 */
export async function answer(
  { model }: AgentModel,
  { prompt, sampling, key }: AnswerRequest,
  signal?: AbortSignal,
  onText?: (text: string) => void,
): Promise<SampledReply> {
  const stream = new TextStream(model.tokenizer);
  const give = (piece: string) => {
    if (piece !== '') onText?.(piece);
  };
  const onTokens: OnTokens = (tokens) => give(stream.push(tokens));
  const { stopTokens } = model.tokenizer;
  const generation = await model.generate({ ...sampling, prompt, stopTokens, key }, signal, onTokens);
  give(stream.end());
  const { tokens, logprobs, finishReason } = generation;
  return { text: stream.text, tokens, logprobs, finishReason };
}

// The parts of a sampling request that are equal for all servers.

/** The name of a random stream as the one integer that servers take. */
export const seedOf = ({ key }: GenerateRequest) => (key[0] ^ key[1]) >>> 1;

/** The temperature to send: servers differ in the smallest one that they sample at, and all take 0 as greedy. */
export const temperatureOf = ({ temperature }: Pick<GenerateRequest, 'temperature'>) =>
  isGreedy(temperature) ? 0 : temperature;

/** The tokens up to the first stop token, and whether there is one. Some servers continue to sample after it. */
export function upToStop(sampled: readonly number[], { stopTokens }: Pick<GenerateRequest, 'stopTokens'>) {
  const stop = sampled.findIndex((token) => stopTokens.includes(token));
  return { tokens: stop < 0 ? [...sampled] : sampled.slice(0, stop + 1), stopped: stop >= 0 };
}
