import { messageOf, TaskError } from '../../core/errors.js';
import { parseWithDigits } from '../../core/exact-json.js';
import { excerpt } from '../../core/format.js';
import {
  BACKSLASH,
  CLOSE_LIST,
  CLOSE_OBJECT,
  DEEPEST,
  nestsTooDeep,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
} from '../../core/validation/objects.js';

/** The position where an entry begins, counted from 1: its line, or its row in a file without lines. */
export type EntryPlace = { readonly line: number } | { readonly row: number };

/** One entry of a file. */
export interface FileEntry<At extends EntryPlace = EntryPlace> {
  readonly place: At;
  readonly value: unknown;
}

type LineRow = FileEntry<{ readonly line: number }>;

/**
 * Parses the entries of a JSON array or, if the text does not begin with `[`, of JSON lines. Blank lines are skipped.
 *
 * @throws TaskError naming `file` and the line that is not JSON
 */
export function jsonRows(text: string, file: string): LineRow[] {
  const splitter = new JsonSplitter(file);
  return [...splitter.push(text), ...splitter.end()];
}

const [LINE_FEED, COMMA] = [0x0a, 0x2c];

/** The longest entry in characters: V8's strings end at four times that. */
const LONGEST_ENTRY = 2 ** 27;

/**
 * A parser like `jsonRows` for a text that comes in pieces; it holds at most one entry and one piece at a time. Every
 * character is looked at once, however long an entry is.
 */
export class JsonSplitter {
  readonly #file: string;
  readonly #parse: (text: string) => unknown;
  readonly #goesOn: boolean;
  #inner: ArrayPieces | LinePieces | undefined;
  /** Lines that end before the entries of `#inner`. */
  #linesBefore = 0;

  /**
   * @param parse Reads the text of an entry. Default: as JSON with an error that names the line; whole numbers whose
   *   digits would change become text
   * @param options.goesOn Whether other arrays, or lines, may follow an array. Default: they are an error
   */
  constructor(
    file: string,
    parse: (text: string) => unknown = (text) => strictValue(text, parseWithDigits),
    { goesOn = false } = {},
  ) {
    this.#file = file;
    this.#parse = parse;
    this.#goesOn = goesOn;
  }

  push(text: string): LineRow[] {
    const pieces: TextPiece[] = [];
    let rest: string | undefined = text;
    while (rest !== undefined) {
      if (this.#inner === undefined) rest = this.#begin(rest);
      pieces.push(...(this.#inner?.push(rest) ?? []));
      rest = this.#textBehindArray();
    }
    return pieces.map((piece) => this.#row(piece));
  }

  /** Looks for the first entry, and returns the text from its beginning. */
  #begin(text: string): string {
    const at = text.search(this.#goesOn ? /[^\s,\p{Cc}]/u : /\S/);
    const before = at < 0 ? text : text.slice(0, at);
    this.#linesBefore += before.split('\n').length - 1;
    const rest = text.slice(before.length);
    if (rest !== '') this.#inner = new (rest[0] === '[' ? ArrayPieces : LinePieces)(this.#file, this.#linesBefore);
    return rest;
  }

  /** The text behind an array that is closed, if entries may follow there. */
  #textBehindArray(): string | undefined {
    if (!(this.#inner instanceof ArrayPieces)) return undefined;
    const { behind, line } = this.#inner;
    if (behind === undefined) return undefined;
    if (!this.#goesOn) {
      if (behind.trim() === '') return undefined;
      throw new TaskError(`expected nothing after the array, got ${excerpt(behind)}`, { file: this.#file, line });
    }
    this.#inner = undefined;
    this.#linesBefore = line - 1;
    return behind;
  }

  /** Returns the last entries, once the text is at its end. */
  end(): LineRow[] {
    return (this.#inner?.end() ?? []).map((piece) => this.#row(piece));
  }

  #row({ line, text }: TextPiece): LineRow {
    try {
      return { place: { line }, value: this.#parse(text) };
    } catch (error) {
      throw new TaskError(messageOf(error), { file: this.#file, line });
    }
  }
}

/** The value of a text of JSON. @throws SyntaxError if it is none, or nested too deep */
export function strictValue(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  if (nestsTooDeep(text)) throw new SyntaxError(`expected values nested at most ${DEEPEST} deep, got ${excerpt(text)}`);
  try {
    return parse(text);
  } catch (error) {
    throw new SyntaxError(`expected JSON, got ${excerpt(text)} (${messageOf(error)})`);
  }
}

interface TextPiece {
  readonly line: number;
  readonly text: string;
}

class Entry {
  readonly #file: string;
  #parts: string[] = [];
  #length = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** @throws TaskError naming the line when the entry is too long */
  add(part: string, line: number): void {
    this.#length += part.length;
    if (this.#length > LONGEST_ENTRY)
      throw new TaskError(`expected entries of at most ${LONGEST_ENTRY} characters`, { file: this.#file, line });
    this.#parts.push(part);
  }

  /** The whole entry; the next one begins. */
  take(): string {
    const text = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return text;
  }
}

class LinePieces {
  #line: number;
  readonly #entry: Entry;

  constructor(file: string, line: number) {
    this.#line = line;
    this.#entry = new Entry(file);
  }

  push(text: string): TextPiece[] {
    const pieces: TextPiece[] = [];
    let begin = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', begin)) {
      this.#entry.add(text.slice(begin, end), this.#line + 1);
      pieces.push({ line: ++this.#line, text: this.#entry.take() });
      begin = end + 1;
    }
    this.#entry.add(text.slice(begin), this.#line + 1);
    return pieces.filter(isFilled);
  }

  end(): TextPiece[] {
    return [{ line: this.#line + 1, text: this.#entry.take() }].filter(isFilled);
  }
}

const isFilled = ({ text }: TextPiece) => text.trim() !== '';

/**
 * Cuts an array at its commas, so that errors can name an entry's line. JSON.parse reads the text between the commas.
 */
class ArrayPieces {
  readonly #file: string;
  readonly #entry: Entry;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #line: number;
  #beginLine: number;
  #entries = 0;
  #closed = false;
  #behind: string | undefined;

  constructor(file: string, linesBefore: number) {
    this.#file = file;
    this.#entry = new Entry(file);
    this.#line = linesBefore + 1;
    this.#beginLine = this.#line;
  }

  push(text: string): TextPiece[] {
    const pieces: TextPiece[] = [];
    let begin = 0;
    let at = 0;
    const cut = () => {
      this.#entry.add(text.slice(begin, at), this.#beginLine);
      pieces.push(this.#piece(this.#entry.take()));
      begin = at + 1;
      this.#beginLine = this.#line;
    };
    let [inString, escaped] = [this.#inString, this.#escaped];
    for (; at < text.length && !this.#closed; at++) {
      const code = text.charCodeAt(at);
      if (code === LINE_FEED) this.#line++;
      if (escaped) escaped = false;
      else if (inString) {
        if (code === BACKSLASH) escaped = true;
        else if (code === QUOTE) inString = false;
      } else if (code === QUOTE) inString = true;
      else if (code === OPEN_LIST || code === OPEN_OBJECT) {
        this.#depth++;
        if (this.#depth > 1) continue;
        begin = at + 1;
        this.#beginLine = this.#line;
      } else if (code === COMMA && this.#depth === 1) cut();
      else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
        this.#depth--;
        if (this.#depth > 0) continue;
        if (code === CLOSE_OBJECT)
          throw new TaskError('expected "]" at the end of the array, got "}"', { file: this.#file, line: this.#line });
        cut();
        this.#closed = true;
      }
    }
    [this.#inString, this.#escaped] = [inString, escaped];
    if (this.#closed) this.#behind = text.slice(begin);
    else this.#entry.add(text.slice(begin), this.#beginLine);
    // `[ ]` holds no entry; `[1, ]` holds one that is not JSON.
    const empty = this.#closed && this.#entries === 0 && pieces.length === 1 && pieces[0]?.text.trim() === '';
    this.#entries += pieces.length;
    return empty ? [] : pieces;
  }

  end(): TextPiece[] {
    if (this.#closed) return [];
    throw new TaskError('the array is not closed', { file: this.#file, line: this.#line });
  }

  #piece(text: string): TextPiece {
    const blank = text.length - text.trimStart().length;
    return { line: this.#beginLine + text.slice(0, blank).split('\n').length - 1, text };
  }

  /** The text behind the array, once it is closed. */
  get behind(): string | undefined {
    return this.#behind;
  }

  get line(): number {
    return this.#line;
  }
}
