// @module-tag verify
/**
 * The reward of a shipped recipe cannot be had without the work that its page claims. One agent at a time is replaced
 * by a cheat, beside agents who do their work: by a constant, by answers of its demonstrations at random, by a copy of
 * what it reads. The cheats come from the recipe's own demonstrations, so a new recipe needs its honest agents only.
 */
import { readFile } from 'node:fs/promises';
import { RandomStream } from '@drmas/engine/math';
import type { Task, TaskSource } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { fixOf } from '../../recipes/desk/world.js';
import { operations } from '../../recipes/repair/commands.js';
import { readRequest } from '../../recipes/repair/sandbox.js';
import { relations } from '../../recipes/search/words.js';
import { itemList } from '../../recipes/shop/world.js';
import { loadRecipe, shippedRecipes } from '../../src/method/recipe/load-recipe.js';
import { scriptedContext } from '../../src/runs/testing/play-scripted.js';
import { scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import type { Team } from '../../src/teams/index.js';
import { inProcessExecutor } from '../../src/teams/rollout.js';

/** The messages that an agent reads, and the randomness of its answers. */
interface Read {
  /** The texts of the conversation without the system prompt, from the first to the last. */
  readonly texts: readonly [string, ...string[]];
  readonly random: RandomStream;
}
type Speaker = (read: Read) => string;
type Speakers = Readonly<Record<string, Speaker>>;

interface Claim {
  /** The team's score on held-out tasks after training, the mean of seeds, and the command that gave it. */
  readonly trained: number;
  readonly measured: string;
  /** The agents that do their work. */
  readonly honest: (tasks: readonly Task[]) => Speakers;
  /**
   * Agents whose work shows only beside a teammate that errs, or only in their own reward. Their cheats must stay below
   * their honest work in the same company.
   */
  readonly beside?: Readonly<Record<string, { readonly mates: Speakers; readonly by?: 'own' }>>;
  /** Agents whose work the reward does not need, with the sentence of docs/recipes.md that says so. */
  readonly notNeeded?: Readonly<Record<string, string>>;
  /** Agents that cheat together, since one of them is called too rarely to decide the team's score. */
  readonly together?: readonly string[];
  /** Cheats that do an agent's work, by its name: a ticket contains the line that triage names. */
  readonly areWork?: Readonly<Record<string, readonly string[]>>;
  /** Cheats that the demonstrations do not give, such as a look-up of something else. */
  readonly cheats?: Readonly<Record<string, Readonly<Record<string, Speaker>>>>;
}

const calculated = (question: string): number => {
  const [start = '', ...steps] = question.split(/(?=[a-h][-+*]\d)/);
  return steps.reduce((total, step) => {
    const operand = Number(step.slice(2));
    if (step[1] === '*') return total * operand;
    return step[1] === '+' ? total + operand : total - operand;
  }, Number(start));
};
const inBox = (value: number) => `\\boxed{${String(value).padStart(2, '0')}}`;
const solver: Speaker = ({ texts: [question] }) => inBox(calculated(question));
const erringSolver: Speaker = ({ texts: [question], random }) =>
  inBox(random.chance(0.5) ? calculated(question) : (calculated(question) + 1) % 30);

const desk = ({ texts: [ticket] }: Read) => {
  const [, line = '', symptom = ''] = ticket.split(' ');
  return { line, symptom };
};

/** The known part of a question's chain: its facts that the evidence states, from the first on. */
function chainOf({ texts: [prompt] }: Read) {
  const [, nouns = '', first = ''] = /what is ((?:the \w+ of )+)([A-Z]\w+) \?/.exec(prompt) ?? [];
  const asked = [...nouns.matchAll(/the (\w+) of/g)].map(([, noun]) => noun).reverse();
  const chain = asked.map((noun) => relations.find((each) => each.noun === noun) as (typeof relations)[number]);
  let entity = first;
  for (const relation of chain) {
    const found = new RegExp(`${entity} ${relation.phrase} ([A-Z]\\w+) \\.`).exec(prompt)?.[1];
    if (found === undefined) return { entity, relation };
    entity = found;
  }
  return { entity, relation: undefined };
}
const search: Claim = {
  trained: 0.914,
  measured: 'docs/lab-notes/2026-11.md, drmas train search, 5 seeds',
  honest: () => ({
    verifier: (read) => (chainOf(read).relation === undefined ? 'yes ' : 'no '),
    searcher: (read) => {
      const { entity, relation } = chainOf(read);
      return `${entity} ${relation?.keyword ?? relations[0].keyword} `;
    },
    answerer: (read) => `${chainOf(read).entity} `,
  }),
  cheats: {
    searcher: {
      "the question's name alone": ({ texts: [prompt] }) => `${/([A-Z]\w+) \?/.exec(prompt)?.[1]} `,
      'another name': ({ texts: [prompt], random }) => {
        const names = prompt.match(/[A-Z]\w+/g) as [string];
        return `${random.pick(names)} ${random.pick(relations).keyword} `;
      },
    },
    answerer: {
      'a name of the evidence': ({ texts: [prompt], random }) =>
        `${random.pick(prompt.match(/[A-Z]\w+/g) as [string])} `,
    },
  },
  notNeeded: { verifier: 'four searches are free' },
};

const claims: Readonly<Record<string, Claim | { readonly notOurs: string }>> = {
  desk: {
    trained: 0.923,
    measured: 'research/results/recipes.jsonl, desk/drmas, 10 seeds',
    honest: () => {
      const specialist: Speaker = (read) => fixOf(desk(read), read.texts.at(-1)?.includes('rare') ? 'rare' : 'common');
      return {
        triage: (read) => desk(read).line,
        generalist: (read) => fixOf(desk(read), 'common'),
        ...Object.fromEntries(['router', 'phone', 'watch', 'camera'].map((line) => [line, specialist])),
      };
    },
    together: ['router', 'phone', 'watch', 'camera'],
    areWork: { triage: ['a copy of the last text', 'a copy of the first text'] },
    notNeeded: { generalist: "a specialist can do the generalist's work" },
  },
  gsm8k: { notOurs: 'do not expect such a small model to solve word problems' },
  math: {
    trained: 0.861,
    measured: 'research/results/recipes.jsonl, math/drmas, 10 seeds',
    honest: () => ({
      solver,
      verifier: ({ texts: [question, draft = ''] }) =>
        draft.includes(inBox(calculated(question))) ? '<approve>' : '<reject>',
    }),
    beside: { verifier: { mates: { solver: erringSolver } } },
  },
  'paper-math': { notOurs: 'for models and data that you download' },
  'paper-search': { notOurs: 'for models and data that you download' },
  repair: {
    trained: 0.985,
    measured: 'drmas train repair --seed 1 --set warmStart.seed=1, 1 seed',
    honest: () => {
      const line = (text: string, version: 1 | 2) => {
        const { operation, source, target } = readRequest(text);
        return `${operation.names[version]} ${source} ${target}`;
      };
      return {
        coder: ({ texts: [request] }) => line(request, 1),
        fixer: ({ texts }) => line(texts[0], texts.at(-1)?.includes('version 2') ? 2 : 1),
      };
    },
    cheats: {
      fixer: {
        'the old name again': ({ texts }) => texts[1] ?? '',
        'any new name': ({ texts, random }) => (texts[1] ?? '').replace(/^\w+/, random.pick(operations).names[2]),
      },
    },
    notNeeded: { coder: "a fixer that knows all names can do the coder's work" },
  },
  search,
  'search-hard': {
    ...search,
    trained: 0.674,
    measured: 'docs/lab-notes/2026-11.md, drmas train search-hard, 5 seeds',
  },
  shop: {
    trained: 0.804,
    measured: 'research/results/recipes.jsonl, shop/drmas, 10 seeds',
    honest: () => ({
      planner: ({ texts: [order] }) => order.match(/ [a-z]+/g)?.join('') ?? '',
      executor: ({ texts: [amount] }) => {
        const [count = 0, price = 0] = amount.split('x').map(Number);
        return String(count * price).padStart(2, '0');
      },
      verifier: ({ texts: [order, list = ''] }) =>
        itemList(list)?.length === order.match(/ [a-z]+/g)?.length ? '<complete>' : '<incomplete>',
    }),
    beside: {
      verifier: {
        by: 'own',
        mates: {
          planner: ({ texts: [order], random }) =>
            (order.match(/ [a-z]+/g) ?? []).slice(0, random.chance(0.5) ? 3 : 2).join(''),
        },
      },
    },
  },
  solo: {
    trained: 0.5,
    measured: 'not measured: a bound of this test, which no stored run supports',
    honest: () => ({ solver }),
  },
  sums: {
    trained: 0.811,
    measured: 'research/results/sums.jsonl, grpo at 0.001, 12 seeds',
    honest: () => ({
      solver: ({ texts: [question] }) =>
        String((question.match(/\d+/g) ?? []).reduce((sum, word) => sum + Number(word), 0)),
    }),
  },
  words: {
    trained: 0.893,
    measured: 'docs/first-runs.json, real-drmas, 1 seed',
    honest: (tasks) => {
      const all = tasks.map(({ data }) => data as { request: string; name: string; renamed: string; file: string });
      return {
        coder: ({ texts: [request] }) => {
          const task = all.find((each) => each.request === request);
          return `${task?.name} ${task?.file}`;
        },
        fixer: ({ texts: [failed] }) => all.find(({ name }) => failed.startsWith(`${name} `))?.renamed ?? 'unknown',
      };
    },
    cheats: { fixer: { 'the old name again': ({ texts: [failed] }) => failed.split(' ')[0] ?? '' } },
  },
};

const EPISODES = 120;
/** The constants that are tried for an agent: its most frequent answers. */
const CONSTANTS = 12;
/** Cheats in other company must stay this far below honest work. */
const MARGIN = 0.05;

interface Scores {
  readonly team: number;
  readonly own: Readonly<Record<string, number>>;
}

async function scores(team: Team, tasks: readonly Task[], speakers: Speakers): Promise<Scores> {
  const random = new RandomStream('cheats');
  const sampler = scriptedSampler(({ policy, prompt }) => {
    const parts = [...prompt.matchAll(/<\|(system|user|assistant)\|>([\s\S]*?)<\|end\|>/g)];
    const texts = parts.filter(([, role]) => role !== 'system').map(([, , text = '']) => text);
    return speakers[policy]?.({ texts: texts as [string], random }) ?? '';
  });
  const roomy = Object.keys(team.agents).map((name) => [name, sampler.policy(name, 2 ** 20)]);
  const context = scriptedContext(team, sampler, { policies: Object.fromEntries(roomy) });
  const executor = inProcessExecutor({ ...context, timeoutMs: 60_000 }); // all episodes play at once
  const groups = await executor.playGroups({
    team,
    tasks,
    groupSize: Math.ceil(EPISODES / tasks.length),
    phase: 'evaluation',
    step: 0,
  });
  const episodes = groups.flatMap((group) => group.episodes);
  expect(episodes.filter(({ failure }) => failure)).toEqual([]);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const own = Object.keys(team.agents).map((name) => [
    name,
    mean(episodes.map(({ score }) => score?.agents[name] ?? score?.team ?? 0)),
  ]);
  return { team: mean(episodes.map(({ score }) => score?.team ?? 0)), own: Object.fromEntries(own) };
}

/** The answers of an agent's demonstrations. */
function demonstrated({ trace }: TaskSource): Map<string, string[]> {
  const random = new RandomStream('cheats', 'demonstrations');
  const answers = new Map<string, string[]>();
  for (let i = 0; i < 3000; i++) {
    const drawn = trace?.(random, 'train');
    if (drawn) answers.set(drawn.agent, [...(answers.get(drawn.agent) ?? []), drawn.response]);
  }
  return answers;
}

const demonstratedAnswer =
  (answers: readonly string[]): Speaker =>
  ({ random }) =>
    answers.length === 0 ? '' : random.pick(answers as [string, ...string[]]);

function cheatsOf(answers: readonly string[]): [string, Speaker][] {
  const counts = new Map<string, number>();
  for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1);
  const frequent = [...counts].sort(([, x], [, y]) => y - x).slice(0, CONSTANTS);
  return [
    ...frequent.map(([answer]): [string, Speaker] => [`always ${JSON.stringify(answer)}`, () => answer]),
    ['a demonstrated answer', demonstratedAnswer(answers)],
    ['a copy of the last text', ({ texts }) => texts.at(-1) ?? ''],
    ['a copy of the first text', ({ texts }) => texts[0]],
    ['nothing', () => ''],
  ];
}

describe('the reward of a shipped recipe', () => {
  it('has a claim for each recipe', () => {
    expect(Object.keys(claims).sort()).toEqual(shippedRecipes());
  });

  it.each(Object.keys(claims))('cannot be had without its agents: %s', { timeout: 300_000 }, async (name) => {
    const claim = claims[name] as (typeof claims)[string];
    const page = (await readFile(new URL('../../docs/recipes.md', import.meta.url), 'utf8')).replaceAll(/\s+/g, ' ');
    if ('notOurs' in claim) {
      expect(page.includes(claim.notOurs), `the page says: ${claim.notOurs}`).toBe(true);
      return;
    }
    const { input } = (await loadRecipe(name)).definition;
    const tasksOf = input.tasks as TaskSource | { readonly train: TaskSource };
    const source = 'load' in tasksOf ? tasksOf : tasksOf.train;
    const team = input.team as unknown as Team;
    const { at, size } = await source.load('test');
    const tasks = Array.from({ length: Math.min(size, EPISODES) }, (_, index) => at(index) as Task);
    const { honest: honestOf, beside = {}, notNeeded = {}, cheats = {}, together = [], areWork = {} } = claim;
    const honest = honestOf(tasks);
    const answers = demonstrated(source);
    const scoresOf = (speakers: Speakers) => scores(team, tasks, { ...honest, ...speakers });
    const agents = Object.keys(team.agents);

    expect((await scoresOf({})).team, 'honest work').toBeGreaterThan(Math.max(0.97, claim.trained));
    const prior = agents.map((agent) => [agent, demonstratedAnswer(answers.get(agent) ?? [])]);
    expect((await scoresOf(Object.fromEntries(prior))).team, 'demonstrated answers').toBeLessThan(claim.trained);

    const reached: string[] = [];
    for (const agent of agents.filter((each) => each === together[0] || !together.includes(each))) {
      const { mates = {}, by = 'team' } = beside[agent] ?? {};
      const group = agent === together[0] ? together : [agent];
      const scoreOf = async (cheating: Speakers) => {
        const { team: ofTeam, own } = await scoresOf({ ...mates, ...cheating });
        return by === 'own' ? (own[agent] ?? 0) : ofTeam;
      };
      const limit = beside[agent] ? (await scoreOf({})) - MARGIN : claim.trained;
      const lists = group.map((each) => [...cheatsOf(answers.get(each) ?? []), ...Object.entries(cheats[each] ?? {})]);
      for (const [index, [what]] of (lists[0] ?? []).entries()) {
        if (areWork[agent]?.includes(what)) continue;
        const cheating = group.map((each, i) => [each, (lists[i]?.[index] ?? lists[i]?.at(-1))?.[1] as Speaker]);
        const score = await scoreOf(Object.fromEntries(cheating));
        if (score >= limit) reached.push(`${agent}: ${what} ${score.toFixed(3)} >= ${limit.toFixed(3)}`);
      }
    }
    const reachedBy = (agent: string) => reached.filter((each) => each.startsWith(`${agent}: `));
    expect(agents.filter((agent) => !Object.hasOwn(notNeeded, agent)).flatMap(reachedBy)).toEqual([]);
    // The team does not need the part that the page gives up, and the page says so.
    for (const [agent, sentence] of Object.entries(notNeeded)) {
      expect(reachedBy(agent)).not.toEqual([]);
      expect(page.includes(sentence), `the page says: ${sentence}`).toBe(true);
    }
  });
});
