import { messageOf, TaskError } from '../core/errors.js';

/** One entry of a task file and the line where it begins, counted from 1. */
export interface Row {
  readonly line: number;
  readonly value: unknown;
}

/**
 * The entries of a JSON array or, where the text does not begin with `[`, of JSON lines. Blank lines are skipped.
 *
 * @throws TaskError naming the line that is not JSON. `file` is only named.
 */
export function jsonRows(text: string, file: string): Row[] {
  const pieces = /^\s*\[/.test(text) ? arrayPieces(text, file) : linePieces(text);
  return pieces.map(({ line, text: piece }) => {
    try {
      return { line, value: JSON.parse(piece) };
    } catch (error) {
      throw new TaskError(`expected JSON, got ${excerpt(piece)} (${messageOf(error)})`, { file, line });
    }
  });
}

/** The beginning of a text, for an error message. */
export function excerpt(text: string): string {
  const flat = text.trim().replace(/\s+/g, ' ');
  return flat.length > 80 ? `${flat.slice(0, 79)}…` : flat;
}

interface Piece {
  readonly line: number;
  readonly text: string;
}

function linePieces(text: string): Piece[] {
  return text
    .split(/\r?\n/)
    .map((piece, index) => ({ line: index + 1, text: piece }))
    .filter((piece) => piece.text.trim() !== '');
}

/** Cuts an array at its own commas, so that an entry can be named by its line. What lies between is left to JSON.parse. */
function arrayPieces(text: string, file: string): Piece[] {
  const pieces: Piece[] = [];
  let depth = 0;
  let inString = false;
  let begin = 0;
  let line = 1;
  let beginLine = 1;
  const cut = (end: number) => {
    const piece = text.slice(begin, end);
    const blank = piece.length - piece.trimStart().length;
    const lines = piece.slice(0, blank).split('\n').length - 1;
    pieces.push({ line: beginLine + lines, text: piece });
    begin = end + 1;
    beginLine = line;
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '\n') line++;
    else if (inString) {
      if (character === '\\') at++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '[' || character === '{') {
      depth++;
      if (depth === 1) {
        begin = at + 1;
        beginLine = line;
      }
    } else if (character === ',' && depth === 1) cut(at);
    else if (character === ']' || character === '}') {
      depth--;
      if (depth > 0) continue;
      cut(at);
      const rest = text.slice(at + 1);
      if (rest.trim() !== '')
        throw new TaskError(`expected nothing after the array, got ${excerpt(rest)}`, { file, line });
      const empty = pieces.length === 1 && pieces[0]?.text.trim() === '';
      return empty ? [] : pieces;
    }
  }
  throw new TaskError('the array is not closed', { file, line });
}
