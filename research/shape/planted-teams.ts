/**
 * Five small teams, four of them with a planted part that they do not need, and whether the study names it; and how
 * much smaller the team of `shop` gets. The plans are research/plans/shape.md and, after it failed, shape-2.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/shape/planted-teams.ts [TEAM ...] [STUDY ...]
 *     npx tsx research/shape/planted-teams.ts shop
 *     npx tsx research/shape/planted-teams.ts --page   (writes the tables of docs/research/shape.md)
 *
 * `--first` makes the studies of the first plan, whose results are in research/results/shape.jsonl.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mean } from '@drmas/engine/math';
import { z } from 'zod';
import { agent, choiceTable, defineRecipe, defineTeam, frozen, oneOf, type RecipeDefinition } from '../../src/index.js';
import { fillTables } from '../harness/fill-tables.js';
import { jsonLines } from '../harness/json-lines.js';
import { oneSidedP } from '../harness/p-values.js';
import { table as markdown } from '../harness/text.js';
import { type Study, type StudyOptions, studyOf } from './study.js';
import { ALPHA, leastSpread } from './verdict.js';

const LETTERS = ['a', 'b', 'c', 'd'] as const;
type Letter = (typeof LETTERS)[number];
const QUESTIONS = LETTERS.map((letter) => letter.toUpperCase());
/** Prompts of second rounds, and prompts that no task uses. */
const [AGAIN, SPARE] = [LETTERS.map((letter) => `${letter}!`), Array.from({ length: 60 }, (_, i) => `spare${i}`)];
const [STUDIES, MARGIN] = [10, 0.02];
/** The difference of the plans: the pairs of a study, and the number of the first study, which gives the seeds. */
const PLANS = {
  first: { results: 'research/results/shape.jsonl', pairs: 5, from: 1 },
  second: { results: 'research/results/shape-2.jsonl', pairs: 10, from: 21 },
} as const;
type Plan = (typeof PLANS)[keyof typeof PLANS];

/** Episodes of the last evaluation of a run. */
const EPISODES = 64 * 3;
const SHOP_PAIRS = 4;
const SHOP = ['warmStart.steps=400', 'training.steps=20', 'evaluation.every=20', 'evaluation.tasks=128'];
const LEARNS = { optimizer: { learningRate: 0.7 }, warmupSteps: 0 } as const;

const table = (features: readonly string[], choices: readonly string[] = LETTERS) =>
  choiceTable({ features: [...features], choices: [...choices] });
const answering = () => agent({ parse: oneOf(...LETTERS), sampling: { maxTokens: 1 } });
const next = (letter: Letter): Letter => LETTERS[(LETTERS.indexOf(letter) + 1) % LETTERS.length] ?? 'a';
const task = z.object({ right: z.enum(LETTERS), odd: z.boolean() });
const asked = ({ right }: z.output<typeof task>) => right.toUpperCase();

/** The part of a recipe that differs among the teams. */
type Part = Pick<RecipeDefinition['input'], 'team' | 'model' | 'policies'>;

/** Overrides that give agents other speakers, so that a policy has no agent any more. */
const assigned = (assign: Readonly<Record<string, unknown>>, gone: string) => [
  `assign=${JSON.stringify(assign)}`,
  `policies.${gone}=null`,
];
/** Each reply of an agent that is left out. */
const silent = frozen({ text: 'a' });
const rounds = (...limits: readonly number[]) =>
  Object.fromEntries(limits.map((limit) => [`rounds ${limit}`, [`limits.rounds=${limit}`]]));
const model = (policy: string, smaller: ReturnType<typeof table>) => [
  `policies.${policy}.model=${JSON.stringify(smaller)}`,
];

interface Planted {
  /** The cut that the team allows without a loss; undefined if it allows none. */
  readonly planted?: string;
  readonly smaller: StudyOptions['smaller'];
  readonly part: Part;
}

const teams: Readonly<Record<string, Planted>> = {
  /** The critic's verdict makes the solver answer again, which does not help it. */
  useless: {
    planted: 'without critic',
    smaller: {
      'without critic': assigned({ solver: 'solver', critic: silent }, 'critic'),
      'one policy for solver+critic': assigned({ solver: 'solver', critic: 'solver' }, 'critic'),
    },
    part: {
      team: defineTeam({
        name: 'useless',
        task,
        agents: { solver: answering(), critic: answering() },
        async play({ task: data, agents: { solver, critic } }) {
          const first = await solver(asked(data));
          const verdict = await critic(asked(data));
          return verdict.value === 'b' ? (await solver(asked(data))).value : first.value;
        },
        reward: ({ outcome, task: { right } }) => outcome === right,
      }),
      model: table(QUESTIONS),
    },
  },
  /** Two solvers with one job, each for half of the tasks. */
  duplicate: {
    planted: 'one policy for even+odd',
    smaller: { 'one policy for even+odd': assigned({ even: 'even', odd: 'even' }, 'odd') },
    part: {
      team: defineTeam({
        name: 'duplicate',
        task,
        agents: { even: answering(), odd: answering() },
        play: async ({ task: data, agents: { even, odd } }) => (await (data.odd ? odd : even)(asked(data))).value,
        reward: ({ outcome, task: { right } }) => outcome === right,
      }),
      model: table(QUESTIONS),
    },
  },
  /** A solver whose model is sixteen times as large as the job. */
  oversized: {
    planted: 'smaller solver',
    smaller: { 'smaller solver': model('solver', table(QUESTIONS)) },
    part: {
      team: defineTeam({
        name: 'oversized',
        task,
        agents: { solver: answering(), checker: answering() },
        async play({ task: data, agents: { solver, checker } }) {
          const [answer, second] = [await solver(asked(data)), await checker(asked(data))];
          return answer.value === data.right && second.value === next(data.right);
        },
        reward: ({ outcome }) => outcome,
      }),
      policies: {
        solver: { ...LEARNS, model: table([...QUESTIONS, ...SPARE]) },
        checker: { ...LEARNS, model: table(QUESTIONS) },
      },
    },
  },
  /** A loop of eight rounds: the second turns a hint into the answer, the others repeat it. */
  loop: {
    planted: 'rounds 2',
    smaller: rounds(4, 2, 1),
    part: {
      team: defineTeam({
        name: 'loop',
        task,
        agents: { solver: answering() },
        limits: { rounds: 8 },
        async play({ task: data, agents: { solver }, limits }) {
          let answer: Letter | undefined;
          for (let round = 1; round <= (limits.rounds ?? 1); round++)
            answer = (await solver(round === 1 ? asked(data) : `${data.right}!`)).value;
          return (limits.rounds ?? 1) > 1 ? answer : undefined;
        },
        reward: ({ outcome, task: { right } }) => outcome === next(right),
      }),
      model: table([...QUESTIONS, ...AGAIN]),
    },
  },
  /** Two agents with opposite jobs in two rounds, and a smaller model that cannot say all answers. */
  needed: {
    smaller: {
      'without first': assigned({ first: silent, second: 'second' }, 'first'),
      'without second': assigned({ first: 'first', second: silent }, 'second'),
      ...rounds(1),
      'smaller first': model('first', table([...QUESTIONS, ...AGAIN], LETTERS.slice(0, 3))),
      'smaller second': model('second', table([...QUESTIONS, ...AGAIN], LETTERS.slice(0, 3))),
      'one policy for first+second': assigned({ first: 'first', second: 'first' }, 'second'),
    },
    part: {
      team: defineTeam({
        name: 'needed',
        task,
        agents: { first: answering(), second: answering() },
        limits: { rounds: 2 },
        async play({ task: data, agents: { first, second }, limits }) {
          const right = { first: 0, second: 0 };
          for (let round = 1; round <= limits.rounds; round++) {
            const question = round === 1 ? asked(data) : `${data.right}!`;
            right.first += Number((await first(question)).value === data.right) / 2;
            right.second += Number((await second(question)).value === next(data.right)) / 2;
          }
          return right;
        },
        reward: ({ outcome }) => ({ team: (outcome.first + outcome.second) / 2, agents: outcome }),
        success: ({ outcome }) => (outcome.first + outcome.second) / 2,
      }),
      policies: Object.fromEntries(
        ['first', 'second'].map((name) => [name, { ...LEARNS, model: table([...QUESTIONS, ...AGAIN]) }]),
      ),
    },
  },
};

const recipeOf = (name: string, part: Part) =>
  defineRecipe({
    policies: Object.fromEntries(Object.keys(part.team.agents).map((policy) => [policy, LEARNS])),
    ...part,
    name,
    tasks: {
      name: 'letters',
      load: async (split: 'train' | 'test') => ({
        name: 'letters',
        size: 64,
        at: (index: number) => ({
          id: `${split}-${index}`,
          data: { right: LETTERS[index % LETTERS.length] ?? 'a', odd: index % 8 > 3 },
        }),
      }),
    },
    training: { steps: 12, tasksPerStep: 16, groupSize: 4 },
    evaluation: { every: 12, tasks: 64, samples: 3 },
  } as never);

/** A study in a folder of its own, as a row of the results. The stored rows lack the list of differences. */
async function rowOf(
  [team, number, planted]: readonly [string, number, string | undefined],
  recipe: string | RecipeDefinition,
  options: Omit<StudyOptions, 'margin' | 'folder'>,
) {
  const folder = await mkdtemp(join(tmpdir(), 'drmas-shape-'));
  const began = performance.now();
  try {
    const { whole, variants, chosen }: Study = await studyOf(recipe, { ...options, margin: MARGIN, folder });
    return {
      ...{ team, study: number, planted: planted ?? null, chosen: chosen ?? null, right: chosen === planted },
      whole: { score: whole.score, tokens: whole.tokens },
      variants: variants.map(({ name, verdict, pairs, runs, score, difference, p, price, tokens, differences }) => ({
        ...{ name, verdict, pairs, runs, score, difference, p, price: price / whole.price, tokens, differences },
      })),
      seconds: (performance.now() - began) / 1000,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function study(name: string, number: number, { pairs }: Plan) {
  const { planted, smaller, part } = teams[name] as Planted;
  return rowOf([name, number, planted], recipeOf(name, part), { smaller, pairs, firstSeed: 1000 * number + 1 });
}

/** A study of `shop`, with shorter runs than the recipe's: is its verifier needed? */
function shopStudy() {
  const assign = { planner: 'planner', executor: 'executor', verifier: frozen({ text: '<complete>' }) };
  return rowOf(['shop', 1, 'without verifier'], 'shop', {
    smaller: { 'without verifier': [`assign=${JSON.stringify(assign)}`] }, // the recipe has no settings of its policy
    ...{ set: SHOP, pairs: SHOP_PAIRS, firstSeed: 1, warmStartSeed: 1 },
  });
}

type Row = Awaited<ReturnType<typeof rowOf>>;

/**
 * Whether a claim of the first results also holds with the spread that the second plan supposes at least. They were
 * made with one episode's. The spread follows from the p value, which Holm's adjustment can only have raised.
 */
function holdsNow({ difference, p }: Row['variants'][number], variants: number): boolean {
  const at = (spread: number) => [-1, 1, -1, 1, 0].map((side) => difference + side * spread);
  let [low, high] = [0, 1];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (oneSidedP(at(middle), -MARGIN) < p) low = middle;
    else high = middle;
  }
  const least = leastSpread({ margin: MARGIN, episodes: EPISODES });
  return variants * oneSidedP(at(high), -MARGIN, least) <= ALPHA;
}

const points = (difference: number) => (100 * difference).toFixed(1);

/** The counts of a plan as a table. */
function tableOf(rows: readonly Row[], plan: Plan): string {
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const isFirst = plan === PLANS.first;
  const lines = [...new Set(rows.map(({ team }) => team))].map((team) => {
    const own = rows.filter((one) => one.team === team);
    const picked = own.flatMap(({ chosen, variants, whole }) => {
      const variant = variants.find(({ name }) => name === chosen);
      return variant === undefined ? [] : [{ share: variant.tokens / whole.tokens, difference: variant.difference }];
    });
    const runs = mean(own.map(({ variants }) => variants.reduce((sum, variant) => sum + variant.runs, 0)));
    const planned = (own[0]?.variants.length ?? 0) * (team === 'shop' ? SHOP_PAIRS : plan.pairs);
    const holds = own.filter(
      ({ right, chosen, variants }) =>
        right && variants.every((one) => one.name !== chosen || holdsNow(one, variants.length)),
    );
    return [
      `\`${team}\``,
      own[0]?.planted ?? 'each part is needed',
      `${own.filter(({ right }) => right).length} of ${own.length}`,
      ...(isFirst ? [`${holds.length} of ${own.length}`] : []),
      picked.length === 0 ? '' : percent(mean(picked.map(({ share }) => share))),
      picked.length === 0 ? '' : points(mean(picked.map(({ difference }) => difference))),
      `${runs.toFixed(1)} of ${planned}`,
    ];
  });
  const later = ['tokens, of the whole team', 'score, difference in points', 'runs of smaller teams'];
  const header = ['team', 'what it does not need', 'right', ...(isFirst ? ['right by the later rule'] : []), ...later];
  return markdown(header, lines);
}

/** The studies of both plans that did not name a planted part. */
function missedTable(all: Readonly<Record<string, readonly Row[]>>): string {
  const rows = Object.entries(all).flatMap(([name, studies]) =>
    studies.flatMap(({ team, study, planted, right, whole, variants }) => {
      const variant = variants.find((one) => one.name === planted);
      if (right || variant === undefined) return [];
      const cells = [`${variant.pairs}`, points(whole.score), `+${points(variant.difference)}`, variant.p.toFixed(3)];
      return [[name, `\`${team}\` ${study}`, ...cells]];
    }),
  );
  return markdown(['plan', 'study', 'pairs', 'score of the whole team, %', 'smaller minus whole, points', 'p'], rows);
}

const words = process.argv.slice(2);
const plan = words.includes('--first') ? PLANS.first : PLANS.second;
const chosen = words.filter((word) => /^\d+$/.test(word)).map(Number);
const numbers = chosen.length > 0 ? chosen : Array.from({ length: STUDIES }, (_, i) => plan.from + i);
const named = words.filter((word) => word in teams);
if (words.includes('--page')) {
  const [first, second] = [jsonLines<Row>(PLANS.first.results), jsonLines<Row>(PLANS.second.results)];
  await fillTables('shape.md', {
    first: tableOf(first, PLANS.first),
    second: tableOf(second, PLANS.second),
    missed: missedTable({ first, second }),
  });
} else if (words.includes('shop')) console.log(JSON.stringify(await shopStudy()));
else
  for (const name of named.length > 0 ? named : Object.keys(teams))
    for (const number of numbers) console.log(JSON.stringify(await study(name, number, plan)));
