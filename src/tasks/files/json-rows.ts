import { messageOf, TaskError } from '../../core/errors.js';
import { excerpt } from '../../core/format.js';

/** The place where an entry begins, counted from 1: its line, or its row in a file without lines. */
export type Place = { readonly line: number } | { readonly row: number };

/** One entry of a file. */
export interface Row<At extends Place = Place> {
  readonly place: At;
  readonly value: unknown;
}

type LineRow = Row<{ readonly line: number }>;

/**
 * Parses the entries of a JSON array or, where the text does not begin with `[`, of JSON lines. Blank lines are
 * skipped.
 *
 * @throws TaskError naming `file` and the line that is not JSON
 */
export function jsonRows(text: string, file: string): LineRow[] {
  const splitter = new JsonSplitter(file);
  return [...splitter.push(text), ...splitter.end()];
}

/** A parser like `jsonRows` for a text that comes in pieces; it holds at most one entry and one piece at a time. */
export class JsonSplitter {
  readonly #file: string;
  #inner: ArrayPieces | LinePieces | undefined;
  /** The blank text before the first entry. */
  #begun = '';

  constructor(file: string) {
    this.#file = file;
  }

  push(text: string): LineRow[] {
    if (this.#inner !== undefined) return this.#inner.push(text).map((piece) => this.#parse(piece));
    this.#begun += text;
    const first = this.#begun.trimStart()[0];
    if (first === undefined) return [];
    this.#inner = first === '[' ? new ArrayPieces(this.#file) : new LinePieces();
    return this.push(this.#begun);
  }

  /** Returns the last entries, once the text is at its end. */
  end(): LineRow[] {
    return (this.#inner?.end() ?? []).map((piece) => this.#parse(piece));
  }

  #parse({ line, text }: Piece): LineRow {
    try {
      return { place: { line }, value: JSON.parse(text) };
    } catch (error) {
      const message = `expected JSON, got ${excerpt(text)} (${messageOf(error)})`;
      throw new TaskError(message, { file: this.#file, line });
    }
  }
}

interface Piece {
  readonly line: number;
  readonly text: string;
}

class LinePieces {
  #line = 0;
  /** The beginning of a line whose end has not come yet. */
  #begun = '';

  push(text: string): Piece[] {
    const lines = `${this.#begun}${text}`.split('\n');
    this.#begun = lines.pop() ?? '';
    return lines.map((line) => ({ line: ++this.#line, text: line })).filter(isFilled);
  }

  end(): Piece[] {
    return [{ line: this.#line + 1, text: this.#begun }].filter(isFilled);
  }
}

const isFilled = ({ text }: Piece) => text.trim() !== '';

/**
 * Cuts an array at its commas, so that errors can name an entry's line. JSON.parse reads the text between the commas.
 */
class ArrayPieces {
  readonly #file: string;
  /** The text from the beginning of the current entry on. */
  #text = '';
  /** The position of the next character to read. */
  #at = 0;
  #depth = 0;
  #inString = false;
  #line = 1;
  #beginLine = 1;
  #entries = 0;
  #closed = false;

  constructor(file: string) {
    this.#file = file;
  }

  push(text: string): Piece[] {
    this.#text += text;
    const pieces: Piece[] = [];
    let begin = 0;
    const cut = (end: number) => {
      pieces.push(this.#piece(begin, end));
      begin = end + 1;
      this.#beginLine = this.#line;
    };
    for (; this.#at < this.#text.length && !this.#closed; this.#at++) {
      const character = this.#text[this.#at];
      if (character === '\n') this.#line++;
      else if (this.#inString) {
        if (character === '\\') this.#at++;
        else if (character === '"') this.#inString = false;
      } else if (character === '"') this.#inString = true;
      else if (character === '[' || character === '{') {
        this.#depth++;
        if (this.#depth === 1) {
          begin = this.#at + 1;
          this.#beginLine = this.#line;
        }
      } else if (character === ',' && this.#depth === 1) cut(this.#at);
      else if (character === ']' || character === '}') {
        this.#depth--;
        if (this.#depth > 0) continue;
        cut(this.#at);
        this.#closed = true;
      }
    }
    this.#text = this.#text.slice(begin);
    this.#at -= begin;
    if (this.#closed) this.#requireBlank();
    // `[ ]` holds no entry; `[1, ]` holds one that is not JSON.
    const empty = this.#closed && this.#entries === 0 && pieces.length === 1 && pieces[0]?.text.trim() === '';
    this.#entries += pieces.length;
    return empty ? [] : pieces;
  }

  end(): Piece[] {
    if (this.#closed) return [];
    throw new TaskError('the array is not closed', { file: this.#file, line: this.#line });
  }

  #piece(begin: number, end: number): Piece {
    const text = this.#text.slice(begin, end);
    const blank = text.length - text.trimStart().length;
    return { line: this.#beginLine + text.slice(0, blank).split('\n').length - 1, text };
  }

  #requireBlank(): void {
    if (this.#text.trim() !== '')
      throw new TaskError(`expected nothing after the array, got ${excerpt(this.#text)}`, {
        file: this.#file,
        line: this.#line,
      });
    this.#text = '';
    this.#at = 0;
  }
}
