/** Replies of a trained agent outside of training, with its system prompt and sampling. The text can be streamed. */

import type { RandomKey } from '../../base/math.js';
import type { FinishReason } from '../../base/nouns.js';
import { type Message, system, user } from '../../base/nouns.js';
import type { OnTokens, PlayableHandle, Sampling } from '../contract/sampling.js';
import type { AgentProfile } from '../model/agent-profile.js';
import { TextStream } from '../model/tokenizers/text-stream.js';

/** A model, and the profile of the agent that it was trained as; undefined if the model has none. */
export interface AgentModel {
  readonly model: PlayableHandle;
  readonly agent: AgentProfile | undefined;
}

/** The input of an agent. A string is one user message. */
export type Conversation = string | readonly Message[];

/** A conversation with the agent's system prompt in front, as in training, unless it already begins with the prompt. */
export function conversationWith({ agent }: Pick<AgentModel, 'agent'>, conversation: Conversation): readonly Message[] {
  const messages = typeof conversation === 'string' ? [user(conversation)] : conversation;
  const prompt = agent?.system;
  const [first] = messages;
  const isThere = prompt === undefined || (first?.role === 'system' && first.content === prompt);
  return isThere ? messages : [system(prompt), ...messages];
}

/** The ids of a conversation with an agent. */
export function promptOf(agentModel: AgentModel, conversation: Conversation): number[] {
  return agentModel.model.tokenizer.chat(conversationWith(agentModel, conversation));
}

/** The agent's sampling with the caller's changes; without an agent the model's whole distribution. */
export function samplingOf({ model, agent }: AgentModel, wished: Partial<Sampling> = {}): Sampling {
  const whole = { temperature: 1, topP: 1, topK: 0, maxTokens: model.context };
  return { ...whole, ...agent?.sampling, ...wished };
}

export interface AnswerRequest {
  readonly prompt: readonly number[]; // [P]
  readonly sampling: Sampling;
  /** Names the random stream. */
  readonly key: RandomKey;
}

/** An answer with the ids that were sampled. */
export interface SampledReply {
  /** The text without the token that ended it. */
  readonly text: string;
  readonly tokens: number[]; // [R], the stop token included if one was sampled
  readonly logprobs: number[]; // [R]
  readonly finishReason: FinishReason;
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
