import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PolicyHandle } from '@drmas/engine/contract';
import { TrainingError } from '@drmas/engine/errors';
import type { Episode, Turn } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { numericSettings } from '../../../../test/support/recipe-settings.js';
import { createRun, temporaryRoot, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { openRun } from '../../../runs/run/open/open-run.js';
import { prepareTasks } from '../../../runs/run/open/prepare-tasks.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { StepAdvantages } from '../advantages/advantages.js';
import { trainingRun } from '../signals/training-run.js';
import { firstProgress } from '../state/progress.js';
import { trainTeam } from '../train.js';
import type { PolicyUpdate, Updates } from '../update/update-result.js';
import { StabilityWatch, type WatchedRun } from './stability-watch.js';

const root = temporaryRoot();

type Rule = Recipe['training']['spike'];
const rule = (action: Rule['action'], floor = 0, window = 5) =>
  ({
    training: { spike: { factor: 3, floor, window, action } },
    trained: [
      { name: 'solver', settings: { clipNorm: 2 } },
      { name: 'verifier', settings: { clipNorm: 0 } },
    ],
  }) as unknown as WatchedRun;

/** Four episodes; the solver's largest advantage is in the second, the verifier's in the third. */
const advantages = { solver: [0.5, -3, 1, [0.1, 0.2]], verifier: [0, 1, [1, -4], 2] };
const advantagesOfStep = {
  turns: [0, 1, 2, 3].flatMap((sample) =>
    Object.entries(advantages).map(([agent, ofAgent]) => ({
      episode: { task: { id: 'sum', data: {} }, sample } as unknown as Episode,
      turn: { agent } as Turn,
      reward: 0,
      advantage: ofAgent[sample] as number | number[],
    })),
  ),
  episodes: [],
  byTurn: new Map(),
  byEpisode: new Map(),
  records: [],
  inflation: {},
  ownShare: {},
  calls: {},
  state: {},
} satisfies StepAdvantages;

const update = (
  gradientNorm: number | undefined,
  agents: Record<string, number | undefined>,
  outcome: PolicyUpdate['outcome'] = 'applied',
): PolicyUpdate => ({
  gradientNorm,
  learningRate: 1,
  outcome,
  agents: Object.fromEntries(
    Object.entries(agents).map(([agent, norm]) => [
      agent,
      {
        gradientNorm: norm,
        loss: 0,
        entropy: 0,
        clipFraction: 0,
        kl: 0,
        maxRatioDeviation: 0,
        logprobGap: 0,
        tokens: 1,
      },
    ]),
  ),
});
const alone = (norm: number | undefined, outcome?: PolicyUpdate['outcome']): Updates => ({
  solver: update(norm, { solver: norm }, outcome),
});

const at = (step: number) => ({ step, agents: {} });

/** A watch that has seen the norms 1, 2, 3, 4, 5: the median is 3, so a spike is above 9. */
function experienced(action: Rule['action']): StabilityWatch {
  const watch = new StabilityWatch(rule(action));
  for (const norm of [5, 1, 4, 2, 3]) {
    expect(watch.judge(at(1), advantagesOfStep, alone(norm))).toEqual({ events: [], fatal: undefined });
  }
  return watch;
}

describe('a spike', () => {
  it('is a norm above the multiple of the running median, named with the episodes behind it', () => {
    const watch = experienced('clip');
    expect(watch.skipAboveNorm('solver')).toBeUndefined();
    expect(watch.judge(at(6), advantagesOfStep, alone(9)).events).toEqual([]);
    // The window is now 1, 4, 2, 3, 9: median 3.
    expect(watch.judge(at(7), advantagesOfStep, alone(9.01))).toEqual({
      events: [
        {
          type: 'spike',
          step: 7,
          policy: 'solver',
          agent: 'solver',
          gradientNorm: 9.01,
          median: 3,
          action: 'clip',
          episodes: ['sum/1', 'sum/2', 'sum/0'],
        },
      ],
      fatal: undefined,
    });
    // 4, 2, 3, 9, 9.01: the median is 4, so a norm that is usual now is not a spike.
    expect(watch.judge(at(8), advantagesOfStep, alone(11.9)).events).toEqual([]);
  });

  it('needs five norms to be compared with', () => {
    const watch = new StabilityWatch(rule('clip'));
    for (const norm of [1, 1, 1, 1, 1000]) expect(watch.judge(at(1), advantagesOfStep, alone(norm)).events).toEqual([]);
    expect(watch.judge(at(2), advantagesOfStep, alone(1000)).events).toHaveLength(1);
  });

  const { values: windows = [] } = numericSettings({}).find(({ path }) => path === 'training.spike.window') ?? {};
  it.each(windows)('is found with a window of %i', (window) => {
    const watch = new StabilityWatch(rule('skip', 0, Number(window)));
    for (let step = 1; step <= 5; step++) watch.judge(at(step), advantagesOfStep, alone(1));
    expect(watch.skipAboveNorm('solver')).toBe(3);
    expect(watch.judge(at(6), advantagesOfStep, alone(1000)).events).toHaveLength(1);
  });

  it('is not found in a policy that learned nothing lately', () => {
    const watch = new StabilityWatch(rule('skip'));
    for (let i = 0; i < 5; i++) watch.judge(at(1), advantagesOfStep, alone(0));
    expect(watch.skipAboveNorm('solver')).toBeUndefined();
    expect(watch.judge(at(2), advantagesOfStep, alone(7)).events).toEqual([]);
  });

  it('is compared with no step in which the policy waited for its critic', () => {
    const watch = new StabilityWatch(rule('clip'));
    const judged = (updates: Updates) => watch.judge(at(1), advantagesOfStep, updates).events;
    for (let i = 0; i < 2; i++) expect(judged({ solver: update(0, {}) })).toEqual([]);
    // The median of 0, 0, 1, 2, 2 would be 1.
    for (const norm of [1, 2, 2, 3.5]) expect(judged(alone(norm))).toEqual([]);
  });

  it('is not found below the floor, a multiple of the clipping norm (of 1 without clipping)', () => {
    const watch = new StabilityWatch(rule('skip', 0.5));
    const both = (norm: number) => ({ ...alone(norm), verifier: update(norm, { verifier: norm }) });
    for (let i = 0; i < 5; i++) watch.judge(at(1), advantagesOfStep, both(1e-4));
    expect(watch.skipAboveNorm('solver')).toBe(1);
    expect(watch.skipAboveNorm('verifier')).toBe(0.5);
    expect(watch.judge(at(2), advantagesOfStep, both(0.5)).events).toEqual([]);
    expect(watch.judge(at(3), advantagesOfStep, both(0.9)).events).toMatchObject([
      { policy: 'verifier', median: 1e-4 },
    ]);
  });

  it('is not found in a policy that is nearly always right and rarely learns: a trace of such a run', () => {
    // Norms of a coder whose tests pass in nearly every episode: rounding, except in the steps with a mistake.
    const trace = [
      2.4e-12, 0.028, 2.8e-12, 5.1e-12, 1.3e-11, 0.25, 0.1, 2.9e-12, 2.7e-12, 3.6e-12, 6.9e-12, 8.7e-12, 3.7e-11,
      4.6e-11, 8.4e-11, 4.9e-11, 0.81, 0.035, 1.2e-11, 7.5e-12, 0.13, 3.6e-12, 0.14, 6.4e-12, 2.6e-11, 2e-11, 0.45,
    ];
    const spikesWith = (floor: number) => {
      const watch = new StabilityWatch(rule('stop', floor));
      return trace.filter((norm) => watch.judge(at(1), advantagesOfStep, alone(norm)).fatal !== undefined).length;
    };
    // Rounding is no usual norm, so that not even a floor is needed.
    expect(spikesWith(0)).toBe(0);
    expect(spikesWith(tinyRecipe().training.spike.floor)).toBe(0);
  });

  it("skip: the update above the limit is not made, and the event says 'skipped'", () => {
    const watch = experienced('skip');
    expect(watch.skipAboveNorm('solver')).toBe(9);
    expect(watch.skipAboveNorm('verifier')).toBeUndefined();
    const { events, fatal } = watch.judge(at(6), advantagesOfStep, alone(10, 'skipped'));
    expect(events).toMatchObject([{ type: 'skipped', action: 'skip', gradientNorm: 10, median: 3 }]);
    expect(fatal).toBeUndefined();
  });

  it('stop: ends the run with the reason', () => {
    const { events, fatal } = experienced('stop').judge(at(6), advantagesOfStep, alone(10, 'skipped'));
    expect(events).toMatchObject([{ type: 'skipped', action: 'stop' }]);
    expect(fatal).toMatch(/policy 'solver' is 10\.0, its median 3\.00, and training\.spike\.action is stop/);
  });

  it('of an agent that shares its policy is found besides the spike of the policy', () => {
    const watch = new StabilityWatch(rule('clip'));
    const shared = (solver: number, verifier: number) => ({ all: update(2, { solver, verifier }) });
    for (let i = 0; i < 5; i++) watch.judge(at(1), advantagesOfStep, shared(1, 1));
    expect(watch.judge(at(6), advantagesOfStep, shared(1, 5)).events).toEqual([
      {
        type: 'spike',
        step: 6,
        policy: 'all',
        agent: 'verifier',
        gradientNorm: 5,
        median: 1,
        action: 'clip',
        episodes: ['sum/2', 'sum/3', 'sum/1'],
      },
    ]);
  });

  it('is found in the same way by a watch that was saved and opened again', () => {
    const watch = new StabilityWatch(rule('skip'), JSON.parse(JSON.stringify(experienced('skip').state)));
    expect(watch.skipAboveNorm('solver')).toBe(9);
  });
});

describe('a gradient that is not a number', () => {
  const judgeAll = (watch: StabilityWatch, norms: readonly (number | 'dropped')[]) =>
    norms.map((norm) =>
      watch.judge(at(6), advantagesOfStep, norm === 'dropped' ? alone(undefined, norm) : alone(norm)),
    );

  it('gets a warning, is not stored as a norm, and ends the run the third time in a row', () => {
    const watch = experienced('clip');
    const [first, second, third] = judgeAll(watch, ['dropped', 'dropped', 'dropped']);
    const skipped = { type: 'skipped', policy: 'solver', gradientNorm: null, median: 3, action: 'skip' };
    expect(first).toMatchObject({ events: [skipped], fatal: undefined });
    expect(second).toMatchObject({ events: [skipped], fatal: undefined });
    expect(third).toMatchObject({ events: [skipped], fatal: expect.stringMatching(/not a number 3 steps in a row/) });
    expect(watch.state.norms.solver).toEqual([5, 1, 4, 2, 3]);
  });

  it('twice with a good one between does not', () => {
    const watch = experienced('clip');
    const fatal = judgeAll(watch, ['dropped', 'dropped', 1, 'dropped', 'dropped']).map((judged) => judged.fatal);
    expect(fatal).toEqual(new Array(5).fill(undefined));
  });

  it('is still counted after an interruption', () => {
    const before = experienced('clip');
    judgeAll(before, ['dropped', 'dropped']);
    const watch = new StabilityWatch(rule('clip'), JSON.parse(JSON.stringify(before.state)));
    expect(judgeAll(watch, ['dropped'])[0]?.fatal).toBeDefined();
  });

  it('never reaches the weights: the run ends with its last checkpoint intact', async () => {
    const recipe = tinyRecipe({}, ['training.steps=9', 'training.checkpointEvery=1', 'evaluation.every=100']);
    const run = await openRun(recipe, await prepareTasks(recipe), nodeHost({ threads: 1 }));
    const progress = { ...firstProgress(run), evaluated: 0 };
    try {
      const verifier = run.models.verifier as PolicyHandle;
      for (const { handle } of run.trained) await handle.publish();
      const log = await createRun(root, recipe);
      // From the third step on the verifier's advantages are infinite.
      const forwardBackward: PolicyHandle['forwardBackward'] = (samples, options) => {
        const infinite = (advantages: Float32Array) => advantages.map((a) => (a === 0 ? 0 : a / 0));
        return verifier.forwardBackward(
          progress.step >= 2
            ? samples.map((sample) => ({ ...sample, advantages: infinite(sample.advantages) }))
            : samples,
          options,
        );
      };
      const poisoned = new Proxy(verifier, {
        get: (target, name) => {
          if (name === 'forwardBackward') return forwardBackward;
          const member = Reflect.get(target, name) as unknown;
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
      const trained = run.trained.map((model) => (model.name === 'verifier' ? { ...model, handle: poisoned } : model));
      const poisonedRun = trainingRun({ ...run, trained });
      await expect(trainTeam(poisonedRun, progress, log)).rejects.toThrow(TrainingError);
      expect(progress.step).toBe(5);
      const skipped = (await log.events()).filter(({ type }) => type === 'skipped');
      expect(skipped).toMatchObject([3, 4, 5].map((step) => ({ step, policy: 'verifier', gradientNorm: null })));

      const model = (step: number, policy: string) =>
        readFile(join(log.path, 'checkpoints', `step-00000${step}`, policy, 'model.safetensors'));
      expect((await log.latestCheckpoint())?.step).toBe(4);
      expect(await model(4, 'verifier')).toEqual(await model(2, 'verifier'));
      expect(await model(4, 'solver')).not.toEqual(await model(2, 'solver'));
      const now = join(log.path, 'now');
      await nodeFiles.makeDirectory(now);
      await verifier.save(now);
      expect(await readFile(join(now, 'model.safetensors'))).toEqual(await model(2, 'verifier'));
    } finally {
      await run.dispose();
    }
  });
});
