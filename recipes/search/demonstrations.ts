import { type Trace, user } from 'drmas';
import type { RandomStream, Search, Split } from 'drmas/tasks';
import { type Chain, questionOf, sentenceOf, type World } from './facts.js';
import { namesOf } from './words.js';

export type EncyclopediaAgent = 'verifier' | 'searcher' | 'answerer';

/** The content of an agent's prompt. */
export interface EncyclopediaPrompt {
  readonly agent: EncyclopediaAgent;
  readonly question: string;
  /** The searches so far, in order. */
  readonly evidence: readonly Search[];
}

/** The most passages of a search. */
export const TOP_K = 2;
/** The most searches in an episode. */
export const MAX_TURNS = 4;

/** The prompt of an agent: the evidence so far, the question, and the agent's name. */
export function encyclopediaPrompt(request: EncyclopediaPrompt): string {
  const searches = request.evidence.map(({ query, passages }) =>
    ['search', query, ';', ...passages.map(({ text }) => text)].join(' '),
  );
  return [...searches, request.question, request.agent].join(' ');
}

/** The distribution of demonstrations. */
export interface DemonstrationSettings {
  /** The probability that a query uses the passages' word for a relation instead of the question's. */
  readonly keyword: number;
  /** The weights of questions with 1, 2 and 3 relations. */
  readonly hops: readonly number[];
  /** The weights of the agents. */
  readonly agents: Readonly<Record<EncyclopediaAgent, number>>;
}

interface Act {
  readonly agent: EncyclopediaAgent;
  readonly evidence: readonly Search[];
  readonly response: string;
}

/**
 * Draws one act of a demonstrator that reads but does not know the passages' wording: a query in the question's words
 * finds some facts about the entity, not always the needed one, and is repeated. All verdicts are true and all answers
 * right: episodes that did not find the answer demonstrate no answerer.
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
    // Every act of an agent is equally likely, whatever its episode: where an episode is too short, another is drawn.
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
  let hops = 0;
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const relation = relations[hops];
    acts.push({ agent: 'verifier', evidence, response: relation === undefined ? 'yes' : 'no' });
    if (relation === undefined) break;
    const query = `${path[hops]} ${random.chance(keyword) ? relation.keyword : relation.noun}`;
    acts.push({ agent: 'searcher', evidence, response: query });
    evidence = [...evidence, { query, passages: world.search(query, TOP_K) }];
    hops = hopsFound({ relations, path }, evidence);
  }
  if (hops === relations.length) acts.push({ agent: 'answerer', evidence, response: path[hops] as string });
  return acts;
}

/**
 * The number of the chain's facts in the evidence, counted from the first without a gap, since a search may find a
 * later one.
 */
function hopsFound({ relations, path }: Chain, evidence: readonly Search[]): number {
  const sentences = new Set(evidence.flatMap(({ passages }) => passages.map(({ text }) => text)));
  const missing = relations.findIndex(
    (relation, i) => !sentences.has(sentenceOf(relation, path[i] ?? '', path[i + 1] ?? '')),
  );
  return missing < 0 ? relations.length : missing;
}

/**
 * A function that replaces every name of a trace by a random one of the train split. With the same names in all traces
 * a model would memorise the facts instead of reading them.
 */
function renaming(random: RandomStream): (text: string) => string {
  const renamed = new Map<string, string>();
  const used = new Set<string>();
  const names = namesOf.train as [string, ...string[]];
  const fresh = () => {
    for (;;) {
      const name = random.pick(names);
      if (!used.has(name)) return name;
    }
  };
  return (text) =>
    text.replace(/[A-Z][a-z]+/g, (name) => {
      const other = renamed.get(name) ?? fresh();
      renamed.set(name, other);
      used.add(other);
      return other;
    });
}

/** Draws an index by weight. */
export function weighted(random: RandomStream, weights: readonly number[]): number {
  let rest = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => {
    rest -= weight;
    return rest < 0;
  });
  return index < 0 ? weights.findLastIndex((weight) => weight > 0) : index;
}
