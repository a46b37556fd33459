/** The numbers of a team's rewards: what is no number is named with the mistake that is behind it. */
import type { Metrics, RewardParts, RewardValue } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';

/**
 * The largest size of a reward. Statistics square rewards in double precision, and losses hold advantages in single
 * precision. Larger rewards would overflow without an error, and the run would learn nothing.
 */
export const LARGEST = 1e30;

/**
 * The most named parts of a reward, and the most metrics of an episode. Each name is a column of the events and a line
 * of the terminal. A team with more of them names them by its data, and a step would take minutes to record.
 */
const MOST_NAMES = 100;

/** Programs that read events would take a value of this name for the prototype of all values. */
const UNNAMEABLE = '__proto__';

export function sumOf(reward: RewardValue | RewardParts | undefined, what: string) {
  if (typeof reward !== 'object' || reward === null || reward instanceof Promise)
    return { sum: finiteReward(reward, what) };
  // A list, a Map, a Date or an error would count as the sum of no parts.
  if (kindOf(reward) !== 'Object') return { sum: finiteReward(reward, what) };
  const named = entriesOf(reward, `${what} has`, 'parts');
  if (named.length === 0)
    throw new EpisodeFailure('reward', `${what} is an object without parts, expected a number or named numbers`);
  const parts = named.map(([name, value]) => [name, finiteReward(value, `the part '${name}'`)] as const);
  const sum = parts.reduce((total, [, value]) => total + value, 0);
  return { sum: finiteReward(sum, `the sum of the parts of ${what}`), parts: Object.fromEntries(parts) };
}

/** The values that a team names by an object. @throws EpisodeFailure for a list, a Map and everything else */
export function requireNamed(value: unknown, what: string, expected: string): void {
  if (typeof value !== 'object' || value === null || value instanceof Promise || kindOf(value) !== 'Object')
    throw new EpisodeFailure('reward', `${what} are ${valueText(value)}, expected ${expected}`);
}

export function measured(metrics: Metrics): Record<string, number> {
  return Object.fromEntries(
    entriesOf(metrics, 'the episode has', 'metrics').flatMap(([name, value]) =>
      value === undefined ? [] : [[name, finiteReward(value, `the metric '${name}'`)]],
    ),
  );
}

export function share(value: RewardValue, what: string): number {
  const number = finiteReward(value, what);
  if (number < 0 || number > 1)
    throw new EpisodeFailure('reward', `${what} is ${number}, expected true, false or a number from 0 to 1`);
  return number;
}

/** @throws EpisodeFailure with the reason 'reward' if statistics cannot hold the number */
export function finiteReward(value: unknown, what: string): number {
  const number = typeof value === 'boolean' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number))
    throw new EpisodeFailure('reward', `${what} is ${valueText(value)}, expected a finite number${hintFor(value)}`);
  if (Math.abs(number) > LARGEST)
    throw new EpisodeFailure('reward', `${what} is ${number}, expected at most ${LARGEST} in size`);
  return number;
}

/** The named values of an object, counted before they are read. */
function entriesOf<Value>(named: Readonly<Record<string, Value>>, owner: string, kind: string): [string, Value][] {
  const names = Object.keys(named);
  if (names.length > MOST_NAMES)
    throw new EpisodeFailure('reward', `${owner} ${names.length} ${kind}, expected at most ${MOST_NAMES}`);
  if (names.includes(UNNAMEABLE))
    throw new EpisodeFailure('reward', `${owner} one of the ${kind} named ${UNNAMEABLE}, expected another name`);
  return names.map((name) => [name, named[name] as Value]);
}

/** The built-in kind of an object, such as `Object`, `Map` or `Float32Array`. */
const kindOf = (value: object): string => Object.prototype.toString.call(value).slice('[object '.length, -1);

/** A wrong value as text, for messages. A text is quoted: `0.5` without quotes would be a number to the reader. */
export function valueText(value: unknown): string {
  if (typeof value === 'string')
    return `the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)}`;
  if (value instanceof Promise) return 'a promise';
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'bigint') return `the bigint ${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  const kind = kindOf(value);
  return kind === 'Object' ? 'an object' : `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}`;
}

function hintFor(value: unknown): string {
  if (value instanceof Promise) return ': `await` it';
  if (value === undefined) return ': a branch returns nothing, or a name is misspelt';
  if (typeof value === 'string' || typeof value === 'bigint' || value instanceof Number)
    return ': convert it with Number(...)';
  if (Number.isNaN(value)) return ': something divides 0 by 0, or reads a number where there is none';
  return '';
}
