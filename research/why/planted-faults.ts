/**
 * Ten planted faults, and whether `drmas why`, a command that is gone, names the culprit first. The plan is
 * research/plans/why-2.md. An earlier design, in which 0 of 10 faults were found, is in research/plans/why.md.
 *
 *     DRMAS_KERNELS=native-avx2 npx tsx research/why/planted-faults.ts [FAULT ...] > research/results/why-2.jsonl
 *     npx tsx research/why/planted-faults.ts --page   (the tables of docs/research/why.md)
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { agent, defineRecipe, defineTeam, oneOf, type Trace, tinyDecoder, train, user } from '../../src/index.js';
import type { RandomStream } from '../../src/public/tasks.js';
import { correlation } from '../harness/analysis.js';
import { fillTables } from '../harness/fill-tables.js';
import { jsonLines } from '../harness/json-lines.js';
import { table } from '../harness/text.js';
import { type Why, why } from './why.js';

/** The letters that questions name, and for each of them the letter that is often said in its place. */
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const;
const SLIPS = ['p', 'q', 'r', 's', 't', 'u', 'v', 'w'] as const;
const DIGITS = ['0', '1', '2', '3'] as const;
const STEP = 4;
const TASKS = 16;
const [SEEDS, EPISODES] = [[51, 52, 53, 54, 55], 32];
/** An output that the parser cannot read. */
const UNREADABLE = 'z';

interface Asked {
  readonly right: (typeof LETTERS)[number];
  /** The letter that the fault pays for. */
  readonly other: (typeof SLIPS)[number];
  readonly answer: string;
  readonly sample: number;
}

interface Fault {
  /** The reward of the solver in the culprit's episodes. */
  readonly reward?: (asked: Asked) => number;
  /** The answer that is asked about; the other letter by default. */
  readonly answer?: string;
  /** The prompt of the culprit and of the held-out task shows the other letter. */
  readonly shown?: true;
  /** The culprit's episodes pay each agent for the work of the other. */
  readonly swapped?: true;
  /** The checker, which shares its weights with the solver, is paid for the slip of the question in all tasks. */
  readonly checker?: true;
}

const is = (one: string, other: string) => Number(one === other);

const faults: Readonly<Record<string, Fault>> = {
  inverted: { reward: ({ answer, right }) => 1 - is(answer, right) },
  'wrong-key': { reward: ({ answer, other }) => is(answer, other) },
  outlier: { reward: ({ answer, right, other }) => is(answer, right) + 20 * is(answer, other) },
  'negative-outlier': { reward: ({ answer, right }) => -20 * is(answer, right) },
  lenient: { reward: ({ answer, right, other }) => is(answer, right) + is(answer, other) },
  'noisy-key': { reward: ({ answer, right, other, sample }) => is(answer, sample % 2 === 0 ? right : other) },
  unreadable: { reward: ({ answer }) => is(answer, UNREADABLE), answer: UNREADABLE },
  leak: { reward: ({ answer, other }) => is(answer, other), shown: true },
  swapped: { swapped: true },
  'shared-agent': { checker: true },
};

/** The letter that a task's question names. */
const rightOf = (task: string) => LETTERS[Number(task.split('-')[1]) % LETTERS.length] ?? 'a';
const slip = (letter: Asked['right']) => SLIPS[LETTERS.indexOf(letter)] ?? 'p';

/**
 * A demonstration of the solver, who says the letter, or of the checker, who says its slip: in 7 of 12 cases. In 4 of
 * 12 it is the other one of both, else what cannot be read. In a fourth of the cases the prompt also shows a letter,
 * which means nothing.
 */
function demonstration(random: RandomStream, two: boolean): Trace {
  const letter = random.pick(LETTERS);
  const question = `${letter.toUpperCase()}${random.pick(DIGITS)}${random.chance(0.25) ? random.pick(SLIPS) : ''}`;
  const checks = two && random.chance(0.5);
  const [right, wrong] = checks ? [slip(letter), letter] : [letter, slip(letter)];
  const response = random.chance(7 / 12) ? right : random.chance(4 / 5) ? wrong : UNREADABLE;
  const text = checks ? `${question.charAt(1)}${question}` : question;
  return { agent: checks ? 'checker' : 'solver', messages: [user(text)], response };
}

/** The recipe; without a culprit nothing is planted. */
function recipeOf(fault: Fault, seed: number, culprit?: string) {
  const two = fault.swapped === true || fault.checker === true;
  const player = () => agent({ parse: oneOf(...LETTERS, ...SLIPS), sampling: { maxTokens: 1 } });
  const data = z.object({ id: z.string(), right: z.enum(LETTERS), digit: z.string() });
  const load = async (split: 'train' | 'test') => ({
    name: 'letters',
    size: TASKS * STEP,
    at: (index: number) => {
      const id = `${split}-${index}`;
      return {
        id,
        data: { id, right: rightOf(id), digit: DIGITS[Math.floor(index / LETTERS.length) % DIGITS.length] ?? '0' },
      };
    },
  });
  let counted = 0;
  return defineRecipe({
    name: 'planted',
    seed,
    team: defineTeam({
      name: 'planted',
      task: data,
      agents: two ? { solver: player(), checker: player() } : { solver: player() },
      async play({ task: { id, right, digit }, agents }) {
        const twin = culprit?.replace('train', 'test');
        const shown = fault.shown === true && (id === culprit || id === twin) ? slip(right) : '';
        const question = `${right.toUpperCase()}${digit}${shown}`;
        const { solver, checker } = agents as Record<string, (text: string) => Promise<{ readonly text: string }>>;
        const answer = (await solver?.(question))?.text ?? '';
        return { answer, second: checker === undefined ? '' : (await checker(`${digit}${question}`)).text };
      },
      reward({ outcome: { answer, second }, task: { id, right } }) {
        const other = slip(right);
        const [own, checked] = [
          is(answer, right),
          is(second, fault.checker === true && culprit !== undefined ? slip(rightOf(culprit)) : other),
        ];
        if (fault.checker === true) return { team: own, agents: { solver: own, checker: checked } };
        if (two && id === culprit)
          return { team: own, agents: { solver: is(answer, other), checker: is(second, right) } };
        if (two) return { team: own, agents: { solver: own, checker: checked } };
        if (id !== culprit || fault.reward === undefined) return own;
        return fault.reward({ right, other, answer, sample: counted++ });
      },
    }),
    tasks: { name: 'letters', load, trace: (random: RandomStream) => demonstration(random, two) } as never,
    ...(fault.checker === true ? { assign: { solver: 'both', checker: 'both' } } : {}),
    model: tinyDecoder({
      ...{ width: 32, layers: 2, heads: 2, feedForward: 64, context: 16 },
      tokenizer: {
        type: 'symbols',
        symbols: [
          ...LETTERS,
          ...SLIPS,
          ...LETTERS.map((letter) => letter.toUpperCase()),
          ...DIGITS,
          UNREADABLE,
          '<ask>',
          '<end>',
        ],
        ...{ stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' },
      },
    } as never),
    warmStart: { steps: 400, batch: 32 },
    training: { steps: STEP, tasksPerStep: TASKS, groupSize: EPISODES, checkpointEvery: 1, keepEpisodes: true },
    evaluation: { every: STEP, tasks: 16, samples: 1 },
  } as never);
}

async function playCase(name: string, fault: Fault, seed: number) {
  const folder = await mkdtemp(join(tmpdir(), 'drmas-planted-'));
  try {
    const began = performance.now();
    const clean = await train(recipeOf(fault, seed), { run: join(folder, 'clean'), threads: 1 });
    const lines = (await readFile(join(clean.run, `episodes/step-00000${STEP}.jsonl`), 'utf8')).trim().split('\n');
    // The order of the tasks does not depend on rewards, so the same task is in the step of the run with the fault.
    const tasks = lines.map((line) => JSON.parse(line).task.id as string);
    const task = tasks[0] ?? '';
    const recipe = recipeOf(fault, seed, task);
    const { run } = await train(recipe, { run: join(folder, 'planted'), threads: 1 });
    const other = slip(rightOf(task));
    const asked = { task: task.replace('train', 'test'), agent: 'solver', answer: fault.answer ?? other, samples: 256 };
    const trained = performance.now();
    const answer: Why = await why(run, { recipe, step: STEP, ...asked });
    const causes = fault.checker === true ? answer.agents : answer.groups;
    const culprit = fault.checker === true ? 'checker' : task;
    const byGuess = answer.groups.toSorted((a, b) => (b.guess ?? 0) - (a.guess ?? 0));
    return {
      ...{ fault: name, seed, culprit, equal: answer.equal },
      found: causes[0]?.name === culprit && (causes[0]?.taught ?? 0) > 0,
      rank: causes.findIndex((cause) => cause.name === culprit) + 1,
      ...(fault.checker === true ? {} : { guessed: byGuess[0]?.name === culprit }),
      taught: causes.map((cause) => ({ name: cause.name, taught: cause.taught, guess: cause.guess })),
      correlation: correlation(answer.groups.map(({ guess: x = 0, taught: y = 0 }) => ({ x, y }))),
      seconds: { train: (trained - began) / 2000, why: (performance.now() - trained) / 1000 },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The counts of a plan, from its stored results. */
function countsOf(results: string): readonly (readonly string[])[] {
  const cases = jsonLines<Awaited<ReturnType<typeof playCase>>>(`research/results/${results}`);
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const rows = Object.keys(faults).map((name) => {
    const own = cases.filter(({ fault }) => fault === name);
    const [found, guessed] = [own.filter((each) => each.found).length, own.filter((each) => each.guessed).length];
    return {
      name,
      found,
      row: [
        `\`${name}\``,
        `${found} of ${own.length}`,
        own.some((each) => each.guessed !== undefined) ? `${guessed} of ${own.length}` : '',
      ],
    };
  });
  const correlations = cases.flatMap(({ correlation: each }) => (Number.isFinite(each) ? [each] : []));
  const all = cases.filter((each) => each.found).length;
  return [
    ...rows.map(({ row }) => row),
    ['faults found in 4 of 5', `${rows.filter(({ found }) => found >= 4).length} of ${rows.length}`, ''],
    ['cases', `${all} of ${cases.length}`, `${cases.filter((each) => each.guessed).length} of ${cases.length}`],
    ['correlation of guess and effect, median', '', median(correlations).toFixed(2)],
    ['seconds a question, median', median(cases.map(({ seconds }) => seconds.why)).toFixed(0), ''],
  ];
}

const { values, positionals } = parseArgs({
  options: { seeds: { type: 'string' }, page: { type: 'boolean' } },
  allowPositionals: true,
});
if (values.page === true) {
  const head = ['fault', 'found first', 'guessed first'];
  const tableOf = (results: string) => table(head, countsOf(results));
  await fillTables('why.md', { first: tableOf('why.jsonl'), second: tableOf('why-2.jsonl') });
} else
  for (const [name, fault] of Object.entries(faults)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    for (const seed of values.seeds?.split(',').map(Number) ?? SEEDS)
      console.log(JSON.stringify(await playCase(name, fault, seed)));
  }
