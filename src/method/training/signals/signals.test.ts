import type { Step } from '@drmas/engine/events';
import type { Episode, Score, Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { fakeRun } from '../../../../test/support/fake-run.js';
import { temporaryRoot, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { noScore } from '../../../teams/rollout.js';
import { defineEstimator } from '../../advantage/define-estimator.js';
import type { PlannedStep, Signal, TurnSignals } from '../run/signal.js';
import { learnStep } from '../step/learn-step.js';
import { playStep } from '../step/play-step.js';
import { stepEvents } from '../step/record-step.js';
import { trainTeam } from '../train.js';
import { baselinesOf } from './greedy-baselines.js';
import { signals, together, wantedSignals } from './index.js';

const [first, second] = [{ turn: 0 }, { turn: 1 }] as [Turn, Turn];

it('joins the numbers of turns; the last number of a field wins', () => {
  const joined = together([
    new Map([[first, { baseline: 1, signals: { a: 1 } }]]),
    new Map([
      [first, { kl: [2], signals: { b: 2 } }],
      [second, { baseline: 3 }],
    ]),
    new Map([[second, { baseline: 4 }]]),
  ]);
  expect(joined.get(first)).toEqual({ baseline: 1, kl: [2], signals: { a: 1, b: 2 } });
  expect(joined.get(second)).toEqual({ baseline: 4 });
});

it.each([
  ['drmas', {}, []],
  ['remax', {}, ['greedy']],
  ['counterfactual', {}, ['branches']],
  ['gae', {}, ['values']],
  ['gae', { solver: { kl: { coefficient: 1 } } }, ['reference-kl', 'values']],
] as const)('%s with %j wants %j', (type, policies, names) => {
  const recipe = tinyRecipe({ advantage: { type }, policies });
  expect(wantedSignals(recipe).map(({ name }) => name)).toEqual(names);
});

describe('the baseline of an agent that the greedy episode does not call', () => {
  const turnOf = (agent: string) => ({ agent, turn: 0, penalty: 0 }) as Turn;
  const episodeOf = (agents: readonly string[], score: Partial<Score>, more: Partial<Episode> = {}) =>
    ({
      task: { id: 't', data: {} },
      sample: 0,
      turns: agents.map(turnOf),
      score: { ...noScore, ...score },
      ...more,
    }) as Episode;
  const baselineOf = (greedy: Episode, score: Partial<Score>) => {
    const episode = episodeOf(['checker'], score);
    const byTurn = baselinesOf([{ task: episode.task, episodes: [episode] }], [greedy], 'exclude');
    return byTurn.get(episode.turns[0] as Turn)?.baseline;
  };
  const own = { team: 1, agents: { checker: 0.25 } };

  it('is the reward that it would have had', () => {
    expect(baselineOf(episodeOf(['solver'], { team: 1 }), { team: 0 })).toBe(1);
    expect(baselineOf(episodeOf(['solver'], own), { team: 0, agents: { checker: 0.75 } })).toBe(0.25);
  });

  it("is the turn's own reward if only one of the episodes has a reward of the agent's own", () => {
    expect(baselineOf(episodeOf(['solver'], { team: 1 }), own)).toBe(0.25);
    expect(baselineOf(episodeOf(['solver'], own), { team: 0 })).toBe(0);
  });

  it('is what a failed episode earns if the agents caused the failure', () => {
    const failure = { reason: 'overlong', message: '' } as const;
    expect(baselineOf(episodeOf(['solver'], noScore, { failure }), own)).toBe(0);
  });
});

// A signal and an estimator that only this file defines, to show that no other code needs to know them.

const root = temporaryRoot();

/**
 * The number of characters of each turn, and one cold episode of each task, which costs tokens and is not learnt from.
 */
const brevity: Signal = {
  name: 'brevity',
  field: 'signals',
  async play({ team, executor, host: { signal } }, { step, groups }) {
    const tasks = groups.map(({ task }) => task);
    const sampling = { temperature: 0.25 };
    const played = await executor.playGroups({
      team,
      tasks,
      groupSize: 1,
      phase: 'baseline',
      step,
      sampling,
      signal,
    });
    return { episodes: played.flatMap(({ episodes }) => episodes), byTurn: new Map() };
  },
  async score(turns) {
    const learnt = turns.flatMap(({ chains }) => chains.flat());
    return new Map(
      learnt.map((turn): [typeof turn, TurnSignals] => [turn, { signals: { brevity: turn.text.length } }]),
    );
  },
  plan: ({ tasks }) => ({ episodes: tasks, whole: tasks, note: 'one cold episode a task' }),
  checks: ({ estimator }, { endpoints }) => [
    { path: 'advantage.type', test: endpoints.length === 0, message: `'${estimator.type}' wants models` },
  ],
};

/** Shorter turns get larger advantages. */
const shortest = defineEstimator({
  type: 'shortest',
  schema: {},
  source: 'this test',
  formula: '- characters',
  use: 'to show that an estimator and its signal are two files',
  traits: { needs: 'brevity' },
  laws: () => ({ shift: ['reward'] }),
  compute: (batch) => batch.numbers('brevity', ({ signals }) => signals?.brevity as number).map((length) => -length),
});

const recipe = tinyRecipe({}, ['training.steps=1', 'evaluation.tasks=1']);

async function ownRun() {
  const faked = await fakeRun(root, recipe, ({ index }) => '12345'.slice(index % 4));
  const estimator = shortest.open({ type: 'shortest' });
  const settings = { estimator, policies: recipe.policies };
  return { ...faked, run: { ...faked.run, estimator, signals: wantedSignals(settings, [...signals, brevity]) } };
}

it('is needed only by the estimator that names it', async () => {
  const { run } = await ownRun();
  expect(run.signals).toEqual([brevity]);
  const other = { ...run.estimator, traits: {} };
  expect(wantedSignals({ estimator: other, policies: recipe.policies }, [...signals, brevity])).toEqual([]);
});

it('plays a step with it: the estimator gets its numbers, the event its episodes', async () => {
  const { run, progress } = await ownRun();
  const played = await playStep(run, progress);
  expect(played.extra.episodes).toHaveLength(run.training.tasksPerStep);
  const learnt = await learnStep(run, progress, played);
  expect(learnt.advantages.turns.length).toBeGreaterThan(0);
  for (const { turn, advantage } of learnt.advantages.turns) expect(advantage).toBe(-turn.text.length);
  const recorded = stepEvents(run, played, learnt).at(-1) as Step;
  expect(recorded.baseline).toMatchObject({ episodes: run.training.tasksPerStep, failed: 0 });
  const tokens = (episodes: typeof played.extra.episodes) =>
    episodes.flatMap(({ turns }) => turns).reduce((sum, { response }) => sum + response.length, 0);
  const scored = played.scored.flatMap(({ episodes }) => episodes);
  expect(recorded.tokens.sampled).toBe(tokens(scored) + tokens(played.extra.episodes));
});

it('trains a whole run with it', async () => {
  const { run, progress, log, submitted } = await ownRun();
  await trainTeam(run, progress, log);
  expect(progress.step).toBe(1);
  for (const { samples } of submitted)
    for (const { advantages, mask } of samples) expect(advantages[mask.indexOf(1)]).toBeLessThan(0);
});

it('reports its rollouts to plans, and its requirements to recipes', async () => {
  const { run } = await ownRun();
  const step: PlannedStep = { estimator: run.estimator, tasks: 3, episodes: 12, calls: { all: 2, learnt: 2 } };
  expect(brevity.plan?.(step)).toMatchObject({ episodes: 3, whole: 3 });
  const settings = { estimator: run.estimator, policies: recipe.policies };
  const endpoints = [{ agents: ['solver'] }] as unknown as typeof run.assignment.endpoints;
  const [required] = brevity.checks?.(settings, { ...run.assignment, endpoints }) ?? [];
  expect(required).toMatchObject({ test: false, message: "'shortest' wants models" });
});

it('an error names the number if the signal of an estimator is missing', async () => {
  const { run, progress } = await ownRun();
  const played = await playStep({ ...run, signals: [] }, progress);
  await expect(learnStep({ ...run, signals: [] }, progress, played)).rejects.toThrow('brevity must be a finite number');
});
