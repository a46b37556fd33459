import type { Message } from '../../core/message.js';

/** A chat template: it turns a conversation into text. */
export type Render = (messages: readonly Message[]) => string;

/**
 * Renders a conversation in pieces: text of the template and of ordinary messages, and the exact ids of the messages
 * for which `exact` returns some. Such a message is rendered as a placeholder, which its ids then replace.
 *
 * A template may rewrite a message, as Qwen3's drops the reasoning of earlier answers. The exact ids would restore the
 * dropped text, so the template's text is used then. Trimmed white space does not count as such a change.
 */
export function splice(
  render: Render,
  messages: readonly Message[],
  exact: ((message: Message) => readonly number[] | undefined) | undefined,
): (string | readonly number[])[] {
  const plain = render(messages);
  const exactIds = messages.map((message) => exact?.(message));
  if (exactIds.every((ids) => ids === undefined)) return [plain];

  const mark = unusedMark(plain);
  const renderMarked = (chosen: (index: number) => boolean) =>
    render(messages.map((message, i) => (chosen(i) ? { ...message, content: mark(i) } : message)));
  const keptWhole = messages.map((message, i) => {
    if (exactIds[i] === undefined) return false;
    const parts = renderMarked((index) => index === i).split(mark(i));
    return parts.join(message.content) === plain || parts.join(message.content.trim()) === plain;
  });

  let pieces: (string | readonly number[])[] = [renderMarked((i) => keptWhole[i] === true)];
  exactIds.forEach((ids, i) => {
    if (ids === undefined || keptWhole[i] !== true) return;
    pieces = pieces.flatMap((piece) => (typeof piece === 'string' ? interleave(piece.split(mark(i)), ids) : [piece]));
  });
  return pieces;
}

/** Placeholders that do not occur in the text, in characters of the private-use area, which no template looks for. */
function unusedMark(text: string): (index: number) => string {
  let salt = 0;
  while (text.includes(`\ue000${salt}:`)) salt++;
  return (index) => `\ue000${salt}:${index}\ue001`;
}

function interleave<A, B>(parts: readonly A[], separator: B): (A | B)[] {
  return parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
}
