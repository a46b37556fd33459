import { type JsonSchema, type Message, system, user } from '../core/message.js';

/**
 * The messages that an agent reads: its system prompt, where it has one, and the input. A string is one user message.
 * The schema of a response stands at the end of the first system message, since templates may allow no other.
 */
export function promptMessages(
  prompt: string | undefined,
  input: string | readonly Message[],
  responseSchema?: JsonSchema,
): Message[] {
  const messages = typeof input === 'string' ? [user(input)] : input;
  const copies = messages.map((message) => ({ ...message })); // the team may go on writing in its own
  const read = prompt === undefined ? copies : [system(prompt), ...copies];
  if (responseSchema === undefined) return read;
  const demand = `Answer with JSON of this schema alone: ${JSON.stringify(responseSchema)}`;
  const [first, ...rest] = read;
  return first?.role === 'system' ? [system(`${first.content}\n${demand}`), ...rest] : [system(demand), ...read];
}
