import { user } from '../../core/message.js';
import type { RandomStream } from '../../core/random.js';
import type { Split, Trace } from '../../core/task.js';
import type { Search } from '../retrieval/retriever.js';
import { namesOf } from './encyclopedia-words.js';
import { type Chain, questionOf, sentenceOf, type World } from './encyclopedia-world.js';

export type EncyclopediaAgent = 'verifier' | 'searcher' | 'answerer';

/** Passages that a search brings. */
export const TOP_K = 2;
/** Searches in an episode, at most. */
export const MAX_TURNS = 4;

/** What an agent is shown: everything found so far, the question, whose turn it is. */
export function encyclopediaPrompt(request: {
  readonly agent: EncyclopediaAgent;
  readonly question: string;
  readonly evidence: readonly Search[];
}): string {
  const found = request.evidence.map(({ query, passages }) =>
    ['search', query, ';', ...passages.map(({ text }) => text)].join(' '),
  );
  return [...found, request.question, request.agent].join(' ');
}

/** How demonstrations are drawn. */
export interface DemonstrationSettings {
  /** Chance that a query is worded as the passages are, not as the question is. */
  readonly keyword: number;
  /** Weights of 1, 2, 3 relations. */
  readonly hops: readonly number[];
  /** Weights of the agents. */
  readonly agents: Readonly<Record<EncyclopediaAgent, number>>;
}

interface Act {
  readonly agent: EncyclopediaAgent;
  readonly evidence: readonly Search[];
  readonly response: string;
}

/**
 * One act of a demonstrator who can read but does not know how the passages are worded: a query in the question's words finds
 * some facts about the entity, not always the one that is needed, and is tried again. Verdicts are true, answers are right:
 * episodes that did not find the answer show no answerer.
 */
export function demonstration(
  random: RandomStream,
  settings: DemonstrationSettings,
  world: World,
  split: Split,
): Trace {
  const agents = ['verifier', 'searcher', 'answerer'] as const;
  const agent =
    agents[
      weighted(
        random,
        agents.map((agent) => settings.agents[agent]),
      )
    ] ?? 'answerer';
  for (;;) {
    const chain = world.draw(random, weighted(random, settings.hops) + 1);
    const acts = demonstrate(random, settings.keyword, world, chain).filter((act) => act.agent === agent);
    // Each act is as likely as every other of that agent, in whatever episode: an empty place means to draw again.
    const act = acts[random.integer(0, agent === 'answerer' ? 0 : MAX_TURNS - 1)];
    if (act === undefined) continue;
    const prompt = encyclopediaPrompt({ agent, question: questionOf(chain), evidence: act.evidence });
    const renamed = split === 'train' ? renaming(random) : (text: string) => text;
    return { agent, messages: [user(renamed(prompt))], response: `${renamed(act.response)} ` };
  }
}

function demonstrate(random: RandomStream, keyword: number, world: World, { relations, path }: Chain): Act[] {
  const acts: Act[] = [];
  let evidence: readonly Search[] = [];
  let found = 0;
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const relation = relations[found];
    acts.push({ agent: 'verifier', evidence, response: relation === undefined ? 'yes' : 'no' });
    if (relation === undefined) break;
    const query = `${path[found]} ${random.chance(keyword) ? relation.keyword : relation.noun}`;
    acts.push({ agent: 'searcher', evidence, response: query });
    evidence = [...evidence, { query, passages: world.search(query, TOP_K) }];
    found = hopsFound({ relations, path }, evidence);
  }
  if (found === relations.length) acts.push({ agent: 'answerer', evidence, response: path[found] as string });
  return acts;
}

/** How many of the chain's facts, from the first on, are in the evidence: a search may bring a later one by chance. */
function hopsFound({ relations, path }: Chain, evidence: readonly Search[]): number {
  const known = new Set(evidence.flatMap(({ passages }) => passages.map(({ text }) => text)));
  const missing = relations.findIndex(
    (relation, i) => !known.has(sentenceOf(relation, path[i] ?? '', path[i + 1] ?? '')),
  );
  return missing < 0 ? relations.length : missing;
}

/**
 * Gives every name of a trace another one, at random but never one of the test split. With the same names in trace after
 * trace a model would learn the facts by heart, instead of reading them.
 */
function renaming(random: RandomStream): (text: string) => string {
  const renamed = new Map<string, string>();
  const taken = new Set<string>();
  const names = namesOf.train as [string, ...string[]];
  const fresh = () => {
    for (;;) {
      const name = random.pick(names);
      if (!taken.has(name)) return name;
    }
  };
  return (text) =>
    text.replace(/[A-Z][a-z]+/g, (name) => {
      const other = renamed.get(name) ?? fresh();
      renamed.set(name, other);
      taken.add(other);
      return other;
    });
}

/** An index, drawn by weight. */
export function weighted(random: RandomStream, weights: readonly number[]): number {
  let rest = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => {
    rest -= weight;
    return rest < 0;
  });
  return index < 0 ? weights.findLastIndex((weight) => weight > 0) : index;
}
