import { type Message, system, user } from '../core/message.js';

/**
 * The messages that an agent reads: its system prompt, where it has one, and the input. A string is one user message.
 */
export function promptMessages(prompt: string | undefined, input: string | readonly Message[]): Message[] {
  const messages = typeof input === 'string' ? [user(input)] : input;
  const copies = messages.map((message) => ({ ...message })); // the team may go on writing in its own
  return prompt === undefined ? copies : [system(prompt), ...copies];
}
