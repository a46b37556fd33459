/** Tokens that a tokenizer.json adds to its vocabulary. They are cut out of a text before it is split. */
import { isObject } from '../../../errors.js';
import { CharacterSet, rustWord, space } from '../pattern/character-set.js';
import type { Work } from '../work.js';

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly isSpecial: boolean;
  /** Whether it is looked for in the normalized text. */
  readonly isNormalized: boolean;
  /** Whether no letter may touch it. */
  readonly isWord: boolean;
  /** Whether it takes white space on its left and right. */
  readonly takesLeft: boolean;
  readonly takesRight: boolean;
}

/** Characters of all added tokens together. Gemma 3 has 80,000. */
const MOST_CHARACTERS = 1_000_000;

/**
 * The list `added_tokens` of a tokenizer.json, and the tokens that only tokenizer_config.json adds. These get their id
 * from the vocabulary, else the next free one, as transformers gives it, and not the one of the file.
 * @param decoder `added_tokens_decoder` of tokenizer_config.json: tokens by ids
 * @throws Error when they cannot be read
 */
export function addedTokensOf(value: unknown, decoder: unknown, ids: ReadonlyMap<string, number>): AddedToken[] {
  const tokens = listedTokens(value ?? []);
  const known = new Set(tokens.map(({ content }) => content));
  const further = Object.entries(isObject(decoder) ? decoder : {}).filter(
    ([, each]) => isObject(each) && typeof each.content === 'string' && each.content !== '' && !known.has(each.content),
  );
  let free = 0;
  for (const id of ids.values()) free = Math.max(free, id + 1);
  for (const { id } of tokens) free = Math.max(free, id + 1);
  const placed = further
    .toSorted(([a], [b]) => Number(a) - Number(b))
    .map(([, each]) => {
      const { content } = each as { readonly content: string };
      return { ...(each as object), id: ids.get(content) ?? free++ };
    });
  return [...tokens, ...listedTokens(placed)];
}

function listedTokens(list: unknown): AddedToken[] {
  if (!Array.isArray(list)) throw new Error('added_tokens must be a list');
  let characters = 0;
  const tokens = list.map((each): AddedToken => {
    if (!isObject(each) || typeof each.content !== 'string' || typeof each.id !== 'number')
      throw new Error('each of added_tokens must have a text and an id');
    characters += each.content.length;
    const isSpecial = each.special === true;
    return {
      id: each.id,
      content: each.content,
      isSpecial,
      isNormalized: typeof each.normalized === 'boolean' ? each.normalized : !isSpecial,
      isWord: each.single_word === true,
      takesLeft: each.lstrip === true,
      takesRight: each.rstrip === true,
    };
  });
  if (characters > MOST_CHARACTERS)
    throw new Error(`added_tokens have ${characters} characters together, at most ${MOST_CHARACTERS} are read`);
  return tokens;
}

/** The pieces of a text between added tokens, and their ids. */
export type Section = string | number;

/** A tree of the tokens by their UTF-16 units. */
interface Branch {
  readonly next: Map<number, Branch>;
  token?: AddedToken;
}

/** Finds added tokens in a text. Of several at a place the longest counts. */
export class TokenFinder {
  readonly #root: Branch = { next: new Map() };

  /** @param tokens The tokens with the texts by which they are found */
  constructor(tokens: Iterable<readonly [text: string, token: AddedToken]>) {
    for (const [text, token] of tokens) {
      let branch = this.#root;
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        const next: Branch = branch.next.get(unit) ?? { next: new Map() };
        branch.next.set(unit, next);
        branch = next;
      }
      if (text !== '') branch.token = token;
    }
  }

  sections(text: string, work: Work): Section[] {
    const sections: Section[] = [];
    let from = 0;
    for (let at = 0; at < text.length; ) {
      const [end, token] = this.#longest(text, at, work);
      if (token === undefined || (token.isWord && touchesWord(text, at, end))) {
        at = token === undefined ? at + 1 : end;
        continue;
      }
      const start = token.takesLeft ? Math.max(from, spaceBefore(text, at, from)) : at;
      const stop = token.takesRight ? spaceBehind(text, end) : end;
      if (start > from) sections.push(text.slice(from, start));
      if (start < stop) sections.push(token.id);
      from = stop;
      // Like the original, which also finds tokens in the white space that this one takes.
      at = end;
    }
    if (from < text.length) sections.push(text.slice(from));
    return sections;
  }

  #longest(text: string, start: number, work: Work): readonly [end: number, token: AddedToken | undefined] {
    let longest: readonly [number, AddedToken | undefined] = [start, undefined];
    let branch: Branch | undefined = this.#root;
    let at = start;
    while (branch !== undefined) {
      if (branch.token !== undefined) longest = [at, branch.token];
      branch = at < text.length ? branch.next.get(text.charCodeAt(at)) : undefined;
      at++;
    }
    work.spend(at - start);
    return longest;
  }
}

const words = new CharacterSet(rustWord);

function touchesWord(text: string, start: number, end: number): boolean {
  const before = [...text.slice(Math.max(0, start - 2), start)].at(-1)?.codePointAt(0);
  const behind = text.codePointAt(end);
  return [before, behind].some((each) => each !== undefined && words.has(each));
}

function spaceBefore(text: string, end: number, least: number): number {
  let start = end;
  while (start > least && space(text.charCodeAt(start - 1))) start--;
  return start;
}

function spaceBehind(text: string, start: number): number {
  let end = start;
  while (end < text.length && space(text.charCodeAt(end))) end++;
  return end;
}
