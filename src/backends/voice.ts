/** An agent that is spoken to outside of training: the prompt it is used to, its sampling, its text as it comes. */
import type { OnTokens, PlayableHandle, Sampling } from '../contract/sampling.js';
import type { FinishReason } from '../core/episode.js';
import { type Message, system, user } from '../core/message.js';
import type { RandomKey } from '../core/random.js';
import type { AgentProfile } from '../model/agent-profile.js';
import { TextStream } from '../model/tokenizers/text-stream.js';

/** A model, and the agent that it was trained to be; undefined where nobody says. */
export interface Voice {
  readonly model: PlayableHandle;
  readonly agent: AgentProfile | undefined;
}

/** What an agent reads. A string is one user message. */
export type Conversation = string | readonly Message[];

/** A conversation with the agent's system prompt in front, as in training, unless it begins with that already. */
export function conversationWith({ agent }: Pick<Voice, 'agent'>, conversation: Conversation): readonly Message[] {
  const messages = typeof conversation === 'string' ? [user(conversation)] : conversation;
  const prompt = agent?.system;
  const [first] = messages;
  const isThere = prompt === undefined || (first?.role === 'system' && first.content === prompt);
  return isThere ? messages : [system(prompt), ...messages];
}

/** The ids of a conversation with an agent. */
export function promptOf(voice: Voice, conversation: Conversation): number[] {
  return voice.model.tokenizer.chat(conversationWith(voice, conversation));
}

/** The agent's sampling with what is asked for otherwise; without an agent the model's whole distribution. */
export function samplingOf({ model, agent }: Voice, wished: Partial<Sampling> = {}): Sampling {
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
export interface Answer {
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
  { model }: Voice,
  { prompt, sampling, key }: AnswerRequest,
  signal?: AbortSignal,
  onText?: (text: string) => void,
): Promise<Answer> {
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
