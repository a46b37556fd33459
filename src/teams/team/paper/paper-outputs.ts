/** How the Dr. MAS paper's code (langfengQ/DrMAS at 19c632b) reads the outputs of its agents. */
import { ArgumentError } from '@drmas/engine/errors';
import { extractBoxed } from '../../tasks/grading/boxed.js';
import type { Passage } from '../../tasks/retrieval/retriever.js';
import type { Parser, Penalised, UsingParser } from '../parsers.js';

/** A text between the first opening and the first closing tag of a name. */
interface Tagged {
  readonly before: string;
  /** Without the spaces around it. Empty if the closing tag stands first. */
  readonly inside: string;
  readonly after: string;
}

function firstTagged(text: string, name: string): Tagged | undefined {
  const open = `<${name}>`;
  const [start, end] = [text.indexOf(open), text.indexOf(`</${name}>`)];
  if (start < 0 || end < 0) return undefined;
  const from = start + open.length;
  return { before: text.slice(0, from), inside: text.slice(from, end).trim(), after: text.slice(end) };
}

const usedUnless = <Value>(valid: boolean, value: Value): Value | Penalised<Value> =>
  valid ? value : { value, penalised: true };

const hasChinese = (text: string) => /[\u4e00-\u9fff]/.test(text);

function hasOneThought(text: string): boolean {
  const [open, close] = [text.split('<think>'), text.split('</think>')];
  return open.length === 2 && close.length === 2 && text.indexOf('<think>') < text.indexOf('</think>');
}

/**
 * The boxed answer after the thought, which the original grades; empty if the box stands elsewhere. A text without a
 * box is invalid.
 */
export const paperSolution: Parser<string> = (text) => {
  if (extractBoxed(text) === null) return undefined;
  return extractBoxed(text.split('</think>')[1] ?? text) ?? '';
};

/** A verdict as the other agents read it, and as the original searches it: without spaces inside its first tags. */
export function shownVerdict(text: string): string {
  const block = firstTagged(text, 'verify');
  return block === undefined ? text : block.before + block.inside + block.after;
}

export const inTags = (word: string): string => `<verify>${word}</verify>`;

/**
 * The first of the words that occurs in tags. A text with none of them counts as the first word. A verdict without
 * tags, or with Chinese characters, is used and penalised.
 */
export const paperVerdict =
  <const Word extends string>(words: readonly [Word, Word], shown: (text: string) => string): UsingParser<Word> =>
  (text) => {
    const value = words.find((word) => shown(text).includes(inTags(word))) ?? words[0];
    return usedUnless(firstTagged(text, 'verify') !== undefined && !hasChinese(text), value);
  };

/**
 * The text between the first tags, which may be empty. Without exactly one block of thought, or with Chinese
 * characters, it is used and penalised; without the tags it is invalid.
 */
export const paperTagged =
  (name: string): UsingParser<string> =>
  (text) => {
    const block = firstTagged(text, name);
    return block && usedUnless(hasOneThought(text) && !hasChinese(text), block.inside);
  };

/** Passages as the original shows them: JSON in ASCII, in the format of Search-R1's corpus with a title in quotes. */
export function shownPassages(passages: readonly Passage[]): string {
  const documents = passages.map(({ title, text }, n) => {
    const contents = title === undefined ? text : `"${title}"\n${text}`;
    return `Doc ${n + 1}: ${contents.trim()}\n`;
  });
  const json = JSON.stringify(documents.join('')).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `<information>{"result": ${json}}</information>`;
}

interface FormOptions {
  readonly form?: 'paper';
  readonly prompts?: 'paper';
  readonly prompt?: unknown;
}

/** @throws ArgumentError for an option of the one form that stands beside the other */
export function requireForm<Options extends FormOptions>(
  team: string,
  options: Options,
  ofOwnForm: readonly (keyof Options & string)[],
  roles: readonly ({ readonly system?: string } | undefined)[],
): void {
  const { form, prompts } = options;
  const given = ofOwnForm.filter((name) => options[name] !== undefined);
  const refuse = (message: string) => {
    throw new ArgumentError(`${team}(...): ${message}`);
  };
  if (form === 'paper' && given.length > 0) refuse(`form: 'paper' decides ${given.join(', ')}`);
  if (prompts === 'paper' && form !== 'paper') refuse("prompts: 'paper' needs form: 'paper'");
  if (prompts === 'paper' && (options.prompt !== undefined || roles.some((role) => role?.system !== undefined)))
    refuse("prompts: 'paper' decides system and prompt");
}
