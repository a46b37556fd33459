/** The language of the generated encyclopedias: all texts about their entities consist of these words. */
import { isHeldOut } from 'drmas/tasks';

export type Kind = 'person' | 'book' | 'guild' | 'town' | 'region';

export interface Relation {
  /** The relation's name in questions. */
  readonly noun: string;
  readonly from: Kind;
  readonly to: Kind;
  /** The phrase in passages, between the two names. */
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

/** The share of names that belong to the encyclopedia of the test split and occur nowhere else. */
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

/** The words that end a response and a prompt. */
const ends = ['<end>', ': '];

/**
 * All symbols of this family's texts, for a model with one token for each. Words end with a space, the first halves of
 * names do not, so that a text can be cut in one way only.
 */
export const encyclopediaSymbols: readonly string[] = [
  ...ends,
  ...roles,
  ...[...signs, ...content, ...endings].map((word) => `${word} `),
  ...beginnings,
];

const isName = (word: string) => /^(?:[BDGKLMPV][aeiou])(?:[dklmnrst][aeiou]n)$/.test(word);

/** The name that the text consists of; `undefined` for any other text. */
export function nameIn(text: string): string | undefined {
  const word = text.trim();
  return isName(word) ? word : undefined;
}

/** The longest query in words: enough for a name and a word for a relation. */
const LONGEST_QUERY = 4;

/**
 * The query that the text consists of: up to four names and words of passages or questions; `undefined` for any other
 * text.
 */
export function queryIn(text: string): string | undefined {
  const words = text.trim().split(' ');
  const inVocabulary = words.every((word) => isName(word) || content.includes(word));
  return inVocabulary && words.length <= LONGEST_QUERY ? words.join(' ') : undefined;
}

/** The verdict that the text consists of; `undefined` for any other text. */
export function verdictIn(text: string): 'yes' | 'no' | undefined {
  const word = text.trim();
  return word === 'yes' || word === 'no' ? word : undefined;
}

function combine(firsts: readonly string[], seconds: readonly string[]): string[] {
  return firsts.flatMap((first) => seconds.map((second) => first + second));
}
