/**
 * Five small teams, four of them with a planted part that they do not need, and whether `drmas shape` names it; and how
 * much smaller the team of `shop` gets. The plans are research/plans/shape.md and, after it failed, shape-2.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/shape/planted-teams.ts [TEAM ...] >> research/results/shape-2.jsonl
 *     npx tsx research/shape/planted-teams.ts shop >> research/results/shape-2.jsonl
 *     npx tsx research/shape/planted-teams.ts --summary   (tables of the results; --page writes them to docs/shape.md)
 *
 * `--first` repeats the runs of the first plan, whose results are in shape.jsonl.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { agent, choiceTable, defineRecipe, defineTeam, oneOf, type RecipeDefinition } from '../../src/index.js';
import { oneSidedP } from '../../src/runs/analysis.js';
import { thisProcess } from '../../src/runs/run/start-run.js';
import { ALPHA, leastSpread } from '../../src/runs/studies/shape/verdict.js';
import { type Shape, shapeTeam } from '../../src/runs/studies.js';

const LETTERS = ['a', 'b', 'c', 'd'] as const;
type Letter = (typeof LETTERS)[number];
const QUESTIONS = LETTERS.map((letter) => letter.toUpperCase());
/** Prompts of second rounds, and prompts that no task uses. */
const [AGAIN, SPARE] = [LETTERS.map((letter) => `${letter}!`), Array.from({ length: 60 }, (_, i) => `spare${i}`)];
const [STUDIES, MARGIN] = [10, 0.02];
/** The difference of the plans: the pairs of a study, and the number of the first study, which gives the seeds. */
const PLANS = {
  first: { results: 'shape.jsonl', pairs: 5, from: 1 },
  second: { results: 'shape-2.jsonl', pairs: 10, from: 21 },
} as const;
type Plan = (typeof PLANS)[keyof typeof PLANS];

/** Episodes of the last evaluation of a run. */
const EPISODES = 64 * 3;
const SHOP_PAIRS = 4;
const SHOP = ['warmStart.steps=400', 'training.steps=20', 'evaluation.every=20', 'evaluation.tasks=128'];
const resultsOf = ({ results }: Plan) => readFile(join(import.meta.dirname, '../results', results), 'utf8');
const LEARNS = { optimizer: { learningRate: 0.7 }, warmupSteps: 0 } as const;

const table = (features: readonly string[], choices: readonly string[] = LETTERS) =>
  choiceTable({ features: [...features], choices: [...choices] });
const answering = (absent?: string) => agent({ parse: oneOf(...LETTERS), sampling: { maxTokens: 1 }, absent });
const next = (letter: Letter): Letter => LETTERS[(LETTERS.indexOf(letter) + 1) % LETTERS.length] ?? 'a';
const task = z.object({ right: z.enum(LETTERS), odd: z.boolean() });
const asked = ({ right }: z.output<typeof task>) => right.toUpperCase();

/** The part of a recipe that differs among the teams. */
type Part = Pick<RecipeDefinition['input'], 'team' | 'model' | 'policies'>;

/** Each team with the cut that it allows without a loss; undefined if it allows none. */
const teams: Readonly<Record<string, { readonly planted?: string; readonly part: Part }>> = {
  /** The critic's verdict makes the solver answer again, which does not help it. */
  useless: {
    planted: 'without critic',
    part: {
      team: defineTeam({
        name: 'useless',
        task,
        agents: { solver: answering(), critic: answering('a') },
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
        solver: { ...LEARNS, model: table([...QUESTIONS, ...SPARE]), candidates: [{ model: table(QUESTIONS) }] },
        checker: { ...LEARNS, model: table(QUESTIONS) },
      },
    },
  },
  /** A loop of eight rounds: the second turns a hint into the answer, the others repeat it. */
  loop: {
    planted: 'rounds 2',
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
  /** Two agents with opposite jobs in two rounds, and a candidate that cannot say all answers. */
  needed: {
    part: {
      team: defineTeam({
        name: 'needed',
        task,
        agents: { first: answering('a'), second: answering('a') },
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
        ['first', 'second'].map((name) => [
          name,
          {
            ...LEARNS,
            model: table([...QUESTIONS, ...AGAIN]),
            candidates: [{ model: table([...QUESTIONS, ...AGAIN], LETTERS.slice(0, 3)) }],
          },
        ]),
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

async function study(name: string, number: number, { pairs }: Plan) {
  const { planted, part } = teams[name] as (typeof teams)[string];
  const folder = await mkdtemp(join(tmpdir(), 'drmas-shape-'));
  const began = performance.now();
  try {
    const result = await shapeTeam(thisProcess, recipeOf(name, part), {
      ...{ margin: MARGIN, seeds: pairs, firstSeed: 1000 * number + 1, run: join(folder, 'study') },
      ...{ threads: 1, parallel: 1 },
    });
    return row(name, number, planted, result, began);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A study of `shop`, with shorter runs than the recipe's: is its verifier needed? */
async function shopStudy() {
  const folder = await mkdtemp(join(tmpdir(), 'drmas-shape-'));
  const began = performance.now();
  try {
    const result = await shapeTeam(thisProcess, 'shop', {
      ...{ margin: MARGIN, seeds: SHOP_PAIRS, firstSeed: 1, cuts: ['drop'], set: SHOP },
      ...{ run: join(folder, 'study'), threads: 1, parallel: 1 },
    });
    return row('shop', 1, 'without verifier', result, began);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function row(team: string, number: number, planted: string | undefined, shape: Shape, began: number) {
  const { whole, variants, chosen = null } = shape;
  return {
    ...{ team, study: number, planted: planted ?? null, chosen, right: chosen === (planted ?? null) },
    whole: { score: whole.score, tokens: whole.tokens },
    variants: variants.map(({ name, verdict, pairs, runs, score, mean, p, price, tokens }) => ({
      ...{ name, verdict, pairs, runs, score, difference: mean, p, price: price / whole.price, tokens },
    })),
    seconds: (performance.now() - began) / 1000,
  };
}

type Row = ReturnType<typeof row>;

/**
 * Whether a claim of the stored results also holds with the spread that the command now supposes at least. The results
 * were made with one episode's. The spread follows from the p value, which Holm's adjustment can only have raised.
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

/** The counts of the plan, from the stored results, as a table. */
function tableOf(results: string, { pairs }: Plan): string {
  const rows = results
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);
  const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const lines = [...new Set(rows.map(({ team }) => team))].map((team) => {
    const own = rows.filter((one) => one.team === team);
    const picked = own.flatMap(({ chosen, variants, whole }) => {
      const variant = variants.find(({ name }) => name === chosen);
      return variant === undefined ? [] : [{ share: variant.tokens / whole.tokens, difference: variant.difference }];
    });
    const runs = average(own.map(({ variants }) => variants.reduce((sum, variant) => sum + variant.runs, 0)));
    const planned = own[0]?.variants.length ?? 0;
    const each = team === 'shop' ? SHOP_PAIRS : pairs;
    const cells = [
      `\`${team}\``,
      own[0]?.planted ?? 'each part is needed',
      `${own.filter(({ right }) => right).length} of ${own.length}`,
      `${own.filter(({ right, chosen, variants }) => right && variants.every((one) => one.name !== chosen || holdsNow(one, variants.length))).length} of ${own.length}`,
      picked.length === 0 ? '' : percent(average(picked.map(({ share }) => share))),
      picked.length === 0 ? '' : (100 * average(picked.map(({ difference }) => difference))).toFixed(1),
      `${runs.toFixed(1)} of ${planned * each}`,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| team | what it does not need | named | also by the present rule | tokens, of the whole team | score, difference in points | runs of variants |',
    '|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

const words = process.argv.slice(2);
const plan = words.includes('--first') ? PLANS.first : PLANS.second;
/** Studies of a trial have seeds of their own, and are not in the results. */
const numbers = words.includes('--trial') ? [0] : Array.from({ length: STUDIES }, (_, i) => plan.from + i);
const named = words.filter((word) => word in teams);
if (words.includes('--summary'))
  for (const one of Object.values(PLANS)) console.log(tableOf(await resultsOf(one), one));
else if (words.includes('--page')) {
  const page = join(import.meta.dirname, '../../docs/shape.md');
  let text = await readFile(page, 'utf8');
  for (const [name, one] of Object.entries(PLANS)) {
    const marked = new RegExp(`(<!-- results: ${name} -->\\n)[\\s\\S]*?(<!-- end -->)`);
    const filled = tableOf(await resultsOf(one), one);
    text = text.replace(marked, (_, before: string, after: string) => `${before}${filled}\n${after}`);
  }
  await writeFile(page, text);
} else if (words.includes('shop')) console.log(JSON.stringify(await shopStudy()));
else
  for (const name of named.length > 0 ? named : Object.keys(teams))
    for (const number of numbers) console.log(JSON.stringify(await study(name, number, plan)));
