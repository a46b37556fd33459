import type { TextMessage } from '@drmas/engine/contract';
import { given, isObject } from '@drmas/engine/errors';
import type { FinishReason, History, Message, Tokenizer, Tool, ToolCall, Turn } from '@drmas/engine/nouns';
import { opensThinking, thinkingBegun } from '@drmas/engine/tool-calls';

/** The response's ids without the stop token at their end. */
export function withoutStop(
  tokens: readonly number[],
  finishReason: FinishReason,
  { stopTokens }: Tokenizer,
): readonly number[] {
  const last = tokens.at(-1);
  const stopped = finishReason === 'stop' && last !== undefined && stopTokens.includes(last);
  return stopped ? tokens.slice(0, -1) : tokens;
}

interface PromptContent {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[] | undefined;
}

export interface Encoded {
  readonly ids: readonly number[];
  /** The ids with which a later conversation begins if it continues this one. */
  readonly keys: readonly string[];
  readonly history?: History;
}

/**
 * The conversations of an episode as its agents read them. An earlier response is read with the ids that were sampled,
 * thinking and special tokens included; it is not tokenised again. If a conversation continues from a turn, its ids are
 * that turn's prompt and response plus the new messages. A framework may therefore change a reply's spelling freely.
 */
export class ExactConversations {
  /** The keys of the conversations that have a turn. */
  readonly #answered = new Map<Turn, readonly string[]>();
  /** These keys, each once: all conversations of an episode may repeat its longest messages. */
  readonly #keys = new Map<string, string>();

  add(turn: Turn, { keys }: Pick<Encoded, 'keys'>): void {
    const kept = keys.map((key) => {
      const known = this.#keys.get(key);
      if (known === undefined) this.#keys.set(key, key);
      return known ?? key;
    });
    this.#answered.set(turn, kept);
  }

  /** @param turns The earlier turns of the episode that use this tokenizer */
  encode({ messages, tools }: PromptContent, turns: readonly Turn[], tokenizer: Tokenizer): Encoded {
    const offered = JSON.stringify(tools ?? []);
    const goesOn = (turn: Turn, before: readonly Traced[]) => this.#goesOnFrom(turn, before, offered);
    const traced = traceMessages(messages, turns, goesOn);
    const keys = [offered, ...traced.map(keyOf)];
    const read = traced.map(({ message }) => message);
    const indices = new Map(traced.flatMap(({ message, turn }, i) => (turn === undefined ? [] : [[message, i]])));
    if (indices.size === 0)
      return { ids: tokenizer.chat(read, undefined, tools), keys, ...historyOf(traced, () => false) };
    // A negative number marks the place of a message, which its ids then take.
    const marked = tokenizer.chat(
      read,
      (message) => {
        const index = indices.get(message);
        return index === undefined ? undefined : [-1 - index];
      },
      tools,
    );
    const places = new Set(marked.filter((id) => id < 0).map((id) => -1 - id));
    // The last message that repeats a turn, if that turn answered exactly the messages before it.
    const begin = traced.findLastIndex(
      ({ turn }, i) => turn !== undefined && places.has(i) && goesOn(turn, traced.slice(0, i)),
    );
    const { turn: last } = traced[begin] ?? {};
    const ids = last === undefined ? [] : [...last.prompt, ...withoutStop(last.response, last.finishReason, tokenizer)];
    for (const id of last === undefined ? marked : marked.slice(marked.indexOf(-1 - begin) + 1)) {
      const turn = id < 0 ? traced[-1 - id]?.turn : undefined;
      if (turn === undefined) ids.push(id);
      else ids.push(...sampledIds(turn, ids, tokenizer));
    }
    return { ids, keys, ...historyOf(traced, (index) => index <= begin || places.has(index)) };
  }

  #goesOnFrom(turn: Turn, before: readonly Traced[], offered: string): boolean {
    const [tools, ...keys] = this.#answered.get(turn) ?? [];
    return tools === offered && keys.length === before.length && before.every((each, i) => keyOf(each) === keys[i]);
  }
}

/**
 * The ids of a turn's response, including the beginning that drmas or the chat template wrote: a template that begins
 * the thinking does so in front of the answer that comes next alone.
 * @param before The ids in front of it
 */
function sampledIds(
  { prompt, prefilled = 0, response, finishReason }: Turn,
  before: readonly number[],
  tokenizer: Tokenizer,
): number[] {
  const end = prompt.length - prefilled;
  const begun = opensThinking(tokenizer, before) ? 0 : thinkingBegun(tokenizer, prompt, end);
  return [...prompt.slice(end - begun), ...withoutStop(response, finishReason, tokenizer)];
}

/** A message as text, without the parts that frameworks change. */
function keyOf(traced: Traced): string {
  traced.key ??= traced.turn?.id ?? textOf(traced.message);
  return traced.key;
}

const textOf = ({ role, content, toolCalls = [], toolCallId, name }: Message): string =>
  JSON.stringify([role, content, canonicalCalls(toolCalls), toolCallId, name]);

function historyOf(traced: readonly Traced[], isPlaced: (index: number) => boolean): Pick<Encoded, 'history'> {
  if (!traced.some(({ message }) => message.role === 'assistant')) return {};
  const history = { exact: 0, byText: 0, byCalls: 0, foreign: 0 };
  const kinds = { id: 'exact', text: 'byText', calls: 'byCalls' } as const;
  traced.forEach(({ message, by }, index) => {
    if (message.role === 'assistant') history[by === undefined || !isPlaced(index) ? 'foreign' : kinds[by]]++;
  });
  return { history };
}

const descriptions = new WeakMap<Tokenizer, string>();

export function isSameTokenizer(a: Tokenizer | undefined, b: Tokenizer): boolean {
  return a === b || (a !== undefined && describe(a) === describe(b));
}

function describe(tokenizer: Tokenizer): string {
  const description = descriptions.get(tokenizer) ?? JSON.stringify(tokenizer.toJSON());
  descriptions.set(tokenizer, description);
  return description;
}

// Finds the turns of an episode that the messages of a prompt repeat, even if a framework changed them.

/** A message of a prompt, with the turn whose reply it repeats and the evidence for it. */
interface Traced {
  readonly message: Message;
  readonly turn?: Turn;
  readonly by?: 'id' | 'text' | 'calls';
  /** Its key, once `keyOf` has made it. */
  key?: string;
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
function traceMessages(
  messages: readonly Message[],
  turns: readonly Turn[],
  continues: (turn: Turn, before: readonly Traced[]) => boolean,
): Traced[] {
  const known = new KnownTurns(turns);
  const named = messages.map((message) => (message.role === 'assistant' ? idsIn(message, known.byId) : []));
  const traced: Traced[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at] as Message;
    const [merged, count] = message.role === 'assistant' ? mergedAt(messages, at, named, known.byId) : [message, 1];
    traced.push(merged.role === 'assistant' ? trace(merged, known, (turn) => continues(turn, traced)) : { message });
    at += count;
  }
  return traced;
}

/** Turns by their ids, and by their text or their calls, which a message without an id repeats. */
class KnownTurns {
  readonly byId: ReadonlyMap<string, Turn>;
  readonly #turns: readonly Turn[];
  #byText: ReadonlyMap<string, readonly Turn[]> | undefined;
  #byCalls: ReadonlyMap<string, readonly Turn[]> | undefined;

  constructor(turns: readonly Turn[]) {
    this.#turns = turns;
    this.byId = new Map(turns.flatMap((turn) => (turn.id === undefined ? [] : [[turn.id, turn]])));
  }

  /** The turns with the text or the calls of a message, in order. */
  equalTo({ content, toolCalls = [] }: Message): readonly Turn[] {
    if (toolCalls.length === 0) {
      this.#byText ??= this.#by((turn) => [turn.text, ...(turn.toolCalls === undefined ? [contentOf(turn)] : [])]);
      return this.#byText.get(content) ?? [];
    }
    this.#byCalls ??= this.#by((turn) => [callsKey(contentOf(turn), callsOf(turn))]);
    return this.#byCalls.get(callsKey(content, canonicalCalls(toolCalls))) ?? [];
  }

  #by(keysOf: (turn: Turn) => readonly string[]): ReadonlyMap<string, readonly Turn[]> {
    const found = new Map<string, Turn[]>();
    for (const turn of this.#turns)
      for (const key of new Set(keysOf(turn))) {
        const equal = found.get(key);
        if (equal === undefined) found.set(key, [turn]);
        else equal.push(turn);
      }
    return found;
  }
}

const callsKey = (content: string, calls: string) => `${calls} ${content}`;

/** The longest run of messages from a position that makes up one turn, as one message; else the single message. */
function mergedAt(
  messages: readonly Message[],
  at: number,
  named: readonly (readonly string[])[],
  byId: ReadonlyMap<string, Turn>,
): readonly [Message, number] {
  const first = messages[at] as Message;
  const turn = turnFrom(messages, at, named, byId);
  if (turn === undefined) return [first, 1];
  // Messages with more text than the turn do not make it up.
  const longest = Math.max(turn.text.length, contentOf(turn).length);
  let [end, length] = [at, 0];
  for (; messages[end]?.role === 'assistant'; end++) {
    length += messages[end]?.content.trim().length ?? 0;
    if (length > longest) break;
  }
  for (let count = end - at; count > 1; count--) {
    const merged = mergedMessage(messages.slice(at, at + count));
    const [id, ...more] = idsIn(merged, byId);
    if (id === turn.id && more.length === 0 && repeats(merged, turn)) return [merged, count];
  }
  return [first, 1];
}

/** The first turn that the assistant's messages from a position on name. */
function turnFrom(
  messages: readonly Message[],
  at: number,
  named: readonly (readonly string[])[],
  byId: ReadonlyMap<string, Turn>,
): Turn | undefined {
  for (let i = at; messages[i]?.role === 'assistant'; i++) {
    const [id] = named[i] ?? [];
    if (id !== undefined) return byId.get(id);
  }
  return undefined;
}

function mergedMessage(messages: readonly Message[]): Message {
  const turnId = messages.find((message) => message.turnId !== undefined)?.turnId;
  const reasoning = messages.map(({ reasoning = '' }) => reasoning).join('');
  const toolCalls = messages.flatMap((message) => message.toolCalls ?? []);
  return {
    role: 'assistant',
    content: messages.map(({ content }) => content).join(''),
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(turnId === undefined ? {} : { turnId }),
  };
}

/** A message that names a turn, with this turn if the message repeats it. */
function traceById(message: Message, byId: ReadonlyMap<string, Turn>): Traced | undefined {
  const [id, ...more] = idsIn(message, byId);
  if (id === undefined) return undefined;
  const turn = byId.get(id);
  return turn !== undefined && more.length === 0 && repeats(message, turn) ? { message, turn, by: 'id' } : { message };
}

function trace(message: Message, known: KnownTurns, continues: (turn: Turn) => boolean): Traced {
  const named = traceById(message, known.byId);
  if (named !== undefined) return named;
  const equal = known.equalTo(message);
  const turn = equal.findLast(continues) ?? equal.at(-1);
  const by = (message.toolCalls ?? []).length === 0 ? 'text' : 'calls';
  return turn === undefined ? { message } : { message, turn, by };
}

/** The ids of turns that a message names, in any episode. */
export function turnsNamedIn({ turnId, toolCalls = [] }: Message): string[] {
  const ids = [turnId, ...toolCalls.map((call) => CALL_ID.exec(call.id)?.[1])];
  return [...new Set(ids.filter((id) => id !== undefined))];
}

const idsIn = (message: Message, byId: ReadonlyMap<string, Turn>): string[] =>
  turnsNamedIn(message).filter((id) => byId.has(id));

/** Whether a message with a turn's id repeats the turn's content. White space at the ends does not count. */
function repeats({ content, toolCalls = [] }: Message, turn: Turn): boolean {
  const text = content.trim();
  if (toolCalls.length === 0 && text === turn.text.trim()) return true;
  return text === contentOf(turn).trim() && canonicalCalls(toolCalls) === callsOf(turn);
}

/** Messages with the reasoning and the server's data of the turns that they repeat. Frameworks drop them. */
export function asAnswered(messages: readonly Message[], turns: readonly Turn[]): TextMessage[] {
  const { byId } = new KnownTurns(turns);
  return messages.map((message) => {
    const turn = traceById(message, byId)?.turn;
    const [reasoning, providerData] = [message.reasoning ?? turn?.reasoning, turn?.endpoint?.providerData];
    return message.role !== 'assistant' ? message : { ...message, ...given({ reasoning, providerData }) };
  });
}

const contentOf = ({ text, content = text }: Turn): string => content;

const calls = new WeakMap<Turn, string>();

/** The calls of a turn in one spelling. Each prompt of an episode looks for them. */
function callsOf(turn: Turn): string {
  const known = calls.get(turn) ?? canonicalCalls(turn.toolCalls ?? []);
  calls.set(turn, known);
  return known;
}

/** Calls as a text that is equal for all spellings of their arguments, also for numbers that a framework rounded. */
function canonicalCalls(calls: readonly Pick<ToolCall, 'name' | 'arguments'>[]): string {
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
