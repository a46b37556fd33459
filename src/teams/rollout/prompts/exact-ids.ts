import type { FinishReason, History, Message, Tokenizer, Tool, Turn } from '../../../base/nouns.js';
import { canonicalCalls, type Traced, traceMessages } from './provenance.js';

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

/** An agent's input: messages and tools. */
export interface PromptContent {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[] | undefined;
}

/** A conversation as ids. */
export interface Encoded {
  readonly ids: readonly number[];
  /** The ids with which a later conversation begins if it continues this one. */
  readonly keys: readonly string[];
  /** How its assistant's messages were traced to their turns; absent if it has none. */
  readonly history?: History;
}

/**
 * The conversations of an episode as its agents read them. An earlier response is read with the ids that were sampled,
 * thinking and special tokens included; it is not tokenised again. If a conversation continues from a turn, its ids are
 * that turn's prompt and response plus the new messages. A framework may therefore change a reply's spelling freely.
 */
export class ExactConversations {
  /** The keys of the conversations that have a turn. */
  readonly #answered = new WeakMap<Turn, readonly string[]>();

  /** Keeps the conversation of a turn. */
  add(turn: Turn, { keys }: Pick<Encoded, 'keys'>): void {
    this.#answered.set(turn, keys);
  }

  /** @param turns The earlier turns of the episode that use this tokenizer */
  encode({ messages, tools }: PromptContent, turns: readonly Turn[], tokenizer: Tokenizer): Encoded {
    const offered = JSON.stringify(tools ?? []);
    const goesOn = (turn: Turn, before: readonly Traced[]) => this.#goesOnFrom(turn, before, offered);
    const traced = traceMessages(messages, turns, goesOn);
    const indices = new Map(traced.flatMap(({ message, turn }, i) => (turn === undefined ? [] : [[message, i]])));
    // A negative number marks the place of a message, which its ids then take.
    const marked = tokenizer.chat(
      traced.map(({ message }) => message),
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
      else ids.push(...sampledIds(turn, tokenizer));
    }
    const keys = [offered, ...traced.map(keyOf)];
    return { ids, keys, ...historyOf(traced, (index) => index <= begin || places.has(index)) };
  }

  #goesOnFrom(turn: Turn, before: readonly Traced[], offered: string): boolean {
    const [tools, ...keys] = this.#answered.get(turn) ?? [];
    return tools === offered && keys.length === before.length && before.every((each, i) => keyOf(each) === keys[i]);
  }
}

/** The ids of a turn's response, including the beginning that drmas wrote. */
function sampledIds({ prompt, prefilled = 0, response, finishReason }: Turn, tokenizer: Tokenizer): number[] {
  return [...prompt.slice(prompt.length - prefilled), ...withoutStop(response, finishReason, tokenizer)];
}

const keys = new WeakMap<Traced, string>();

/** A message as text, without the parts that frameworks change. */
function keyOf(traced: Traced): string {
  const { message, turn } = traced;
  const { role, content, toolCalls = [], toolCallId, name } = message;
  const key =
    keys.get(traced) ?? turn?.id ?? JSON.stringify([role, content, canonicalCalls(toolCalls), toolCallId, name]);
  keys.set(traced, key);
  return key;
}

function historyOf(traced: readonly Traced[], isPlaced: (index: number) => boolean): Pick<Encoded, 'history'> {
  const history = { exact: 0, byText: 0, byCalls: 0, foreign: 0 };
  const kinds = { id: 'exact', text: 'byText', calls: 'byCalls' } as const;
  traced.forEach(({ message, by }, index) => {
    if (message.role === 'assistant') history[by === undefined || !isPlaced(index) ? 'foreign' : kinds[by]]++;
  });
  return Object.values(history).every((count) => count === 0) ? {} : { history };
}

const descriptions = new WeakMap<Tokenizer, string>();

/** Whether two tokenizers give equal ids. */
export function isSameTokenizer(a: Tokenizer | undefined, b: Tokenizer): boolean {
  return a === b || (a !== undefined && describe(a) === describe(b));
}

function describe(tokenizer: Tokenizer): string {
  const description = descriptions.get(tokenizer) ?? JSON.stringify(tokenizer.toJSON());
  descriptions.set(tokenizer, description);
  return description;
}
