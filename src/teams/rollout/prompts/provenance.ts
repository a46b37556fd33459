/** Finds the turns of an episode that the messages of a prompt repeat, even if a framework changed them. */

import { isObject } from '../../../base/errors.js';
import type { Message, ToolCall, Turn } from '../../../base/nouns.js';

/** A message of a prompt, with the turn whose reply it repeats and the evidence for it. */
export interface Traced {
  readonly message: Message;
  readonly turn?: Turn;
  readonly by?: 'id' | 'text' | 'calls';
}

/** The ids of tool calls of drmas contain the id of their turn. */
const CALL_ID = /^call_([0-9a-f]{16})_\d+$/;

/**
 * Traces each assistant's message to its turn: first by the id of the turn or of its calls, then by equal text, then by
 * equal calls with any spelling of their arguments. A message that has a turn's id but differs from the turn belongs to
 * no turn: the framework wrote it. Several consecutive messages that make up one turn become one message.
 * @param turns The turns that the message may repeat
 * @param continues Whether a turn answered the messages before this one; among equal turns such a turn counts, else
 *   the latest
 */
export function traceMessages(
  messages: readonly Message[],
  turns: readonly Turn[],
  continues: (turn: Turn, before: readonly Traced[]) => boolean,
): Traced[] {
  const byId = new Map(turns.flatMap((turn) => (turn.id === undefined ? [] : [[turn.id, turn]])));
  const traced: Traced[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at] as Message;
    const [merged, count] = message.role === 'assistant' ? mergedAt(messages, at, byId) : [message, 1];
    traced.push(
      merged.role === 'assistant' ? trace(merged, turns, byId, (turn) => continues(turn, traced)) : { message },
    );
    at += count;
  }
  return traced;
}

/** The longest run of messages from a position that makes up one turn, as one message; else the single message. */
function mergedAt(
  messages: readonly Message[],
  at: number,
  byId: ReadonlyMap<string, Turn>,
): readonly [Message, number] {
  const first = messages[at] as Message;
  let end = at;
  while (messages[end]?.role === 'assistant') end++;
  for (let count = end - at; count > 1; count--) {
    const merged = mergedMessage(messages.slice(at, at + count));
    const [id, ...more] = idsIn(merged, byId);
    const turn = id === undefined || more.length > 0 ? undefined : byId.get(id);
    if (turn !== undefined && repeats(merged, turn)) return [merged, count];
  }
  return [first, 1];
}

function mergedMessage(messages: readonly Message[]): Message {
  const turnId = messages.find((message) => message.turnId !== undefined)?.turnId;
  const toolCalls = messages.flatMap((message) => message.toolCalls ?? []);
  return {
    role: 'assistant',
    content: messages.map(({ content }) => content).join(''),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(turnId === undefined ? {} : { turnId }),
  };
}

function trace(
  message: Message,
  turns: readonly Turn[],
  byId: ReadonlyMap<string, Turn>,
  continues: (turn: Turn) => boolean,
): Traced {
  const [id, ...more] = idsIn(message, byId);
  if (id !== undefined) {
    const turn = byId.get(id);
    return turn !== undefined && more.length === 0 && repeats(message, turn)
      ? { message, turn, by: 'id' }
      : { message };
  }
  const { content, toolCalls = [] } = message;
  const isEqual =
    toolCalls.length === 0
      ? (turn: Turn) => turn.text === content || (turn.toolCalls === undefined && contentOf(turn) === content)
      : (turn: Turn) => contentOf(turn) === content && sameCalls(toolCalls, turn.toolCalls);
  const equal = turns.filter(isEqual);
  const turn = equal.findLast(continues) ?? equal.at(-1);
  return turn === undefined ? { message } : { message, turn, by: toolCalls.length === 0 ? 'text' : 'calls' };
}

/** The turns whose ids a message contains. */
function idsIn({ turnId = '', toolCalls = [] }: Message, byId: ReadonlyMap<string, Turn>): string[] {
  const ids = [turnId, ...toolCalls.map((call) => CALL_ID.exec(call.id)?.[1] ?? '')];
  return [...new Set(ids.filter((id) => byId.has(id)))];
}

/** Whether a message with a turn's id repeats the turn's content. White space at the ends does not count. */
function repeats({ content, toolCalls = [] }: Message, turn: Turn): boolean {
  const text = content.trim();
  if (toolCalls.length === 0 && text === turn.text.trim()) return true;
  return text === contentOf(turn).trim() && sameCalls(toolCalls, turn.toolCalls);
}

const contentOf = ({ text, content = text }: Turn): string => content;

function sameCalls(calls: readonly ToolCall[], others: readonly ToolCall[] = []): boolean {
  return canonicalCalls(calls) === canonicalCalls(others);
}

/** Calls as a text that is equal for all spellings of their arguments. */
export function canonicalCalls(calls: readonly Pick<ToolCall, 'name' | 'arguments'>[]): string {
  return JSON.stringify(calls.map((call) => [call.name, canonical(call.arguments)]));
}

function canonical(text: string): string {
  try {
    const sorted = (_: string, value: unknown) =>
      isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
    return JSON.stringify(JSON.parse(text), sorted);
  } catch {
    return text;
  }
}
