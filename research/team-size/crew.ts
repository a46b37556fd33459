/**
 * A team of any size. Workers claim jobs one after another, each sees what was claimed before, and a closer names the
 * job that is left. How many workers there are differs from task to task; they are one agent that is called again.
 */
import { z } from 'zod';
import { agent, defineRecipe, defineTeam, oneOf, tinyDecoder, user } from '../../src/index.js';
import { permutation, type RandomStream } from '../../src/public/tasks.js';

const jobs = [...'ABCDEFGHIJKL'] as [string, ...string[]];
const choosing = (system: string) => agent({ system, parse: oneOf(...jobs), sampling: { maxTokens: 1 } });

const team = defineTeam({
  name: 'crew',
  task: z.object({ jobs: z.array(z.string()) }),
  agents: { worker: choosing('<worker>'), closer: choosing('<closer>') },
  async play({ task, agents: { worker, closer } }) {
    const claims: string[] = [];
    for (const _ of task.jobs.slice(1)) claims.push((await worker(board(task.jobs, claims))).text);
    const last = await closer(board(task.jobs, claims));
    return new Set([...claims, last.text]);
  },
  reward: ({ outcome, task }) => task.jobs.filter((job) => outcome.has(job)).length / task.jobs.length,
  /** The share of the jobs that were taken, and whether all were, by the number of workers. */
  metrics({ outcome, task: { jobs } }) {
    const taken = jobs.filter((job) => outcome.has(job)).length;
    const workers = jobs.length - 1;
    return { [`share ${workers}`]: taken / jobs.length, [`done ${workers}`]: Number(taken === jobs.length) };
  },
});

const board = (open: readonly string[], claims: readonly string[]) => `${open.join('')}|${claims.join('')}`;

/** The first of the jobs in an order that the key decides. */
const drawn = (count: number, ...key: readonly (string | number)[]) =>
  Array.from(permutation(jobs.length, 'crews', ...key).slice(0, count), (at) => jobs[at] ?? '') as [
    string,
    ...string[],
  ];

/** @param train The numbers of workers to learn with @param test Those of the evaluation */
const tasks = (settings: { readonly train: readonly number[]; readonly test: readonly number[] }) => ({
  name: 'crews',
  settings,
  configure: (changed: unknown) => tasks(changed as typeof settings),
  /** Any job of the list, whether somebody has it or not: the form alone. */
  trace(random: RandomStream) {
    const workers = random.pick(settings.train as [number, ...number[]]);
    const open = drawn(workers + 1, random.word());
    const claims = Array.from({ length: random.integer(0, workers) }, () => random.pick(open));
    const agent = claims.length === workers ? 'closer' : 'worker';
    return { agent, messages: [user(board(open, claims))], response: random.pick(open) };
  },
  async load(split: 'train' | 'test') {
    const sizes = settings[split];
    const at = (index: number) => {
      const workers = sizes[index % sizes.length] ?? 2;
      return { id: `${split} ${index}`, data: { jobs: drawn(workers + 1, split, index) } };
    };
    return { name: `crews ${split}`, size: 100 * sizes.length, at };
  },
});

/** @param train The numbers of workers to learn with @param policies One for both roles, or one for each */
export const crew = (train: readonly number[], policies: 'shared' | 'roles', seed: number) =>
  defineRecipe({
    name: 'crew',
    seed,
    team,
    tasks: tasks({ train, test: [2, 3, 4, 5, 6, 7, 8] }),
    model: tinyDecoder({
      ...{ width: 32, layers: 2, heads: 2, feedForward: 64, context: 32, embeddingDeviation: 0.5 },
      tokenizer: {
        type: 'symbols',
        symbols: ['<end>', '<ask>', '<worker>', '<closer>', '|', ...jobs],
        ...{ stop: '<end>', endOfUser: '<ask>', endOfAssistant: '<end>' },
      },
    }),
    ...(policies === 'shared' ? { assign: { worker: 'crew', closer: 'crew' } } : {}),
    policies: Object.fromEntries(
      (policies === 'shared' ? ['crew'] : ['worker', 'closer']).map((name) => [
        name,
        { optimizer: { learningRate: 4e-3 } },
      ]),
    ),
    warmStart: { steps: 200, batch: 64, learningRate: 4e-3 },
    training: { steps: 400, tasksPerStep: 16, groupSize: 8 },
    evaluation: { every: 400, tasks: 350, samples: 4 },
  });
