/** Byte-pair encoding (Sennrich et al. 2016): the characters of a piece, merged by the rank of each pair. */
import type { Work } from '../work.js';
import { bytesOf, type Settings, textSetting, type Vocabulary, vocabularyIds } from './vocabulary-parts.js';

interface Merge {
  readonly rank: number;
  readonly id: number;
}

/** A token of a piece, between its neighbours; -1 is none. */
interface Symbol {
  id: number;
  before: number;
  after: number;
  isGone: boolean;
}

/** Ids are below 2^22, so two of them fit into a whole number. */
const pairOf = (left: number, right: number) => left * 2 ** 22 + right;

/** Pieces whose tokens are remembered, and the length up to which one is. */
const [MOST_KNOWN, LONGEST_KNOWN] = [10_000, 64];

/** @param settings The `model` of a tokenizer.json. @throws Error naming what cannot be used */
export function bytePairs(settings: Settings): Vocabulary {
  const ids = vocabularyIds(settings.vocab);
  const [prefix, suffix] = [
    textSetting(settings, 'continuing_subword_prefix'),
    textSetting(settings, 'end_of_word_suffix'),
  ];
  const { fuse_unk: fuses, byte_fallback: falls, ignore_merges: ignores } = settings;
  const unknownText = textSetting(settings, 'unk_token');
  const unknown = ids.get(unknownText);
  if (unknownText !== '' && unknown === undefined) throw new Error(`its unk_token ${unknownText} is not in its vocab`);
  const merges = mergesOf(settings.merges, ids, prefix.length);

  /** The ids of the characters of a piece. */
  function characters(piece: string): number[] {
    const found: number[] = [];
    let isUnknown = false;
    const flush = () => {
      if (isUnknown && unknown !== undefined) found.push(unknown);
      isUnknown = false;
    };
    const all = Array.from(piece);
    for (const [i, character] of all.entries()) {
      const text = (i === 0 ? '' : prefix) + character + (i === all.length - 1 ? suffix : '');
      const id = ids.get(text);
      if (id !== undefined) {
        flush();
        found.push(id);
        continue;
      }
      const bytes = falls === true ? bytesOf(text, ids) : undefined;
      // Like the original, which puts the bytes before an unknown character that it has not written yet.
      if (bytes !== undefined) found.push(...bytes);
      else if (unknown !== undefined) {
        if (fuses !== true) flush();
        isUnknown = true;
      }
    }
    flush();
    return found;
  }

  const known = new Map<string, readonly number[]>();
  return {
    ids,
    split(piece, work) {
      const found = known.get(piece);
      if (found !== undefined) return found;
      const whole = ignores === true ? ids.get(piece) : undefined;
      const split = whole === undefined ? merged(characters(piece), merges, work) : [whole];
      if (piece.length <= LONGEST_KNOWN) {
        if (known.size >= MOST_KNOWN) known.clear();
        known.set(piece, split);
      }
      return split;
    },
  };
}

/** @param skipped The characters of the prefix that the right side of a merge loses */
function mergesOf(value: unknown, ids: ReadonlyMap<string, number>, skipped: number): ReadonlyMap<number, Merge> {
  if (!Array.isArray(value)) throw new Error('its model has no merges');
  const merges = new Map<number, Merge>();
  for (const [rank, each] of value.entries()) {
    const [left, right, ...more] = typeof each === 'string' ? each.split(' ') : Array.isArray(each) ? each : [];
    if (typeof left !== 'string' || typeof right !== 'string' || more.length > 0)
      throw new Error(`its merge ${JSON.stringify(each)} is no pair`);
    const [first, second, both] = [ids.get(left), ids.get(right), ids.get(left + right.slice(skipped))];
    if (first === undefined || second === undefined || both === undefined)
      throw new Error(`its merge ${JSON.stringify(each)} has a part that is not in its vocab`);
    merges.set(pairOf(first, second), { rank, id: both });
  }
  return merges;
}

function merged(ids: readonly number[], merges: ReadonlyMap<number, Merge>, work: Work): number[] {
  work.spend(ids.length);
  const last = ids.length - 1;
  const symbols = ids.map((id, i): Symbol => ({ id, before: i - 1, after: i === last ? -1 : i + 1, isGone: false }));
  const mergeAt = (at: number): Merge | undefined => {
    const left = symbols[at];
    const right = left === undefined ? undefined : symbols[left.after];
    return left === undefined || right === undefined ? undefined : merges.get(pairOf(left.id, right.id));
  };
  const queue = new MergeQueue();
  const look = (at: number) => {
    const merge = mergeAt(at);
    if (merge !== undefined) queue.push({ ...merge, at });
  };
  for (let at = 0; at < last; at++) look(at);
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    work.spend(1);
    const left = symbols[next.at];
    if (left === undefined || left.isGone || mergeAt(next.at)?.id !== next.id) continue;
    const right = symbols[left.after];
    if (right === undefined) continue;
    right.isGone = true;
    left.id = next.id;
    left.after = right.after;
    const behind = symbols[right.after];
    if (behind !== undefined) behind.before = next.at;
    if (left.before >= 0) look(left.before);
    look(next.at);
  }
  return symbols.filter(({ isGone }) => !isGone).map(({ id }) => id);
}

interface QueuedMerge extends Merge {
  readonly at: number;
}

const isFirst = (a: QueuedMerge, b: QueuedMerge) => a.rank < b.rank || (a.rank === b.rank && a.at < b.at);

/** A heap: the merge of the lowest rank comes first, of equal ones the leftmost. */
class MergeQueue {
  readonly #heap: QueuedMerge[] = [];

  push(merge: QueuedMerge): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isFirst(merge, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = merge;
  }

  pop(): QueuedMerge | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const moved = heap.pop();
    if (moved === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isFirst(right, left)) child++;
      const least = heap[child];
      if (least === undefined || !isFirst(least, moved)) break;
      heap[at] = least;
      at = child;
    }
    heap[at] = moved;
    return first;
  }
}
