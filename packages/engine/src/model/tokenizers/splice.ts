import type { Message } from '../../nouns.js';

/** A chat template: it turns a conversation into text. */
export type Render = (messages: readonly Message[]) => string;

type Ids = readonly number[];

interface TextSpan {
  readonly start: number;
  readonly end: number;
  readonly ids: Ids;
}

/**
 * Renders a conversation in pieces: text of the template and of ordinary messages, and the exact ids of the messages
 * for which `exact` returns some. Such a message is rendered as a placeholder, which its ids then replace: the sampled
 * text stands whole, even if the template would drop a part of it, as Qwen3's template drops the thinking. A message
 * that the template renders nowhere, or several times, is rendered as the template says.
 *
 * @param stops The texts that end a response
 */
export function splice(
  render: Render,
  messages: readonly Message[],
  exact: ((message: Message) => Ids | undefined) | undefined,
  stops: readonly string[] = [],
): (string | Ids)[] {
  const known = new Map<number, Ids>();
  messages.forEach((message, i) => {
    const ids = exact?.(message);
    if (ids !== undefined) known.set(i, ids);
  });
  const mark = unusedMark(messages);
  while (known.size > 0) {
    const marked = renderMarked(render, messages, known, mark);
    if (marked === undefined) break;
    const spans = new Map(Array.from(known, ([i, ids]) => [i, spanOf(marked, i, ids, mark(i), stops)]));
    const placed = [...spans.values()].filter((span) => span !== undefined);
    if (placed.length === known.size) return piecesOf(marked.text, placed);
    for (const [i, span] of spans) if (span === undefined) known.delete(i);
  }
  return [render(messages)];
}

interface Marked {
  readonly text: string;
  /** The text before the response of a message with calls; absent if placeholders replaced the calls. */
  readonly before?: (index: number) => string;
}

/**
 * A message with calls is rendered as one without. Templates that refuse this (Mistral's wants a call before a result)
 * get a call whose name is the placeholder.
 */
function renderMarked(
  render: Render,
  messages: readonly Message[],
  known: ReadonlyMap<number, Ids>,
  mark: (index: number) => string,
): Marked | undefined {
  const replaced = (replace: (message: Message, index: number) => Message) =>
    messages.map((message, i) => {
      const { reasoning: _, ...spoken } = message; // the ids have it
      return known.has(i) ? replace(spoken, i) : message;
    });
  const asText = replaced((message, i) => ({ ...message, content: mark(i), toolCalls: [] }));
  const asCall = replaced((message, i) => {
    const [call] = message.toolCalls ?? [];
    if (call === undefined) return { ...message, content: mark(i) };
    return { ...message, content: '', toolCalls: [{ ...call, name: mark(i), arguments: '{}' }] };
  });
  try {
    return { text: render(asText) };
  } catch {
    try {
      return { text: render(asCall), before: (index) => render(asCall.slice(0, index)) };
    } catch {
      return undefined;
    }
  }
}

function spanOf(
  { text, before }: Marked,
  index: number,
  ids: Ids,
  mark: string,
  stops: readonly string[],
): TextSpan | undefined {
  const at = text.indexOf(mark);
  const behind = at + mark.length;
  if (at < 0 || text.includes(mark, behind)) return undefined;
  if (before === undefined) return { start: at, end: behind, ids };
  const head = before(index);
  const ends = stops.map((stop) => text.indexOf(stop, behind)).filter((end) => end >= 0);
  return text.startsWith(head) && ends.length > 0 ? { start: head.length, end: Math.min(...ends), ids } : undefined;
}

function piecesOf(text: string, spans: readonly TextSpan[]): (string | Ids)[] {
  const pieces: (string | Ids)[] = [];
  let at = 0;
  for (const { start, end, ids } of spans.toSorted((a, b) => a.start - b.start)) {
    pieces.push(text.slice(at, start), ids);
    at = end;
  }
  return [...pieces, text.slice(at)];
}

/** Placeholders that occur in no message, in characters of the private-use area, which no template looks for. */
function unusedMark(messages: readonly Message[]): (index: number) => string {
  const text = JSON.stringify(messages);
  let salt = 0;
  while (text.includes(`\ue000${salt}:`)) salt++;
  return (index) => `\ue000${salt}:${index}\ue001`;
}
