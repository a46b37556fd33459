import { endsOfThinking, firstMark, THINKING, type ToolFormatName, toolFormat } from '@drmas/engine/tool-calls';

/** A piece of a response: of the model's reasoning, or of its answer. */
export interface ContentPiece {
  readonly type: 'reasoning' | 'text';
  readonly text: string;
}

/**
 * Splits a response into parts while it is written: the model's reasoning, its answer, and text that may be a tool
 * call. It holds back the latter until it can read the whole response. The text that it emits begins the answer, and
 * the reasoning that it emits begins the whole reasoning, without white space around it.
 */
export class ContentStream {
  readonly #sign: string | undefined;
  readonly #isOpen: boolean;
  #state: 'start' | 'thinking' | 'thought' | 'answer' | 'held' = 'start';
  /** Text whose kind is not known yet. */
  #waiting = '';
  /** The marks that may end the thinking. */
  #ends = endsOfThinking('');
  #given = '';
  #hasThought = false;

  /**
   * @param thinking Whether the prompt has begun the thinking already
   * @param calls The format of the calls that may come
   */
  constructor(thinking: boolean, calls?: ToolFormatName) {
    this.#isOpen = thinking;
    this.#sign = calls === undefined ? undefined : signOf(calls);
  }

  get given(): string {
    return this.#given;
  }

  push(text: string): ContentPiece[] {
    this.#waiting += text;
    if (text.trim() === '') return []; // a model may write spaces without an end
    const pieces: ContentPiece[] = [];
    if (this.#state === 'start') this.#begin();
    if (this.#state === 'thinking') pieces.push(...this.#think());
    if (this.#state === 'thought') {
      this.#waiting = this.#waiting.trimStart();
      if (this.#waiting !== '') this.#state = 'answer';
    }
    if (this.#state === 'answer') pieces.push(...this.#answer());
    return pieces.filter((piece) => piece.text !== '');
  }

  #begin(): void {
    const text = this.#waiting.trimStart();
    const marks = THINKING.map(([begin]) => begin);
    const mark = marks.find((begin) => text.startsWith(begin));
    if (mark === undefined && marks.some((begin) => begin.startsWith(text))) return;
    this.#state = mark !== undefined || this.#isOpen ? 'thinking' : 'answer';
    if (mark === undefined) return;
    this.#ends = endsOfThinking(mark);
    this.#waiting = text.slice(mark.length);
  }

  /** White space at the end waits, as more reasoning may follow it. */
  #think(): ContentPiece[] {
    if (!this.#hasThought) this.#waiting = this.#waiting.trimStart();
    const end = firstMark(this.#waiting, this.#ends);
    const begun = Math.max(...this.#ends.map((mark) => overlap(this.#waiting, mark)));
    const certain = end?.at ?? this.#waiting.length - begun;
    const rest = this.#waiting.slice(end?.behind);
    const piece = this.#take('reasoning', this.#waiting.slice(0, certain).trimEnd().length);
    this.#hasThought ||= piece.text !== '';
    if (end === undefined) return [piece];
    this.#waiting = rest;
    this.#state = 'thought';
    return [piece];
  }

  /** White space at the end waits: before a tool call it does not belong to the answer. */
  #answer(): ContentPiece[] {
    const sign = this.#sign ?? '';
    const call = sign === '' ? -1 : this.#waiting.indexOf(sign);
    if (call >= 0) this.#state = 'held';
    const certain = call < 0 ? this.#waiting.length - overlap(this.#waiting, sign) : call;
    const piece = this.#take('text', this.#waiting.slice(0, certain).trimEnd().length);
    this.#given += piece.text;
    return [piece];
  }

  #take(type: ContentPiece['type'], length: number): ContentPiece {
    const text = this.#waiting.slice(0, length);
    this.#waiting = this.#waiting.slice(length);
    return { type, text };
  }
}

/** The tag, or else the first character, with which a tool call begins. */
function signOf(calls: ToolFormatName): string {
  const opening = toolFormat(calls).opening(undefined);
  return /^<[^>]*>|^\[\w+\]/.exec(opening)?.[0] ?? opening.slice(0, 1);
}

/** How many characters at the end of a text may be the beginning of a mark. */
export function overlap(text: string, mark: string): number {
  if (mark === '') return 0;
  const first = mark.charAt(0);
  for (let at = text.indexOf(first, text.length - mark.length + 1); at >= 0; at = text.indexOf(first, at + 1))
    if (mark.startsWith(text.slice(at))) return text.length - at;
  return 0;
}
