import type { Message } from '../../core/message.js';

/** A chat template: the conversation as text. */
export type Render = (messages: readonly Message[]) => string;

/**
 * A rendered conversation in pieces: text of the template and of ordinary messages, and the exact ids of the messages whose
 * ids are known. Such a message is rendered as a placeholder, and its ids take the placeholder's place.
 *
 * A template may rewrite a message, as Qwen3's drops the reasoning of earlier answers. Ids of text that is no longer
 * there would bring it back, so then the template's text stands. Trimmed white space is no such change: the ids stay.
 */
export function splice(
  render: Render,
  messages: readonly Message[],
  exact: ((message: Message) => readonly number[] | undefined) | undefined,
): (string | readonly number[])[] {
  const plain = render(messages);
  const known = messages.map((message) => exact?.(message));
  if (known.every((ids) => ids === undefined)) return [plain];

  const mark = unusedMark(plain);
  const renderMarked = (chosen: (index: number) => boolean) =>
    render(messages.map((message, i) => (chosen(i) ? { ...message, content: mark(i) } : message)));
  const keptWhole = messages.map((message, i) => {
    if (known[i] === undefined) return false;
    const parts = renderMarked((index) => index === i).split(mark(i));
    return parts.join(message.content) === plain || parts.join(message.content.trim()) === plain;
  });

  let pieces: (string | readonly number[])[] = [renderMarked((i) => keptWhole[i] === true)];
  known.forEach((ids, i) => {
    if (ids === undefined || keptWhole[i] !== true) return;
    pieces = pieces.flatMap((piece) => (typeof piece === 'string' ? interleave(piece.split(mark(i)), ids) : [piece]));
  });
  return pieces;
}

/** Placeholders that do not occur in the text. The characters are private use: no template looks for them. */
function unusedMark(text: string): (index: number) => string {
  let salt = 0;
  while (text.includes(`\ue000${salt}:`)) salt++;
  return (index) => `\ue000${salt}:${index}\ue001`;
}

function interleave<A, B>(parts: readonly A[], separator: B): (A | B)[] {
  return parts.flatMap((part, i) => (i === 0 ? [part] : [separator, part]));
}
