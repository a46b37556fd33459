/** The unigram model of SentencePiece (Kudo 2018): the tokens of a piece whose scores have the largest sum. */
import type { Work } from '../work.js';
import { bytesOf, type Settings, type Vocabulary } from './vocabulary-parts.js';

/** A tree of the tokens by their UTF-16 units. */
interface Branch {
  readonly next: Map<number, Branch>;
  id?: number;
}

/** How a piece is best split up to a place. */
interface Path {
  readonly score: number;
  readonly start: number;
  readonly id: number;
}

/** The cost of a character that is no token, below the lowest score. */
const UNKNOWN_PENALTY = 10;

/** @param settings The `model` of a tokenizer.json. @throws Error naming what cannot be used */
export function unigram(settings: Settings): Vocabulary {
  const entries = scored(settings.vocab);
  const { unk_id: given, byte_fallback: falls } = settings;
  const unknown = typeof given === 'number' ? given : undefined;
  if (unknown !== undefined && entries[unknown] === undefined)
    throw new Error(`its unk_id ${unknown} is not in its vocab`);
  const ids = new Map(entries.map(([text], id) => [text, id]));
  const root: Branch = { next: new Map() };
  for (const [text, id] of ids) branchOf(root, text).id = id;
  const unknownScore = entries.reduce((least, [, score]) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;

  /** The best path to each place of a piece. Undefined if a character is no token, and there is none for unknown. */
  function paths(piece: string, work: Work): readonly (Path | undefined)[] | undefined {
    const best: (Path | undefined)[] = [];
    const offer = (end: number, path: Path) => {
      const known = best[end];
      if (known === undefined || path.score > known.score) best[end] = path;
    };
    let start = 0;
    for (const character of piece) {
      const before = best[start]?.score ?? 0;
      let isToken = false;
      let branch: Branch | undefined = root;
      for (let end = start; branch !== undefined; ) {
        work.spend(1);
        branch = end < piece.length ? branch.next.get(piece.charCodeAt(end)) : undefined;
        end++;
        if (branch?.id === undefined) continue;
        offer(end, { score: (entries[branch.id]?.[1] ?? 0) + before, start, id: branch.id });
        isToken ||= end === start + character.length;
      }
      if (!isToken) {
        if (unknown === undefined) return undefined;
        offer(start + character.length, { score: unknownScore + before, start, id: unknown });
      }
      start += character.length;
    }
    return best;
  }

  return {
    ids,
    texts: entries.map(([text]) => text),
    split(piece, work) {
      work.spend(piece.length);
      const best = paths(piece, work);
      if (best === undefined) return [undefined];
      const parts: string[] = [];
      let isUnknown = false;
      for (let end = piece.length; end > 0; ) {
        const { start, id } = best[end] ?? { start: end - 1, id: -1 };
        const part = piece.slice(start, end);
        const wasUnknown = isUnknown;
        isUnknown = id === (unknown ?? -1);
        // Unknown characters beside each other are one token.
        if (isUnknown && wasUnknown) parts.push(part + (parts.pop() ?? ''));
        else parts.push(part);
        end = start;
      }
      return parts.toReversed().flatMap((part): readonly (number | undefined)[] => {
        const id = ids.get(part);
        if (id !== undefined) return [id];
        return (falls === true ? bytesOf(part, ids) : undefined) ?? [unknown];
      });
    },
  };
}

function branchOf(root: Branch, text: string): Branch {
  let branch = root;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const next: Branch = branch.next.get(unit) ?? { next: new Map() };
    branch.next.set(unit, next);
    branch = next;
  }
  return branch;
}

function scored(vocab: unknown): readonly (readonly [text: string, score: number])[] {
  if (!Array.isArray(vocab)) throw new Error('the vocab of a Unigram must be a list');
  return vocab.map((entry: unknown) => {
    const [text, score]: readonly unknown[] = Array.isArray(entry) ? entry : [];
    if (typeof text !== 'string' || typeof score !== 'number')
      throw new Error('each entry of the vocab of a Unigram must have a text and a score');
    return [text, score];
  });
}
