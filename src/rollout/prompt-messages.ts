import { type Message, system, user } from '../core/message.js';

/** What an agent reads: its system prompt, where it has one, before the conversation. A string is one user message. */
export function conversation(prompt: string | undefined, input: string | readonly Message[]): Message[] {
  const given = typeof input === 'string' ? [user(input)] : input;
  return prompt === undefined ? [...given] : [system(prompt), ...given];
}
