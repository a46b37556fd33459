/** The language of the generated encyclopedias: whatever is said about their entities is made of these words. */
import { isHeldOut } from '../split.js';

export type Kind = 'person' | 'book' | 'guild' | 'town' | 'region';

export interface Relation {
  /** What questions call it. */
  readonly noun: string;
  readonly from: Kind;
  readonly to: Kind;
  /** How passages say it, between the two names. */
  readonly phrase: string;
  /** The word of the phrase that no other phrase has; never the noun. */
  readonly keyword: string;
}

const relation = (noun: string, from: Kind, to: Kind, phrase: string, keyword: string): Relation => ({
  noun,
  from,
  to,
  phrase,
  keyword,
});

export const relations = [
  relation('mother', 'person', 'person', 'was raised by', 'raised'),
  relation('teacher', 'person', 'person', 'studied under', 'studied'),
  relation('friend', 'person', 'person', 'often met', 'met'),
  relation('home', 'person', 'town', 'lives in', 'lives'),
  relation('birthplace', 'person', 'town', 'was born in', 'born'),
  relation('employer', 'person', 'guild', 'works for', 'works'),
  relation('author', 'book', 'person', 'was written by', 'written'),
  relation('publisher', 'book', 'guild', 'was printed by', 'printed'),
  relation('setting', 'book', 'town', 'plays in', 'plays'),
  relation('founder', 'guild', 'person', 'was founded by', 'founded'),
  relation('seat', 'guild', 'town', 'is based in', 'based'),
  relation('head', 'guild', 'person', 'is led by', 'led'),
  relation('region', 'town', 'region', 'lies in', 'lies'),
  relation('mayor', 'town', 'person', 'is governed by', 'governed'),
  relation('twin', 'town', 'town', 'is twinned with', 'twinned'),
  relation('capital', 'region', 'town', 'is administered from', 'administered'),
  relation('ruler', 'region', 'person', 'is ruled by', 'ruled'),
  relation('neighbour', 'region', 'region', 'borders', 'borders'),
] as const satisfies readonly Relation[];

const beginnings = combine([...'BDGKLMPV'], [...'aeiou']);
const endings = combine([...'dklmnrst'], [...'aeiou']).map((syllable) => `${syllable}n`);

/** One name in four belongs to the encyclopedia of the test split and is said nowhere else. */
const HELD_OUT_SHARE = 0.25;

const names = combine(beginnings, endings);
export const namesOf = {
  train: names.filter((name) => !isHeldOut(name, HELD_OUT_SHARE)),
  test: names.filter((name) => isHeldOut(name, HELD_OUT_SHARE)),
};

const roles = ['verifier', 'searcher', 'answerer'];
const signs = ['search', ';', 'what', '?', 'the', 'of', '.', 'yes', 'no'];
const content = [
  ...new Set(relations.flatMap(({ phrase }) => phrase.split(' '))),
  ...relations.map(({ noun }) => noun),
];

/** Ends of a response and of a prompt. */
const ends = ['<end>', ': '];

/**
 * Everything that is ever written in this family, for a model with one token for each symbol. Words end with a space, the
 * first halves of names do not, so that a text is cut in one way only.
 */
export const encyclopediaSymbols: readonly string[] = [
  ...ends,
  ...roles,
  ...[...signs, ...content, ...endings].map((word) => `${word} `),
  ...beginnings,
];

const isName = (word: string) => /^(?:[BDGKLMPV][aeiou])(?:[dklmnrst][aeiou]n)$/.test(word);

/** The name that a text is, and nothing else. */
export function nameIn(text: string): string | undefined {
  const word = text.trim();
  return isName(word) ? word : undefined;
}

/** Longest query in words: a name, and a word for what is asked, with room to spare. */
const LONGEST_QUERY = 4;

/** The query that a text is: up to four names and words that passages or questions have. */
export function queryIn(text: string): string | undefined {
  const words = text.trim().split(' ');
  const known = words.every((word) => isName(word) || content.includes(word));
  return known && words.length <= LONGEST_QUERY ? words.join(' ') : undefined;
}

/** The verdict that a text is, and nothing else. */
export function verdictIn(text: string): 'yes' | 'no' | undefined {
  const word = text.trim();
  return word === 'yes' || word === 'no' ? word : undefined;
}

function combine(firsts: readonly string[], seconds: readonly string[]): string[] {
  return firsts.flatMap((first) => seconds.map((second) => first + second));
}
