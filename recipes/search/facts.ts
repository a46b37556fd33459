import { bm25Index, type Passage, permutation, RandomStream } from 'drmas/tasks';
import { type Kind, namesOf, type Relation, relations } from './words.js';

/**
 * The kinds of worlds. Each has separate facts and passages; `demonstrations`, for the warm start, shares names with
 * `train`.
 */
export type WorldName = 'train' | 'test' | 'demonstrations';

/** The number of entities of each kind in an encyclopedia: 300 in all, with 1380 facts. */
const population: readonly (readonly [Kind, number])[] = [
  ['person', 160],
  ['town', 40],
  ['region', 10],
  ['guild', 30],
  ['book', 60],
];

/** A question with the chain of relations to its answer. */
export interface Chain {
  /** The relations in the order of their look-ups; the question names them in the opposite order. */
  readonly relations: readonly Relation[];
  /** The entities from the one that the question names to the answer, one more than relations. */
  readonly path: readonly string[];
}

export interface World {
  /** The passages, one sentence a fact, in no particular order. */
  readonly passages: readonly Passage[];
  search(query: string, topk: number): readonly Passage[];
  /** Draws a chain of `hops` relations that visits no entity twice. */
  draw(random: RandomStream, hops: number): Chain;
}

/** The question of a chain, such as `what is the mayor of the home of Badan ?` */
export function questionOf({ relations, path }: Chain): string {
  const nouns = relations.map(({ noun }) => `the ${noun} of`).reverse();
  return `what is ${nouns.join(' ')} ${path[0]} ?`;
}

/** The sentence that states the fact. */
export const sentenceOf = ({ phrase }: Relation, from: string, to: string): string => `${from} ${phrase} ${to} .`;

const worlds = new Map<string, World>();

/** The world of that name and seed, always the same one. */
export function worldOf(name: WorldName, seed: number): World {
  const key = `${name} ${seed}`;
  const world = worlds.get(key) ?? createWorld(name, seed);
  worlds.set(key, world);
  return world;
}

function createWorld(name: WorldName, seed: number): World {
  const random = new RandomStream('encyclopedia', seed, name);
  const names = namesOf[name === 'test' ? 'test' : 'train'];
  const order = permutation(names.length, 'encyclopedia', seed, name, 'names');
  let next = 0;
  const entities = Object.fromEntries(
    population.map(([kind, count]) => [kind, Array.from({ length: count }, () => names[order[next++] ?? 0])]),
  ) as Record<Kind, [string, ...string[]]>;

  const facts = new Map<string, string>();
  const sentences: Passage[] = [];
  for (const relation of relations) {
    for (const from of entities[relation.from]) {
      let to = random.pick(entities[relation.to]);
      while (to === from) to = random.pick(entities[relation.to]);
      facts.set(`${relation.noun} ${from}`, to);
      sentences.push({ title: from, text: sentenceOf(relation, from, to) });
    }
  }
  const shuffled = permutation(sentences.length, 'encyclopedia', seed, name, 'passages');
  const passages = [...shuffled].map((index) => sentences[index] as Passage);

  const draw = (random: RandomStream, hops: number): Chain => {
    for (;;) {
      const first = random.pick(relations);
      const chain: Relation[] = [first];
      const path = [random.pick(entities[first.from])];
      for (let relation: Relation = first; ; ) {
        path.push(facts.get(`${relation.noun} ${path.at(-1)}`) as string);
        if (chain.length === hops) break;
        relation = random.pick(relationsFrom[relation.to]);
        chain.push(relation);
      }
      if (new Set(path).size === path.length) return { relations: chain, path };
    }
  };
  return { passages, search: bm25Index(passages), draw };
}

const relationsFrom = Object.fromEntries(
  population.map(([kind]) => [kind, relations.filter(({ from }) => from === kind)]),
) as unknown as Record<Kind, [Relation, ...Relation[]]>;
