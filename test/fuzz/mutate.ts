/** From right inputs to wrong ones. An input is a function of the fuzzer's seed, its target and its number alone. */
import { RandomStream } from '@drmas/engine/math';
import type { Target } from './target.js';

/**
 * Values that files of attackers have: keys of prototypes, sizes and counts far beyond a file, paths out of a folder,
 * letters that hide a name, texts that look like other types.
 */
function hostileValues(): unknown[] {
  const paths = [
    '/',
    '..',
    '../x',
    '/etc/passwd',
    '~/.ssh/id_rsa',
    'C:\\con',
    'file:///etc/passwd',
    'a/../../b',
    '\\\\h\\s',
  ];
  const texts = [
    '\u202egnp.exe',
    'a\u2066b',
    '\udc00\ud800',
    '\ufeff',
    '\u0000',
    '\r\n',
    '\u001b]52;c;eA==\u0007',
    '\u200b',
  ];
  const numbers = [2 ** 31 - 1, -(2 ** 31), 2 ** 32, 2 ** 53 + 2, -(2 ** 63), 1e9, 1e15, 5e-324, Number.MAX_VALUE];
  const methods = ['constructor', 'toJSON', 'then', 'hasOwnProperty', 'toString', 'valueOf'];
  const objects = ['__proto__', 'length', ...methods].map((key) =>
    JSON.parse(`{${JSON.stringify(key)}:{"polluted":true}}`),
  );
  return [
    ...paths,
    ...texts,
    ...methods,
    ...numbers,
    ...objects,
    'NaN',
    '1e999',
    'x'.repeat(1e5),
    new Array(20_000).fill(0),
  ];
}

const NUMBERS = '0 -1 1 2 7 255 256 65535 2147483647 2147483648 4294967295 4294967296 9007199254740991 1e9 1e308 1e999'
  .concat(' -1e999 NaN Infinity 0.1 -0 1e-320 18446744073709551615 00 0x10 1.5 null true')
  .split(' ');
const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  2 ** 31,
  2 ** 53,
  1e308,
  '',
  'x',
  '__proto__',
  '../../etc/passwd',
  'a\u0000b',
  '\ud800',
  '\u001b[2J',
  [],
  {},
  [[[[]]]],
  { __proto__: null, length: 1e9 },
  ...hostileValues(),
];
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'length', '', 'type', 'a.b', '\u0000'];
const LONGEST = 1 << 18;

/** The input of this number. */
export function inputOf({ name, seeds, words }: Target, seed: number, number: number): Buffer {
  const random = new Draw(seed, name, number);
  const from = random.of(seeds);
  let input: Buffer = Buffer.from(from);
  for (let times = 1 + random.below(4); times > 0; times--) {
    const change = random.of(typeof from === 'string' ? [inJson, ...inBytes, inJson, inWords, inNumbers] : inBytes);
    input = change(input, random, seeds, words);
  }
  return input.subarray(0, LONGEST);
}

class Draw {
  readonly #stream: RandomStream;
  constructor(...parts: readonly (string | number)[]) {
    this.#stream = new RandomStream('fuzz', ...parts);
  }
  below(n: number): number {
    return Math.floor(this.#stream.uniform() * n);
  }
  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

type Change = (input: Buffer, random: Draw, seeds: Target['seeds'], words: Target['words']) => Buffer;

const spliced = (input: Buffer, from: number, to: number, put: Uint8Array | string): Buffer =>
  Buffer.concat([input.subarray(0, from), Buffer.from(put), input.subarray(to)]);

function range(input: Buffer, random: Draw): [number, number] {
  const from = random.below(input.length + 1);
  const longest = random.of([1, 4, 16, 256, input.length]);
  return [from, Math.min(input.length, from + random.below(longest + 1))];
}

const inBytes: readonly Change[] = [
  // replaces a bit, a byte or a number
  (input, random) => {
    const changed = Buffer.from(input);
    if (changed.length > 0) {
      const at = random.below(changed.length);
      changed[at] = (changed[at] as number) ^ (1 << random.below(8));
    }
    return changed;
  },
  (input, random) => {
    const changed = Buffer.from(input);
    if (changed.length > 0) changed[random.below(changed.length)] = random.of([0, 1, 0x7f, 0x80, 0xff, 10, 34, 92]);
    return changed;
  },
  (input, random) => {
    const changed = Buffer.from(input);
    const at = random.below(Math.max(1, changed.length - 8));
    if (changed.length >= 8)
      changed.writeBigUInt64LE(random.of([0n, 1n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 64n - 1n]), at);
    return changed;
  },
  // a piece that is gone, twice, many times, or another's
  (input, random) => spliced(input, ...range(input, random), ''),
  (input, random) => input.subarray(0, random.below(input.length + 1)),
  (input, random) => {
    const [from, to] = range(input, random);
    const times = random.of([1, 2, 50, 3000]);
    const piece = input.subarray(from, Math.min(to, from + Math.floor(LONGEST / times)));
    return spliced(input, to, to, Buffer.concat(new Array<Buffer>(times).fill(piece)));
  },
  (input, random, seeds) => {
    const other = Buffer.from(random.of(seeds));
    return spliced(input, ...range(input, random), other.subarray(...range(other, random)));
  },
];

const inWords: Change = (input, random, _, words) =>
  words.length === 0 ? input : spliced(input, ...range(input, random), random.of(words));

const inNumbers: Change = (input, random) => {
  const text = input.toString('latin1');
  const all = [...text.matchAll(/-?\d+(?:\.\d+)?/g)];
  if (all.length === 0) return input;
  const { index, 0: number } = random.of(all);
  return spliced(input, index, index + number.length, random.of(NUMBERS));
};

/** An object and a key of it, or a list and an index. */
type Place = readonly [holder: Record<string, unknown>, key: string];

/** The places of values in a JSON value, at most 2000, and the deepest level. */
function placesOf(root: unknown): { readonly places: readonly Place[]; readonly deepest: number } {
  const places: Place[] = [];
  const waiting: [unknown, number][] = [[root, 1]];
  let deepest = 0;
  for (let next = waiting.pop(); next !== undefined && places.length < 2000; next = waiting.pop()) {
    const [value, depth] = next;
    if (typeof value !== 'object' || value === null) continue;
    deepest = Math.max(deepest, depth);
    for (const [key, inner] of Object.entries(value)) {
      places.push([value as Record<string, unknown>, key]);
      waiting.push([inner, depth + 1]);
    }
  }
  return { places, deepest };
}

/** A change of one place, and the input that it makes: most of them are only counted. */
interface HostileInput {
  readonly place: string;
  readonly input: () => Buffer;
}

/** Each value of a target's seeds in JSON, replaced by each of the hostile values. */
export function* hostileInputs({ seeds }: Target): Generator<HostileInput> {
  for (const seed of seeds) {
    const prefix = String(seed).startsWith('\u0000') ? '\u0000' : '';
    const end = lineEnd(String(seed));
    let root: unknown;
    try {
      root = JSON.parse(String(seed).slice(prefix.length));
    } catch {
      continue;
    }
    for (const [holder, key] of placesOf(root).places) {
      const before = holder[key];
      const inputWith = (value: unknown) => {
        holder[key] = value;
        const input = Buffer.from(`${prefix}${JSON.stringify(root)}${end}`);
        holder[key] = before;
        return input;
      };
      for (const [number, value] of VALUES.entries())
        yield { place: `${key} = VALUES[${number}]`, input: () => inputWith(value) };
      yield { place: `${key}, nested`, input: () => inputWith(nested(before, 2000)) };
    }
  }
}

/** Where the input is JSON: a value, a key or an entry of it. */
const inJson: Change = (input, random, _, words) => {
  let root: unknown;
  try {
    root = JSON.parse(input.toString());
  } catch {
    return inNumbers(input, random, [], words);
  }
  const { places, deepest } = placesOf(root);
  if (places.length === 0) return Buffer.from(JSON.stringify(random.of(VALUES)));
  const [holder, key] = random.of(places);
  switch (random.below(5)) {
    case 0:
      delete holder[key];
      break;
    case 1:
      if (Array.isArray(holder)) holder.push(holder[key as never]);
      else Object.defineProperty(holder, random.of([...KEYS, ...words]), { value: holder[key], enumerable: true });
      break;
    case 2: {
      const more = random.of([1, 3, 300, 2000]);
      if (deepest + more < DEEPEST) holder[key] = nested(holder[key], more);
      break;
    }
    case 3:
      holder[key] = typeof holder[key] === 'string' ? holder[key].repeat(random.of([2, 50, 1000])) : random.of(VALUES);
      break;
    default:
      holder[key] = random.of(random.below(2) === 0 ? VALUES : words.length > 0 ? words : VALUES);
  }
  return Buffer.from(written(root).slice(0, LONGEST) + lineEnd(input.toString()));
};

/** Readers of lines leave out a last line without its end. */
const lineEnd = (text: string) => (text.endsWith('\n') ? '\n' : '');

/** The deepest JSON that `JSON.stringify` writes wherever it is called from. */
const DEEPEST = 2500;

const nested = (value: unknown, depth: number): unknown => {
  let outer = value;
  for (let i = 0; i < depth; i++) outer = [outer];
  return outer;
};

/** Numbers beyond JSON's are written as such. */
const written = (root: unknown) => JSON.stringify(root) ?? 'null';
