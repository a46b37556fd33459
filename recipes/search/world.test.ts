import { symbolsTokenizer } from '@drmas/engine/internal/model/tokenizers/symbols';
import { RandomStream } from '@drmas/engine/math';
import { assistant, type Split, type Trace } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scriptedContext } from '../../src/runs/testing/play-scripted.js';
import { scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import { playEpisode } from '../../src/teams/rollout/play-episode.js';
import { searchTeam } from '../../src/teams/team/search.js';
import type { Team } from '../../src/teams/team/team.js';
import { type Chain, questionOf, sentenceOf, type World, worldOf } from './facts.js';
import { encyclopediaSymbols, nameIn, queryIn, relations, verdictIn } from './words.js';
import { type EncyclopediaTask, encyclopedia, encyclopediaSearch } from './world.js';

const tokenizer = symbolsTokenizer({
  type: 'symbols',
  symbols: encyclopediaSymbols,
  stop: '<end>',
  endOfUser: ': ',
  endOfAssistant: '<end>',
});
const namesIn = (text: string) => text.match(/[A-Z][a-z]+/g) ?? [];
const textOf = ({ messages, response }: Trace) => [...messages.map(({ content }) => content), response].join(' ');
const traces = (split: Split, count: number, options = {}): Trace[] => {
  const random = new RandomStream('test', split);
  const source = encyclopedia(options);
  return Array.from({ length: count }, () => source.trace?.(random, split)).filter((trace) => trace !== undefined);
};
const share = <T>(items: readonly T[], holds: (item: T) => boolean) => items.filter(holds).length / items.length;

/** Every fact of a world, read from its passages. */
const factsOf = (world: World) => new Set(world.passages.map(({ text }) => text));

/** The answer, found by reading the passages from the innermost relation outwards. */
function answerByReading(question: string, facts: ReadonlySet<string>): string | undefined {
  const nouns = [...question.matchAll(/the (\w+) of/g)].map(([, noun]) => noun).reverse();
  let entity = namesIn(question)[0];
  for (const noun of nouns) {
    const relation = relations.find((each) => each.noun === noun);
    const start = `${entity} ${relation?.phrase} `;
    entity = [...facts].find((fact) => fact.startsWith(start))?.slice(start.length, -2);
  }
  return entity;
}

describe('an encyclopedia', () => {
  it('has one passage for each of its facts, in words that the questions do not use', () => {
    const { passages } = worldOf('train', 0);
    expect(passages.length).toBe(1380);
    expect(new Set(passages.map(({ text }) => text)).size).toBe(1380);
    expect(new Set(relations.map(({ keyword }) => keyword)).size).toBe(relations.length);
    const nouns = relations.map(({ noun }): string => noun);
    for (const { phrase, keyword } of relations) {
      expect(phrase.split(' ')).toContain(keyword);
      expect(phrase.split(' ').filter((word) => nouns.includes(word))).toEqual([]);
      expect(relations.filter((other) => other.phrase.split(' ').includes(keyword)).length).toBe(1);
    }
  });

  it('asks questions with one answer, which its passages give', async () => {
    const [train, test] = [factsOf(worldOf('train', 0)), factsOf(worldOf('test', 0))];
    for (const [split, facts] of [
      ['train', train],
      ['test', test],
    ] as const) {
      const set = await encyclopedia().load(split);
      fc.assert(
        fc.property(fc.nat(), (index) => {
          const { id, data, metadata } = set.at(index);
          expect(id).toBe(data.question);
          expect(data.answer).toBe(answerByReading(data.question, facts));
          expect(metadata).toEqual({ hops: data.question.split(' of ').length - 1 });
        }),
        { numRuns: 60 },
      );
    }
  });

  it('is the same whenever it is asked for, another one for another seed, and asks as many hops as told', async () => {
    const ids = async (options: object) => {
      const set = await encyclopedia(options).load('train');
      return Array.from({ length: 200 }, (_, i) => set.at(i));
    };
    const first = await ids({});
    expect(await ids({ seed: 0 })).toEqual(first);
    expect(share(await ids({ seed: 1 }), ({ id }) => first.some((task) => task.id === id))).toBeLessThan(0.05);
    for (const hops of [1, 2, 3]) expect(share(first, ({ metadata }) => metadata?.hops === hops)).toBeCloseTo(1 / 3, 0);
    expect(new Set((await ids({ hops: [0, 1, 2] })).map(({ metadata }) => metadata?.hops))).toEqual(new Set([2, 3]));
  });

  it('finds every fact by its keyword, and only some by the word of the question', () => {
    const world = worldOf('test', 0);
    const random = new RandomStream('queries');
    const chains = Array.from({ length: 300 }, () => world.draw(random, 1));
    const hit = (wording: 'keyword' | 'noun') =>
      share(chains, ({ relations: [relation], path: [from = '', to = ''] }) => {
        if (relation === undefined) return false;
        const fact = sentenceOf(relation, from, to);
        return world.search(`${from} ${relation[wording]}`, 2).some(({ text }) => text === fact);
      });
    expect(hit('keyword')).toBe(1);
    expect(hit('noun')).toBeGreaterThan(0.3);
    expect(hit('noun')).toBeLessThan(0.8);
  });
});

describe('the splits', () => {
  it('never share a name: in tasks, passages and demonstrations, whatever the settings', async () => {
    const settings = fc.record({ seed: fc.nat({ max: 20 }), hops: fc.constantFrom([1, 1, 1], [0, 1, 2]) });
    await fc.assert(
      fc.asyncProperty(settings, settings, fc.nat(), async (one, other, index) => {
        const train = await encyclopedia(one as object).load('train');
        const test = await encyclopedia(other as object).load('test');
        const at = (set: typeof train, i: number) => Object.values(set.at(index + i).data).join(' ');
        const seen = [
          ...Array.from({ length: 20 }, (_, i) => at(train, i)),
          ...worldOf('train', one.seed).passages.map(({ text }) => text),
          ...worldOf('demonstrations', one.seed).passages.map(({ text }) => text),
          ...traces('train', 20, one).map(textOf),
        ].flatMap(namesIn);
        const held = [
          ...Array.from({ length: 20 }, (_, i) => at(test, i)),
          ...worldOf('test', other.seed).passages.map(({ text }) => text),
          ...traces('test', 20, other).map(textOf),
        ].flatMap(namesIn);
        const trainNames = new Set(seen);
        expect(held.filter((name) => trainNames.has(name))).toEqual([]);
        expect(held.length).toBeGreaterThan(2000);
      }),
      { numRuns: 8 },
    );
  });

  it('search only what is theirs', async () => {
    const { retriever } = encyclopediaSearch;
    const { signal } = new AbortController();
    const [train, test] = await Promise.all([encyclopedia().load('train'), encyclopedia().load('test')]);
    const names = new Set(worldOf('test', 0).passages.flatMap(({ text }) => namesIn(text)));
    for (const query of ['raised', 'lives', ...[...names].slice(0, 20)]) {
      const passages = await retriever(train.at(0).data).search(query, 50, signal);
      expect(passages.flatMap(({ text }) => namesIn(text)).filter((name) => names.has(name))).toEqual([]);
      expect((await retriever(test.at(0).data).search(query, 50, signal)).length).toBeGreaterThan(0);
    }
    expect(() => retriever({})).toThrow('expected a task of an encyclopedia');
    await expect(retriever(train.at(0).data).search('x', 1, AbortSignal.abort(new Error('over')))).rejects.toThrow(
      'over',
    );
  });
});

describe('demonstrations', () => {
  const shown = traces('train', 1500);
  const of = (agent: string) => shown.filter((trace) => trace.agent === agent);
  const promptOf = ({ messages }: Trace) => messages[0]?.content ?? '';

  it('give the right answer, which has been found, and true verdicts', () => {
    for (const trace of [...of('answerer'), ...of('verifier')]) {
      const [, evidence = '', question = ''] = /^(.*?)(what is .*)$/.exec(promptOf(trace)) ?? [];
      const facts = new Set(evidence.match(/[A-Z]\w+ [a-z][a-z ]+ [A-Z]\w+ \./g) ?? []);
      const answer = answerByReading(question, facts);
      if (trace.agent === 'answerer') expect(trace.response).toBe(`${answer} `);
      else expect(trace.response).toBe(answer === undefined ? 'no ' : 'yes ');
    }
  });

  it('show queries about the next fact, most of them in the words of the question', () => {
    const words = of('searcher').map(({ response }) => response.trim().split(' ')[1] ?? '');
    expect(share(words, (word) => relations.some(({ keyword }) => keyword === word))).toBeCloseTo(0.2, 1);
    for (const trace of of('searcher')) {
      expect(queryIn(trace.response)).toBe(trace.response.trim());
      expect(namesIn(promptOf(trace))).toContain(namesIn(trace.response)[0]);
    }
  });

  it('come in the shares that are set, with names that change from trace to trace', () => {
    expect(of('verifier').length / shown.length).toBeCloseTo(0.2, 1);
    expect(of('searcher').length / shown.length).toBeCloseTo(0.35, 1);
    const question = (trace: Trace) => /what is .*/.exec(promptOf(trace))?.[0];
    expect(new Set(shown.map(question)).size).toBeGreaterThan(0.95 * shown.length);
    const certain = { demonstrations: { keyword: 1, agents: { verifier: 0, searcher: 1, answerer: 0 } } };
    const queries = traces('train', 100, certain);
    expect(share(queries, ({ agent, response }) => agent === 'searcher' && !/ (?:mother|home) /.test(response))).toBe(
      1,
    );
  });

  it('are what a team of demonstrators would be asked and say', async () => {
    // A team that follows the demonstrations, in the passages' words, solves all tasks. Its prompts equal the prompts
    // of the traces.
    const team = searchTeam(encyclopediaSearch) as Team;
    const world = worldOf('test', 0);
    const set = await encyclopedia().load('test');
    for (let index = 0; index < 20; index++) {
      const task = set.at(index);
      const chain = chainOf(task.data, factsOf(world));
      const sampler = scriptedSampler(({ prompt, policy }) => {
        const hops = prompt.split(';').length - 1;
        if (policy === 'verifier') return hops === chain.relations.length ? 'yes ' : 'no ';
        if (policy === 'answerer') return `${chain.path.at(-1)} `;
        return `${chain.path[hops]} ${chain.relations[hops]?.keyword} `;
      }, tokenizer);
      const context = scriptedContext(team, sampler);
      const episode = await playEpisode(context, { team, task, sample: 0, phase: 'training', step: 1 });
      expect(episode.score.team).toBe(1);
      expect(episode.turns.length).toBe(2 * chain.relations.length + 2);
      for (const { messages, penalty } of episode.turns) {
        expect(penalty).toBe(0);
        expect(messages.length).toBe(1); // no system prompts: the traces have none either
      }
      expect(episode.turns[0]?.messages[0]?.content).toBe(`${questionOf(chain)} verifier`);
      expect(episode.turns[2]?.messages[0]?.content).toMatch(
        /^search \w+ \w+ ; (?:\w[\w ]+ \. ){1,2}what is .* \? verifier$/,
      );
    }
  });

  it("are written in the family's symbols, which cut a text in one way, and stay short", () => {
    for (const { messages, response } of shown.slice(0, 300)) {
      const prompt = tokenizer.chat(messages);
      expect(tokenizer.decode(prompt)).toBe(`${messages[0]?.content}: `);
      expect(tokenizer.decode(tokenizer.chat([assistant(response)]))).toBe(`${response}<end>`);
      expect(prompt.length + 8).toBeLessThanOrEqual(160);
    }
    const symbols = encyclopediaSymbols.map((_, id) => id).filter((id) => id > 0);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...symbols), { maxLength: 12 }), (tokens) => {
        expect(tokenizer.encode(tokenizer.decode(tokens))).toEqual(tokens);
      }),
    );
  });
});

function chainOf({ question }: EncyclopediaTask, facts: ReadonlySet<string>): Chain {
  const nouns = [...question.matchAll(/the (\w+) of/g)].map(([, noun]) => noun).reverse();
  const chain = nouns.map((noun) => relations.find((each) => each.noun === noun)).filter((each) => each !== undefined);
  const start = namesIn(question)[0] ?? '';
  const path = [start];
  for (const { noun } of chain) path.push(answerByReading(`the ${noun} of ${path.at(-1)}`, facts) ?? '');
  return { relations: chain, path };
}

describe('what the agents may say', () => {
  it('is a verdict, a query, a name, and nothing else', () => {
    expect([' yes ', 'no', 'yes yes', '', 'yes Badan', 'Yes'].map(verdictIn)).toEqual([
      'yes',
      'no',
      ...Array(4).fill(undefined),
    ]);
    expect(['Badan ', 'Badan lives', 'Ba', 'badan', 'Badankodon', ''].map(nameIn)).toEqual([
      'Badan',
      ...Array(5).fill(undefined),
    ]);
    const good = ['Badan lives ', 'home', 'Badan Badan was by'];
    expect(good.map(queryIn)).toEqual(good.map((query) => query.trim()));
    const bad = ['', 'Badan ?', 'search Badan', 'Ba lives', 'Badan yes', 'Badan lives in with by', 'Badan  lives'];
    for (const query of bad) expect(queryIn(query), query).toBeUndefined();
  });
});

describe('the settings', () => {
  it('have defaults, are shown, and can be changed', async () => {
    const source = encyclopedia({ hops: [0, 1, 2] });
    expect(source.settings).toMatchObject({
      hops: [0, 1, 2],
      seed: 0,
      demonstrations: { keyword: 0.2, hops: [1, 1, 2] },
    });
    const changed = source.configure?.({ ...source.settings, seed: 3 });
    expect(changed?.settings).toEqual({ ...source.settings, seed: 3 });
    expect((await changed?.load('test'))?.at(0).data).toMatchObject({ corpus: 'encyclopedia test 3' });
  });

  it.each([
    [{ hops: [1, 1] }, 'encyclopedia: hops: '],
    [{ hops: [0, 0, 0] }, 'encyclopedia: hops: expected at least one weight above 0'],
    [{ hops: [1, -1, 1] }, 'encyclopedia: hops.1: '],
    [{ demonstrations: { keyword: 2 } }, 'encyclopedia: demonstrations.keyword: '],
    [
      { demonstrations: { agents: { verifier: 0, searcher: 0, answerer: 0 } } },
      'demonstrations.agents: expected at least',
    ],
    [{ names: 3 }, 'names'],
  ])('refuse %j', (options, message) => {
    expect(() => encyclopedia(options as never)).toThrow(message);
  });
});
