/**
 * Patterns that find parts of a text. They give the matches of Oniguruma, whose lookaheads no engine of linear time
 * has, by trying alternatives in order. Each step is paid for, so that a hostile pattern ends with an error.
 */
import type { Work } from '../work.js';
import { CharacterSet, wordOutside } from './character-set.js';
import { type PatternNode, type Place, parsePattern } from './syntax.js';

/** A match: its start, and the position behind it. */
export type Match = readonly [start: number, end: number];

/** The instructions of a pattern, with repetitions written out. */
const LARGEST_PROGRAM = 20_000;

/** Numbers of the list of what is still to be tried, three for each. */
const LARGEST_STACK = 3 * 2 ** 21;

type Instruction =
  | { readonly type: 'set'; readonly set: CharacterSet }
  /** Characters of a set, as many as there are (`greedy`: it may give back down to the least). */
  | {
      readonly type: 'run';
      readonly set: CharacterSet;
      readonly least: number;
      readonly most: number;
      readonly isGreedy: boolean;
    }
  /** Goes on at the next instruction, and at `other` if that fails, or the other way round. */
  | { type: 'either'; other: number; prefersOther: boolean }
  | { type: 'jump'; to: number }
  | { readonly type: 'round-begins'; readonly register: number }
  /** Leaves a loop whose last round was empty. */
  | { type: 'round-ends'; readonly register: number; to: number }
  | { readonly type: 'place'; readonly at: Place }
  /** Runs the instructions behind it apart, and goes on at `after`. */
  | { type: 'look'; readonly isBehind: boolean; readonly isNegative: boolean; readonly lengths: Lengths; after: number }
  | { type: 'atomic'; after: number }
  | { readonly type: 'found' };

/** The least and the most characters that a node matches. */
type Lengths = readonly [least: number, most: number];

export class Pattern {
  readonly #program: Instruction[] = [];
  /** Where the current round of each loop began. */
  readonly #rounds: number[] = [];
  /** The ways still to be tried, each an instruction, a position, and the least position of a run (-1: none). */
  readonly #stack: number[] = [];

  /** @throws Error naming the part of the pattern that cannot be read */
  constructor(source: string) {
    this.#compile(parsePattern(source));
    this.#add({ type: 'found' });
  }

  /** All matches from left to right that do not overlap. @throws Error when they take too much work */
  *matches(text: string, work: Work): Generator<Match> {
    let lastEnd = -1;
    for (let at = 0; at <= text.length; ) {
      this.#stack.length = 0;
      const end = this.#run(0, text, at, undefined, work);
      // An empty match right behind another one is none.
      const isMatch = end !== undefined && (end > at || end !== lastEnd);
      if (isMatch) yield [at, end];
      if (isMatch) lastEnd = end;
      at = isMatch && end > at ? end : next(text, at);
    }
  }

  #try(instruction: number, position: number, least: number): void {
    if (this.#stack.push(instruction, position, least) > LARGEST_STACK)
      throw new Error('a pattern has too many ways to match a text');
  }

  #add<T extends Instruction>(instruction: T): T {
    if (this.#program.push(instruction) > LARGEST_PROGRAM)
      throw new Error('a pattern is too long with its repetitions written out');
    return instruction;
  }

  #compile(node: PatternNode): void {
    const { length: start } = this.#program;
    switch (node.type) {
      case 'set':
        this.#add({ type: 'set', set: new CharacterSet(node.belongs) });
        return;
      case 'place':
        this.#add({ type: 'place', at: node.at });
        return;
      case 'sequence':
        for (const part of node.parts) this.#compile(part);
        return;
      case 'choice': {
        const exits = node.parts.map((part, i) => {
          if (i === node.parts.length - 1) {
            this.#compile(part);
            return undefined;
          }
          const either = this.#add({ type: 'either', other: 0, prefersOther: false });
          this.#compile(part);
          const exit = this.#add({ type: 'jump', to: 0 });
          either.other = this.#program.length;
          return exit;
        });
        for (const exit of exits) if (exit !== undefined) exit.to = this.#program.length;
        return;
      }
      case 'repeat':
        this.#compileRepeat(node);
        return;
      case 'look': {
        const { isBehind, isNegative } = node;
        const lengths = lengthsOf(node.body);
        if (isBehind && lengths[1] > LONGEST_LOOK_BEHIND)
          throw new Error('a pattern looks behind for a text without a greatest length, which is not supported');
        if (isBehind && givesNothingBack(node.body))
          throw new Error('a pattern looks behind for a part that gives nothing back, which is not supported');
        this.#compileApart(this.#add({ type: 'look', isBehind, isNegative, lengths, after: start }), node.body);
        return;
      }
      case 'atomic':
        this.#compileApart(this.#add({ type: 'atomic', after: start }), node.body);
    }
  }

  #compileApart(instruction: { after: number }, body: PatternNode): void {
    this.#compile(body);
    this.#add({ type: 'found' });
    instruction.after = this.#program.length;
  }

  #compileRepeat(node: Extract<PatternNode, { type: 'repeat' }>): void {
    const { body, least, most, mode } = node;
    if (body.type === 'set' && mode !== 'lazy') {
      this.#add({ type: 'run', set: new CharacterSet(body.belongs), least, most, isGreedy: mode === 'greedy' });
      return;
    }
    if (mode === 'possessive') {
      this.#compile({ type: 'atomic', body: { ...node, mode: 'greedy' } });
      return;
    }
    const either = () => this.#add({ type: 'either', other: 0, prefersOther: mode === 'lazy' });
    for (let i = 0; i < least; i++) this.#compile(body);
    if (most === Number.POSITIVE_INFINITY) {
      const { length: start } = this.#program;
      const exit = either();
      const register = this.#rounds.push(-1) - 1;
      this.#add({ type: 'round-begins', register });
      this.#compile(body);
      this.#add({ type: 'round-ends', register, to: start });
      exit.other = this.#program.length;
      return;
    }
    const exits = Array.from({ length: Math.min(most - least, LARGEST_PROGRAM) }, () => {
      const exit = either();
      this.#compile(body);
      return exit;
    });
    for (const exit of exits) exit.other = this.#program.length;
  }

  /**
   * Where the match of the instructions from `start` on ends that begins at `from`.
   * @param target The position at which it must end
   */
  #run(start: number, text: string, from: number, target: number | undefined, work: Work): number | undefined {
    const stack = this.#stack;
    const { length: bottom } = stack;
    let pc = start;
    let at = from;
    for (;;) {
      work.spend(1);
      const step = this.#program[pc];
      let holds = true;
      pc++;
      switch (step?.type) {
        case 'set': {
          const codePoint = text.codePointAt(at);
          holds = codePoint !== undefined && step.set.has(codePoint);
          if (holds) at = next(text, at);
          break;
        }
        case 'run': {
          const { set, least, most } = step;
          let count = 0;
          let low = at;
          for (; count < most; count++) {
            const codePoint = text.codePointAt(at);
            if (codePoint === undefined || !set.has(codePoint)) break;
            at += codePoint > 0xffff ? 2 : 1;
            if (count < least) low = at;
          }
          work.spend(count);
          holds = count >= least;
          if (holds && step.isGreedy && at > low) this.#try(pc, at, low);
          break;
        }
        case 'either':
          this.#try(step.prefersOther ? pc : step.other, at, -1);
          if (step.prefersOther) pc = step.other;
          break;
        case 'jump':
          pc = step.to;
          break;
        case 'round-begins':
          this.#try(-1 - step.register, this.#rounds[step.register] ?? -1, -1);
          this.#rounds[step.register] = at;
          break;
        case 'round-ends':
          if (this.#rounds[step.register] !== at) pc = step.to;
          break;
        case 'place':
          holds = isPlace(step.at, text, at);
          break;
        case 'look':
          holds = this.#looks(step, pc, text, at, work) !== step.isNegative;
          pc = step.after;
          break;
        case 'atomic': {
          const end = this.#run(pc, text, at, undefined, work);
          holds = end !== undefined;
          at = end ?? at;
          pc = step.after;
          break;
        }
        default:
          if (target === undefined || at === target) {
            stack.length = bottom;
            return at;
          }
          holds = false;
      }
      if (holds) continue;
      // Goes back to what is still to be tried.
      for (;;) {
        if (stack.length <= bottom) return undefined;
        work.spend(1);
        const low = stack.pop() ?? -1;
        const position = stack.pop() ?? 0;
        const instruction = stack.pop() ?? 0;
        if (instruction < 0) {
          this.#rounds[-1 - instruction] = position;
          continue;
        }
        pc = instruction;
        at = low < 0 ? position : before(text, position);
        if (at > low && low >= 0) this.#try(pc, at, low);
        break;
      }
    }
  }

  #looks(
    { isBehind, lengths: [least, most] }: Extract<Instruction, { type: 'look' }>,
    body: number,
    text: string,
    at: number,
    work: Work,
  ): boolean {
    if (!isBehind) return this.#run(body, text, at, undefined, work) !== undefined;
    let start = at;
    for (let length = 0; length <= most; length++) {
      if (length >= least && this.#run(body, text, start, at, work) !== undefined) return true;
      if (start === 0) return false;
      start = before(text, start);
    }
    return false;
  }
}

const LONGEST_LOOK_BEHIND = 255;

const next = (text: string, at: number): number => at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);

/** The position of the character before a position. */
function before(text: string, at: number): number {
  const isLow = (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
  return at - (isLow && at > 1 ? 2 : 1);
}

function isPlace(place: Place, text: string, at: number): boolean {
  switch (place) {
    case 'start':
      return at === 0;
    case 'end':
      return at === text.length;
    case 'last-line-end':
      return at === text.length || (at === text.length - 1 && text[at] === '\n');
    case 'line-start':
      return at === 0 || (text[at - 1] === '\n' && at < text.length);
    case 'line-end':
      return at === text.length || text[at] === '\n';
    case 'word-edge':
      return isWordEdge(text, at);
    case 'no-word-edge':
      return !isWordEdge(text, at);
  }
}

const words = new CharacterSet(wordOutside);

function isWordEdge(text: string, at: number): boolean {
  const isWord = (position: number) =>
    position >= 0 && position < text.length && words.has(text.codePointAt(position) ?? 0);
  return isWord(at > 0 ? before(text, at) : -1) !== isWord(at);
}

/** Whether a node has a possessive repetition or an atomic group, which Oniguruma tries otherwise behind a place. */
function givesNothingBack(node: PatternNode): boolean {
  if (node.type === 'atomic' || (node.type === 'repeat' && node.mode === 'possessive')) return true;
  if ('parts' in node) return node.parts.some(givesNothingBack);
  return 'body' in node && givesNothingBack(node.body);
}

function lengthsOf(node: PatternNode): Lengths {
  switch (node.type) {
    case 'set':
      return [1, 1];
    case 'place':
    case 'look':
      return [0, 0];
    case 'atomic':
      return lengthsOf(node.body);
    case 'repeat': {
      const [least, most] = lengthsOf(node.body);
      return [least * node.least, most === 0 ? 0 : most * node.most];
    }
    case 'sequence': {
      const all = node.parts.map(lengthsOf);
      return [all.reduce((sum, [least]) => sum + least, 0), all.reduce((sum, [, most]) => sum + most, 0)];
    }
    case 'choice': {
      const all = node.parts.map(lengthsOf);
      return [Math.min(...all.map(([least]) => least)), Math.max(...all.map(([, most]) => most))];
    }
  }
}
