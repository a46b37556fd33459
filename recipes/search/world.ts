import { ArgumentError, type TaskSource } from 'drmas';
import { checkedOptions, RandomStream, type Retriever } from 'drmas/tasks';
import { z } from 'zod';
import {
  demonstration,
  type EncyclopediaPrompt,
  encyclopediaPrompt,
  MAX_TURNS,
  TOP_K,
  weighted,
} from './demonstrations.js';
import { questionOf, type WorldName, worldOf } from './facts.js';
import { nameIn, queryIn, verdictIn } from './words.js';

const weight = z.number().min(0);
const hopWeights = z
  .tuple([weight, weight, weight])
  .refine((weights) => weights.some((each) => each > 0), 'expected at least one weight above 0');

export const encyclopediaSettings = z.strictObject({
  hops: hopWeights.default([1, 1, 1]).describe('The weights of questions with one, two and three relations.'),
  seed: z.int().min(0).default(0).describe('The seed of the encyclopedias and of the questions.'),
  demonstrations: z
    .strictObject({
      keyword: weight
        .max(1)
        .default(0.2)
        .describe('The chance that a query is worded as the passages are, not as the question is.'),
      hops: hopWeights
        .default([1, 1, 2])
        .describe('The weights of demonstrations of questions with one, two and three relations.'),
      agents: z
        .strictObject({
          verifier: weight.default(0.2).describe("The weight of the verifier's demonstrations."),
          searcher: weight.default(0.35).describe("The weight of the searcher's demonstrations."),
          answerer: weight.default(0.45).describe("The weight of the answerer's demonstrations."),
        })
        .refine((agents) => Object.values(agents).some((each) => each > 0), 'expected at least one weight above 0')
        .prefault({})
        .describe('How often each agent is demonstrated.'),
    })
    .prefault({})
    .describe("The content of the warm start's demonstrations."),
});

/** The options of `encyclopedia`. */
export type EncyclopediaOptions = z.input<typeof encyclopediaSettings>;

export interface EncyclopediaTask {
  readonly question: string;
  /** The answer, a name. */
  readonly answer: string;
  /** The name of the encyclopedia that holds the answer. */
  readonly corpus: string;
}

/**
 * Questions of one to three hops over generated encyclopedias, one sentence a fact: `what is the mayor of the home of
 * Badan ?` Passages and questions use different words for a relation (`Badan lives in Kodon .`), so a query in the
 * question's words finds sentences about the entity but not always the needed fact. The test split has a separate
 * encyclopedia, whose names occur in no task, passage or demonstration of the train split. `trace` demonstrates all
 * three agents of a search team.
 *
 * @throws RecipeError naming the setting that is wrong.
 *
 * @example
 * ```ts
 * import { encyclopedia } from 'drmas/recipes/search/world';
 *
 * const tasks = encyclopedia({ hops: [0, 1, 2] });
 * ```
 */
export function encyclopedia(options: EncyclopediaOptions = {}): TaskSource<EncyclopediaTask> {
  const settings = checkedOptions('encyclopedia', encyclopediaSettings, options);
  const { seed, hops, demonstrations } = settings;
  return {
    name: 'encyclopedia',
    settings,
    configure: (changed) => encyclopedia(changed as EncyclopediaOptions),
    load: async (split) => {
      const world = worldOf(split, seed);
      return {
        name: `encyclopedia ${split}`,
        size: Number.POSITIVE_INFINITY,
        at: (index) => {
          const random = new RandomStream('encyclopedia', seed, split, 'question', index);
          const chain = world.draw(random, weighted(random, hops) + 1);
          const question = questionOf(chain);
          return {
            id: question,
            data: { question, answer: chain.path.at(-1) as string, corpus: corpusName(split, seed) },
            metadata: { hops: chain.relations.length },
          };
        },
      };
    },
    trace: (random, split) =>
      demonstration(random, demonstrations, worldOf(split === 'test' ? 'test' : 'demonstrations', seed), split),
  };
}

const corpusName = (world: WorldName, seed: number) => `encyclopedia ${world} ${seed}`;

/** Searches the encyclopedia that a task names. @throws ArgumentError when the task is not of this family. */
function retrieverOf({ corpus }: { readonly corpus?: string | undefined }): Retriever {
  const [, name, seed] = /^encyclopedia (train|test) (\d+)$/.exec(corpus ?? '') ?? [];
  if (name === undefined) throw new ArgumentError(`expected a task of an encyclopedia, got the corpus '${corpus}'`);
  const world = worldOf(name as 'train' | 'test', Number(seed));
  return {
    async search(query, topk, signal) {
      signal.throwIfAborted();
      return world.search(query, topk);
    },
  };
}

/** The type of `encyclopediaSearch`: a part of the options of `searchTeam`. */
export interface EncyclopediaSearch {
  readonly maxTurns: number;
  readonly topk: number;
  readonly retriever: (task: { readonly corpus?: string | undefined }) => Retriever;
  readonly prompt: (request: EncyclopediaPrompt) => string;
  readonly verifier: { readonly system: string; readonly parse: (text: string) => 'yes' | 'no' | undefined };
  readonly searcher: { readonly system: string; readonly parse: (text: string) => string | undefined };
  readonly answerer: { readonly system: string; readonly parse: (text: string) => string | undefined };
}

/** The options of `searchTeam` for this family: its retriever, its agents' prompts and their parsers. */
export const encyclopediaSearch: EncyclopediaSearch = {
  maxTurns: MAX_TURNS,
  topk: TOP_K,
  retriever: retrieverOf,
  prompt: encyclopediaPrompt,
  verifier: { system: '', parse: verdictIn },
  searcher: { system: '', parse: queryIn },
  answerer: { system: '', parse: nameIn },
};
