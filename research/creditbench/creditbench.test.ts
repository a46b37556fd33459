import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { RandomStream } from '@drmas/engine/math';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defineEstimator } from '../../src/method/advantage.js';
import { creditCell, openNamed } from './cells.js';
import { decisionFamilies } from './decisions.js';
import { creditScore, playStage, policyAt } from './direct-credit.js';
import { assignment, type Family, families, tickets } from './families.js';
import { type Call, codes, draw, type Node, playFrom, rewardOf, Values } from './game.js';
import { fillCreditbench, kendall } from './page.js';
import { creditRecipe } from './recipe.js';
import { addResult, readPart, resultsFile, type TrainingResult } from './results.js';
import { familiesApp } from './server.js';
import { readSubmission, rowOfFile } from './submission.js';

const family = (id: string) => [...families, ...decisionFamilies].find((one) => one.id === id) as Family;

/** A family, a value of its knob and a ticket. */
const games = fc.constantFrom(...families, ...decisionFamilies).chain((one) =>
  fc
    .tuple(
      one.knob.whole
        ? fc.integer({ min: 1, max: Math.min(one.knob.most, 6) })
        : fc.double({ min: 0, max: one.knob.most, noNaN: true }),
      fc.nat(),
    )
    .map(([difficulty, index]) => {
      const list = tickets(difficulty).train;
      return { family: one, difficulty, root: one.begin(list[index % list.length] as (typeof list)[number]) };
    }),
);

describe('families', () => {
  it('give the right policy a score of exactly 1, and any other at most that', () => {
    fc.assert(
      fc.property(games, fc.nat(), ({ root }, seed) => {
        const random = new RandomStream('test', seed);
        expect(playFrom(root, ({ right }) => right, random).end.score).toBe(1);
        const { score } = playFrom(root, () => random.integer(-1, codes.length - 1), random).end;
        expect(score).toBeLessThanOrEqual(1);
        expect(score).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it('have credits whose mean under the policy is 0, at each call of a played episode', () => {
    fc.assert(
      fc.property(games, fc.nat(), ({ family: of, root }, seed) => {
        const policy = policyAt(of, 'start');
        const values = new Values(policy);
        const random = new RandomStream('test', seed);
        for (const { call } of playFrom(root, (each) => draw(policy, each, random), random).moves) {
          const mean = policy(call).reduce((sum, p, choice) => sum + p * values.credit({ call, choice }), 0);
          expect(mean).toBeCloseTo(0, 10);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('have values that the mean reward of many episodes approaches', () => {
    for (const of of families) {
      const policy = policyAt(of, 'middle');
      const root = of.begin({ sign: 1, owner: 3, difficulty: of.knob.usual });
      const random = new RandomStream('test', of.id);
      const agent = Object.keys(assignment(of, of.knob.usual))[0] as string;
      const rewards = Array.from({ length: 4000 }, () =>
        rewardOf(playFrom(root, (call) => draw(policy, call, random), random).end, agent),
      );
      const mean = rewards.reduce((sum, each) => sum + each, 0) / rewards.length;
      expect(Math.abs(mean - new Values(policy).of(root, agent)), of.id).toBeLessThan(0.15);
    }
  });

  it('have the credits that follow by hand', () => {
    const after = (node: Node, choices: readonly boolean[]): Node =>
      choices.reduce<Node>((at, isRight) => {
        if (at.kind !== 'call') throw new Error('expected a call');
        return at.after(isRight ? at.right : (at.right + 1) % codes.length);
      }, node);
    const rightCredit = (of: Family, difficulty: number, before: readonly boolean[]) => {
      const call = after(of.begin({ sign: 2, owner: 0, difficulty }), before);
      if (call.kind !== 'call') throw new Error('expected a call');
      return new Values(policyAt(of, 'middle')).credit({ call, choice: call.right });
    };
    expect(rightCredit(family('first-error'), 4, [])).toBeCloseTo(0.5 ** 3 * 0.5, 12); // all later turns must be right
    expect(rightCredit(family('first-error'), 4, [true, true])).toBeCloseTo(0.5 * 0.5, 12);
    expect(rightCredit(family('first-error'), 4, [true, false])).toBeCloseTo(0, 12); // the error came before
    expect(rightCredit(family('free-rider'), 3, [])).toBeCloseTo(0.5, 12);
    expect(rightCredit(family('free-rider'), 3, [true, true])).toBeCloseTo(0, 12);
    expect(rightCredit(family('long-loops'), 8, [true])).toBeCloseTo(0.5 / 8, 12);
    expect(rightCredit(family('parallel-twins'), 4, [])).toBeCloseTo(0.5 ** 3 * 0.5, 12); // all others are wrong
    expect(rightCredit(family('parallel-twins'), 4, [true])).toBeCloseTo(0, 12); // another one is right
    expect(rightCredit(family('small-own-reward'), 0.9, [false])).toBeCloseTo(0.1 * 0.5, 12);
  });

  it('of decisions have the credits that follow by hand', () => {
    const rightCredit = (id: string, path: readonly ('right' | boolean)[]) => {
      const of = family(id);
      const call = path.reduce<Node>(
        (at, step) => {
          if (at.kind === 'call') return at.after(at.right);
          if (at.kind === 'chance') return at.after(step === true);
          throw new Error('the path goes on after the end');
        },
        of.begin({ sign: 0, owner: 0, difficulty: 0.1 }),
      );
      if (call.kind !== 'call') throw new Error('expected a call');
      return new Values(policyAt(of, 'middle')).credit({ call, choice: call.right });
    };
    const wrong = 0.5 / 7; // the probability of each wrong code
    // Nothing is seen in four looks: a fifth sees it and then earns 3/4, and an answer without it earns nothing.
    const look = 0.75 - 5 * 0.1;
    const before = (1 - 4 * wrong) * look + 4 * wrong * (-4 * 0.1);
    const looks = ['right', false, 'right', false, 'right', false, 'right', false] as const;
    expect(rightCredit('chosen-stop', looks)).toBeCloseTo(look - before, 12);
    expect(rightCredit('chosen-stop', ['right', true])).toBeCloseTo(
      1 - 0.1 - (0.5 * 0.9 + 3 * wrong * 0.4 + 4 * wrong * (-0.2 + valueOfFound(2))),
      12,
    );
    // The right expert, the right expert with another text, alone, and one of two wrong experts.
    const asked = 0.5 * 0.6 + wrong * 0.46 + 2 * wrong * 0.3 + 4 * wrong * 0.075;
    expect(rightCredit('whom-to-ask', [])).toBeCloseTo(0.6 - asked, 12);
    expect(rightCredit('spawn', ['right', 'right'])).toBeCloseTo((1 - 0.5) / 2, 12); // the lead joins one result

    /** The expected quality less the later prices after so many looks, if it is found. */
    function valueOfFound(looks: number): number {
      if (looks === 5) return 0.75;
      return 0.5 + 3 * wrong * 0.5 + 4 * wrong * (valueOfFound(looks + 1) - 0.1);
    }
  });

  it('give turns their own rewards as training does: all of them are the return', () => {
    for (const { records } of playStage(
      family('chosen-stop'),
      { difficulty: 0.1, stage: 'start', seed: 901 },
      undefined,
    )) {
      const looks = new Set(records.map(({ turn }) => turn));
      expect(looks.size).toBeGreaterThan(2);
      for (const episode of new Set(records.map((record) => record.episode))) {
        const turns = records.filter((record) => record.episode === episode);
        const [outcome] = turns.map((turn) => turn.outcome as number);
        const steps = turns.reduce((sum, { stepReward }) => sum + (stepReward as number), 0);
        expect(steps).toBeCloseTo((outcome as number) - 0.1 * (turns.length - 1), 12);
        for (const { turn, reward } of turns)
          expect(reward).toBeCloseTo((outcome as number) - (turn < turns.length - 1 ? 0.1 : 0), 12);
      }
    }
  });

  it('refuse a difficulty outside the range of the knob, and name it', () => {
    expect(() => creditRecipe(family('long-loops'), 2.5)).toThrow(/long-loops: expected a whole number from 1 to 16/);
    expect(() => creditRecipe(family('rare-caller'), 1)).toThrow(
      /rare-caller: expected a number from 0 to 0.95, got 1/,
    );
  });
});

describe('creditScore', () => {
  const steps = playStage(family('first-error'), { difficulty: 4, stage: 'start', seed: 901 }, undefined);
  const scaled = (factor: number) =>
    defineEstimator({
      type: 'scaled',
      schema: {},
      source: 'a test',
      formula: 'the reward times a factor',
      use: 'to test',
      compute: (batch) => batch.rewards.map((reward) => factor * reward),
    }).open({ type: 'scaled' });
  const exact = steps.map((step) => ({
    ...step,
    records: step.records.map((record, i) => ({ ...record, reward: step.credit[i] as number })),
  }));

  it('is 1 for the right credits times a positive factor, -1 for a negative one, and 0 for no credit', () => {
    expect(creditScore(exact, scaled(3)).cosine).toBeCloseTo(1, 12);
    expect(creditScore(exact, scaled(3)).sign).toBe(1);
    expect(creditScore(exact, scaled(-1)).cosine).toBeCloseTo(-1, 12);
    expect(creditScore(exact, scaled(-1)).sign).toBe(0);
    expect(creditScore(exact, scaled(0))).toEqual({ cosine: 0, sign: 0 });
  });

  it('punishes an offset that is the same for all turns', () => {
    const offset = exact.map((step) => ({
      ...step,
      records: step.records.map((record) => ({ ...record, reward: record.reward + 1 })),
    }));
    expect(creditScore(offset, scaled(1)).cosine).toBeLessThan(0.5);
  });

  it('gives agents that act at once the reward of their shared step, as training does', () => {
    const twins = playStage(family('parallel-twins'), { difficulty: 4, stage: 'middle', seed: 901 }, undefined);
    for (const { stepReward, agentStepReward, reward, envStep } of twins.flatMap(({ records }) => records))
      expect([stepReward, agentStepReward, envStep]).toEqual([reward, reward, 0]);
  });

  it('gives equal bits twice, in any order of the estimators', () => {
    const cell = (estimator: string) => ({ family: 'opposed-parts', estimator, seed: 901, difficulty: 1 });
    const scores = (names: readonly string[]) => {
      const episodes = new Map();
      return Object.fromEntries(names.map((name) => [name, creditCell(cell(name), { commit: '' }, episodes).stages]));
    };
    const first = scores(['grpo', 'drmas']);
    expect(scores(['drmas', 'grpo'])).toEqual(first);
    expect(first.grpo?.start?.cosine).toBe(0); // their sum is constant, so a team's mean tells nothing
    expect(first.drmas?.start?.cosine).toBeGreaterThan(0.5);
  });

  it('opens any registered estimator by its name and choices, and refuses others', () => {
    expect(openNamed('rloo,byAgent=true').choices.byAgent).toBe(true);
    expect(() => openNamed('no-such')).toThrow(/no-such/);
  });
});

describe('results', () => {
  it('leave out a last line that was cut off, and name another line that is none', async () => {
    const root = await mkdtemp(join(tmpdir(), 'creditbench-test-'));
    try {
      const cell = { family: 'free-rider', estimator: 'grpo', seed: 11, difficulty: 3 };
      const result = { ...cell, stages: {}, origin: { commit: 'x', node: '0', seconds: 1 } };
      await addResult(root, 'credit', result);
      const path = resultsFile(root, 'credit');
      await writeFile(path, `${await readFile(path, 'utf8')}{"family": "free-r`);
      expect([...(await readPart(root, 'credit')).values()]).toEqual([result]);
      await addResult(root, 'credit', { ...result, seed: 12 });
      expect([...(await readPart(root, 'credit')).values()].map(({ seed }) => seed)).toEqual([11, 12]);
      await writeFile(path, '{"family": 3}\n');
      await expect(readPart(root, 'credit')).rejects.toThrow(`${path}:1 is not a result`);
    } finally {
      await rm(dirname(dirname(dirname(resultsFile(root, 'credit')))), { recursive: true });
    }
  });
});

describe('kendall', () => {
  it('is 1 for equal orders, -1 for opposite ones, and counts ties on neither side', () => {
    expect(kendall([1, 2, 3], [10, 20, 30])).toBe(1);
    expect(kendall([1, 2, 3], [3, 2, 1])).toBe(-1);
    expect(kendall([1, 2, 3, 4], [1, 3, 2, 4])).toBeCloseTo(4 / 6, 12); // five pairs agree, one does not
    expect(kendall([1, 1, 2], [1, 2, 3])).toBeCloseTo(2 / Math.sqrt(2 * 3), 12);
    expect(kendall([1, 1], [1, 2])).toBeNaN();
  });
});

describe('the limits of the training part', () => {
  const training = (estimator: string, last: number): TrainingResult => ({
    family: 'rare-caller',
    estimator,
    seed: 11,
    difficulty: 0.5,
    learningRate: 0.003,
    kernels: 'x',
    curve: [0.1, last],
    origin: { commit: '', node: '', seconds: 1 },
  });
  const textOf = (scores: readonly number[]) =>
    fillCreditbench('<!-- creditbench: disclosure -->\n<!-- end -->', {
      credit: [],
      decisions: [],
      training: scores.map((score, i) => training(`e${i}`, score)),
      baseline: [],
    });

  it('say how many cells are here, and which families end at one score', () => {
    const text = textOf([0.51, 0.51, 0.51, 0.2, 0.51]);
    expect(text).toMatch(/\*\*5 of [\d,]+ training cells are here\*\*: `rare-caller` \(5 cells, 1 seed\)\. So/);
    expect(text).toContain('with seed 11, 4 of 5 estimators end at 0.51');
    expect(text).toContain('on seed 901');
  });

  it('name no plateau if scores differ, or if few estimators were run', () => {
    expect(textOf([0.1, 0.2, 0.3, 0.4, 0.5])).not.toContain('plateau');
    expect(textOf([0.5, 0.5, 0.5])).not.toContain('plateau');
  });
});

describe('training', { tags: 'verify', timeout: 300_000 }, () => {
  it('gives the same curves in one process and in two', async () => {
    const words = ['training', '--family', 'rare-caller', '--seed', '901', '--rate', '0.003'];
    const estimators = ['--estimator', 'drmas', '--estimator', 'ema', '--estimator', 'grpo'];
    const curvesWith = async (threads: string) => {
      const program = ['--import', 'tsx', 'research/main.ts', 'creditbench', ...words, ...estimators];
      const { stdout } = await promisify(execFile)(process.execPath, [...program, '--threads', threads]);
      const lines = stdout.split('\n').filter((line) => line.startsWith('training'));
      return lines.map((line) => /rare-caller\S+ {2}[\d. ]+(?= [\d.]+ s,)/.exec(line)?.[0]).sort();
    };
    const together = await curvesWith('2');
    expect(together).toHaveLength(3);
    expect(together).not.toContain(undefined);
    expect(together).toEqual(await curvesWith('1'));
  });
});

describe('the levels of a baseline', () => {
  /** Each level ends at its number plus the seed's hundredth, in a file in the order of no seed. */
  const ends = { 'constant,baseline=0': 0.2, 'constant,baseline=0.5': 0.3, 'constant,baseline=1': 0.1 };
  const cells = (seeds: readonly number[]): TrainingResult[] =>
    seeds.flatMap((seed) =>
      [1 / 12, 1 / 4, 1 / 2, 3 / 4].flatMap((start) =>
        Object.entries({ ...ends, 'drmas,spread=none': 0.6, 'dr-grpo': 0.4 + (seed - 15) / 1000 }).map(
          ([estimator, end]) => ({
            family: 'rare-caller',
            estimator,
            seed,
            difficulty: 0.5,
            start,
            learningRate: 0.003,
            kernels: 'x',
            curve: [0, end + seed / 100],
            origin: { commit: '', node: '', seconds: 1 },
          }),
        ),
      ),
    );
  const textOf = (name: string, baseline: readonly TrainingResult[]) =>
    fillCreditbench(`<!-- creditbench: ${name} -->\n<!-- end -->`, {
      credit: [],
      decisions: [],
      training: [],
      baseline,
    });

  it('are compared in pairs of a seed, whatever the order of the results', () => {
    const seeds = [20, 11, 13, 12, 19, 18, 17, 14, 15, 16];
    const table = textOf('levelPairs', cells(seeds));
    expect(table).toContain('| 0 | 1/12 | 40.0 [40.0, 40.0] | 10 of 10 | 0.0020 | 0.016 | higher |');
    expect(textOf('levels', cells(seeds))).toContain("| the agent's own mean | 75.5, 75.5 |");
    expect(textOf('levelPairs', cells([...seeds].sort()))).toBe(table);
  });

  it('need pairs', () => {
    expect(textOf('levelPairs', cells([11]))).toContain('too few pairs');
    expect(textOf('levels', [])).toContain('no results of all levels');
  });
});

describe('the server', () => {
  type State =
    | { readonly done: false; readonly prompt: readonly string[] }
    | { readonly done: true; readonly score: number; readonly rewards: readonly number[] };
  const app = familiesApp();
  const post = async (episodes: readonly object[]) => {
    const reply = await app.request('/play', { method: 'POST', body: JSON.stringify({ episodes }) });
    return { status: reply.status, body: (await reply.json()) as { episodes: State[]; error?: string } };
  };

  it('plays an episode of each family to the score 1 by the right answers', async () => {
    for (const { id, knob, begin } of families) {
      const query = `family=${id}&split=train&seed=1&step=1`;
      const { tasks } = (await (await app.request(`/tasks?${query}`)).json()) as {
        tasks: Parameters<typeof begin>[0][];
      };
      const task = tasks[0] as (typeof tasks)[number];
      expect(task.difficulty).toBe(knob.usual);
      const answers: string[] = [];
      const episode = { family: id, task, seed: 1, step: 1, sample: 0, answers };
      for (;;) {
        const { body } = await post([episode]);
        const state = body.episodes[0] as State;
        if (state.done) {
          expect([state.score, state.rewards.length], id).toEqual([1, answers.length]);
          break;
        }
        answers.push(codes[callOf(begin(task), state.prompt.join(' '))?.right ?? -1] ?? '');
      }
    }
  });

  /** The call with this prompt among those that follow from right answers, whatever happens. */
  function callOf(node: Node, prompt: string): Call | undefined {
    if (node.kind === 'end') return undefined;
    if (node.kind === 'chance') return callOf(node.after(true), prompt) ?? callOf(node.after(false), prompt);
    return node.prompt.trim() === prompt ? node : callOf(node.after(node.right), prompt);
  }

  it('answers wrong requests with 400 and says what is wrong', async () => {
    const task = { sign: 0, owner: 0, difficulty: 3 };
    const episode = { family: 'free-rider', task, seed: 1, step: 1, sample: 0, answers: [] };
    const wrong = async (change: object) => {
      const { status, body } = await post([{ ...episode, ...change }]);
      return `${status} ${body.error}`;
    };
    expect(await wrong({ family: 'none' })).toMatch(/400 there is no family 'none'/);
    expect(await wrong({ task: { ...task, difficulty: 99 } })).toMatch(/400 .*difficulty 99 is out of the range/);
    expect(await wrong({ answers: ['k1', 'k1', 'k1', 'k1', 'k1'] })).toMatch(/400 the episode ended 1 answers before/);
    expect(await wrong({ task: { ...task, sign: 77 } })).toMatch(/400 /);
    expect((await app.request('/tasks?family=free-rider')).status).toBe(400);
  });
});

describe('readSubmission', () => {
  const run = { family: 'free-rider', difficulty: 3, seed: 11, curve: [0.1, 0.2, 0.3, 0.4, 0.5], episodes: 2560 };
  const text = 'a text';
  const checklist = { granularity: text, method: text, extra: text, policy: text, tuning: text, compute: text };
  const row = { benchmark: 'creditbench', version: 1, name: 'x', system: 'y', checklist, runs: [run] };

  it('takes a row, and names what is wrong with another', async () => {
    expect(readSubmission(row)).toEqual(row);
    const wrong = (runs: readonly object[]) => () => readSubmission({ ...row, runs });
    expect(wrong([{ ...run, family: 'none' }])).toThrow(/runs.0.family/);
    expect(wrong([{ ...run, difficulty: 99 }])).toThrow(/difficulty 99 is out of range/);
    expect(wrong([{ ...run, episodes: 9999 }])).toThrow(/9999 episodes are more than the budget of 2560/);
    expect(wrong([run, run])).toThrow(/two runs of free-rider at difficulty 3 with seed 11/);
    expect(wrong([{ ...run, curve: [0.5] }])).toThrow(/runs.0.curve/);
    expect(() => readSubmission({ ...row, checklist: {} })).toThrow(/checklist/);
    await expect(rowOfFile('missing.json')).rejects.toThrow(/^missing\.json: /);
  });
});
