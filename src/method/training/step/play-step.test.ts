import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Step } from '@drmas/engine/events';
import { mean } from '@drmas/engine/math';
import type { TaskSource } from '@drmas/engine/nouns';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fakeRun } from '../../../../test/support/fake-run.js';
import { takesTime } from '../../../../test/support/time-and-chance.js';
import { eventsOf, filesOf, temporaryRoot, tinyRecipe, trainTiny } from '../../../../test/support/tiny-run.js';
import { executeRun } from '../../../runs/run/execute/execute-run.js';
import type { Script } from '../../../runs/testing/scripted-sampler.js';
import { agent } from '../../../teams/team/agent.js';
import { integer } from '../../../teams/team/parsers.js';
import { defineTeam } from '../../../teams/team/team.js';
import { filterGroups } from '../../advantage/filter.js';
import { readEpisodes } from '../../store/episode-files.js';
import { RunDirectory } from '../../store/run-directory.js';
import type { Predictions } from '../play/curriculum.js';
import { baselinesOf } from '../signals/greedy-baselines.js';
import { trainTeam } from '../train.js';
import { playStep, type StepPlayer } from './play-step.js';

const root = temporaryRoot();
const rolloutStep = (run: StepPlayer, step: number, predictions: Predictions = {}) =>
  playStep(run, { step: step - 1, predictions });

/** Task n asks for n. */
const numbered = (size: number): TaskSource => ({
  name: 'numbered',
  load: async () => ({ name: 'numbered', size, at: (index) => ({ id: `t${index}`, data: { n: index } }) }),
});

/** The reward is the number in the answer. An invalid answer earns nothing and costs a tenth. */
const team = defineTeam({
  name: 'teller',
  task: z.object({ n: z.number() }),
  agents: { teller: agent({ parse: integer, invalidPenalty: 0.1, sampling: { maxTokens: 4 } }) },
  play: async ({ task, agents: { teller } }) => (await teller(`${task.n}`)).value ?? 0,
  reward: ({ outcome }) => outcome,
});

/** Siblings of even tasks answer 0, 1, 0, 1 ...; siblings of odd tasks all answer 1. A greedy episode answers 3. */
function script(): Script {
  const requests = new Map<string, number>();
  return ({ prompt, request }) => {
    if (request.temperature === 0) return '3';
    const n = Number(/\d+/.exec(prompt)?.[0]);
    const sibling = requests.get(prompt) ?? 0;
    requests.set(prompt, sibling + 1);
    return n % 2 === 0 ? `${sibling % 2}` : '1';
  };
}

const recipe = (overrides: readonly string[], tasks = numbered(40)) =>
  tinyRecipe(
    { team, tasks, training: { steps: 1, tasksPerStep: 4, groupSize: 4 }, evaluation: { tasks: 1 } },
    overrides,
  );

const runOf = async (overrides: readonly string[], tasks?: TaskSource, says: Script = script()) =>
  (await fakeRun(root, recipe(overrides, tasks), says)).run;

const idsOf = (groups: readonly { readonly task: { readonly id: string } }[]) => groups.map(({ task }) => task.id);
const isMixed = (id: string) => Number(id.slice(1)) % 2 === 0;
const REFILL = ['training.filter.type=equal-outcomes', 'training.filter.refill.maxRounds=9'];

describe('the episodes of a step', () => {
  it('are all learnt from if there is no filter', async () => {
    const played = await rolloutStep(await runOf([]), 1);
    expect(played.kept).toEqual(played.all);
    expect(played.filter).toBeUndefined();
    expect(played.extra.episodes).toEqual([]);
  });

  it('equal outcomes: drops the same groups as the exported filter', async () => {
    const { all, kept, filter } = await rolloutStep(await runOf(['training.filter.type=equal-outcomes']), 1);
    expect(all).toHaveLength(4);
    const rewards = all.flatMap(({ episodes }) => episodes.map(({ score }) => score.team));
    expect(kept.flatMap(({ episodes }) => episodes)).toEqual(
      filterGroups(rewards, { groupSize: 4 }).map((i) => all.flatMap(({ episodes }) => episodes)[i]),
    );
    expect(idsOf(kept)).toEqual(idsOf(all).filter(isMixed));
    const dropped = 4 - kept.length;
    expect(filter).toEqual({ rounds: 1, played: 4, refilled: 0, dropped, surplus: 0, kept: kept.length });
  });

  it('refill: plays further tasks until the step is full, each once, the same tasks every time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1000 }), async (step) => {
        const { all, kept, filter } = await rolloutStep(await runOf(REFILL), step);
        expect(kept).toHaveLength(4);
        expect(idsOf(kept).every(isMixed)).toBe(true);
        expect(idsOf(kept)).toEqual(idsOf(all).filter(isMixed).slice(0, 4));
        expect(new Set(idsOf(all)).size).toBe(all.length);
        expect(filter).toMatchObject({ played: all.length, refilled: all.length - 4, kept: 4 });
        expect((filter?.dropped ?? 0) + (filter?.surplus ?? 0)).toBe(all.length - 4);
        expect(idsOf((await rolloutStep(await runOf(REFILL), step)).all)).toEqual(idsOf(all));
      }),
      { numRuns: 5 },
    );
  });

  it('refill: other seeds and steps play other tasks', async () => {
    const taken = async (overrides: readonly string[], step: number) =>
      idsOf((await rolloutStep(await runOf([...REFILL, ...overrides]), step)).all);
    expect(await taken(['seed=2'], 1)).not.toEqual(await taken([], 1));
    expect(await taken([], 2)).not.toEqual(await taken([], 1));
  });

  it('refill: ends with the rounds, or with the tasks, and learns from the kept groups', async () => {
    const never: Script = () => '1';
    const rounds = await rolloutStep(await runOf(REFILL, numbered(1000), never), 1);
    expect(rounds.filter).toEqual({ rounds: 9, played: 36, refilled: 32, dropped: 36, surplus: 0, kept: 0 });
    const tasks = await rolloutStep(await runOf(REFILL, numbered(6)), 1);
    expect(tasks.all).toHaveLength(6);
    expect(idsOf(tasks.kept).sort()).toEqual(['t0', 't2', 't4']);
  });

  it('variance: the fraction of the groups that vary most', async () => {
    const wide: Script = ({ prompt, request }) => `${Number(/\d+/.exec(prompt)?.[0]) * (Number(request.key[0]) % 2)}`;
    const { all, kept, filter } = await rolloutStep(
      await runOf(['training.filter.type=variance', 'training.filter.keep=0.5'], numbered(40), wide),
      1,
    );
    const spread = ({ episodes }: (typeof all)[number]) => {
      const scores = episodes.map(({ score }) => score.team);
      return mean(scores.map((score) => (score - mean(scores)) ** 2));
    };
    const widest = [...all].sort((a, b) => spread(b) - spread(a)).slice(0, 2);
    expect(kept).toEqual(all.filter((group) => widest.includes(group)));
    expect(filter).toMatchObject({ played: 4, dropped: 2, kept: 2 });
  });

  it('compares the chosen score: the outcome alone, or with penalties', async () => {
    // Zero and invalid answers earn nothing; an invalid answer costs a penalty.
    let calls = 0;
    const garbage = (): Script => () => (calls++ % 2 === 0 ? '0' : '=');
    const kept = async (score: string) =>
      (
        await rolloutStep(
          await runOf(['training.filter.type=equal-outcomes', `training.filter.score=${score}`], undefined, garbage()),
          1,
        )
      ).kept.length;
    expect([await kept('outcome'), await kept('outcome+penalties'), await kept('mean')]).toEqual([0, 4, 4]);
  });
});

describe('a filtered run', () => {
  it('learns from the kept groups alone, divides by their tokens, and records all groups', async () => {
    const { run, progress, log, submitted } = await fakeRun(root, recipe(REFILL), script());
    await trainTeam(run, progress, log);
    const step = (await log.events()).find((event): event is Extract<typeof event, Step> => event.type === 'step');
    const episodes = await readEpisodes(nodeFiles, log.stepEpisodesPath(1));
    const { played = 0, kept } = step?.filter ?? {};
    expect([played * 4, kept]).toEqual([episodes.length, 4]);
    expect(step?.agents.teller?.turns).toBe(played * 4);
    expect(step?.reward?.mean).toBeCloseTo(mean(episodes.map(({ score }) => score.team)), 12);
    expect((step?.groups.mixed ?? 0) + (step?.groups.allRight ?? 0)).toBe(played);
    const learnt = episodes.filter(({ turns }) => turns[0]?.advantage !== undefined);
    expect(new Set(learnt.map(({ task }) => task.id)).size).toBe(4);
    const tokens = learnt.reduce((sum, { turns }) => sum + (turns[0]?.response.length ?? 0), 0);
    expect(submitted.map(({ samples, options }) => [samples.length, options.normalizer])).toEqual([[16, tokens]]);
  });

  it('survives a step in which every group is dropped, without an update', async () => {
    const { run, progress, log, steps } = await fakeRun(
      root,
      recipe(['training.filter.type=equal-outcomes']),
      () => '1',
    );
    await trainTeam(run, progress, log);
    expect(steps).toEqual([]);
    expect((await log.events()).filter(({ type }) => type === 'step')).toMatchObject([
      { filter: { kept: 0, dropped: 4 }, reward: { mean: 1 }, agents: { teller: { turns: 16, maxAbsAdvantage: 0 } } },
    ]);
  });

  it('resumes from a checkpoint without a difference, with further tasks too', { tags: 'verify' }, async () => {
    const filtered = tinyRecipe({}, [...REFILL, 'training.groupSize=2', 'warmStart.steps=2', 'seed=2']);
    const whole = await trainTiny(root, filtered);
    const [events, files] = [await eventsOf(whole), await filesOf(whole)];
    const refilled = events.flatMap((event) => (event.type === 'step' ? [event.filter?.refilled] : []));
    expect(refilled.slice(2)).not.toEqual([0, 0]);
    await rm(join(whole.path, 'checkpoints', 'step-000004'), { recursive: true });
    const run = await RunDirectory.open(whole.path);
    const checkpoint = await run.latestCheckpoint();
    expect(checkpoint?.step).toBe(2);
    await run.rewind(checkpoint);
    await executeRun(filtered, run, nodeHost({ threads: 1 }), { checkpoint });
    expect(await eventsOf(run)).toEqual(events);
    expect(await filesOf(run)).toEqual(files);
  });

  it('needs groups', async () => {
    await expect(runOf([...REFILL, 'training.groupSize=1'])).rejects.toThrow(
      'training.filter: compares the episodes of a group: expected training.groupSize to be at least 2',
    );
  });
});

describe('the episodes of the next step', () => {
  /** A run of five steps of eight episodes, and when each thing first happened in it, with its step. */
  async function happenedIn(overrides: readonly string[] = [], { secondsOfUpdate = 0, failsAt = 0, waitMs = 20 } = {}) {
    const happened: string[] = [];
    const ends: boolean[] = [];
    let [episodes, answers, updates, now] = [0, 0, 0, 0];
    const note = (what: string) => happened.includes(what) || happened.push(what);
    const noted = defineTeam({
      ...team,
      async play({ task, agents: { teller }, signal }) {
        note(`begin ${Math.floor(episodes++ / 8) + 1}`);
        signal.addEventListener('abort', () => ends.push(true));
        return (await teller(`${task.n}`)).value ?? 0;
      },
    });
    const says = script();
    const brief = ['training.steps=5', 'training.tasksPerStep=2', 'evaluation.every=100', 'training.checkpointEvery=4'];
    const { run, progress, log } = await fakeRun(
      root,
      tinyRecipe({ team: noted, tasks: numbered(40) }, [...brief, ...overrides]),
      (call) => {
        note(`answers ${Math.floor(answers++ / 8) + 1}`);
        return says(call);
      },
      {
        async forwardBackward() {
          note(`update ${++updates}`);
          if (waitMs > 0) await takesTime(waitMs);
          if (updates === failsAt) throw new Error('the server is gone');
          now += secondsOfUpdate;
          return { loss: 0, gradientNorm: 1, tokens: 1, metrics: {} as never };
        },
        async publish() {
          note(`publish ${updates}`);
          return 3;
        },
      },
    );
    const host = { ...run.host, clock: { ...run.host.clock, seconds: () => now } };
    const done = trainTeam({ ...run, host }, progress, log);
    return { happened, done, ends, episodes: () => episodes, log };
  }
  const evaluation = ['begin 6', 'answers 6'];
  const inTurn = (step: number) => [`begin ${step}`, `answers ${step}`, `update ${step}`, `publish ${step}`];
  const early = (step: number) => [`update ${step}`, `begin ${step + 1}`, `publish ${step}`, `answers ${step + 1}`];

  it('begin during a short update, and their agents answer after it', async () => {
    const { happened, done, log } = await happenedIn();
    await done;
    // The first update shows that updates are short. A checkpoint follows step 4, and an evaluation follows step 5.
    const second = ['begin 2', 'answers 2', ...early(2), ...early(3), 'update 4', 'publish 4'];
    expect(happened).toEqual([...inTurn(1), ...second, ...inTurn(5), ...evaluation]);
    const slow = await happenedIn([], { secondsOfUpdate: 2 });
    await slow.done;
    expect(slow.happened).toEqual([...[1, 2, 3, 4, 5].flatMap(inTurn), ...evaluation]);
    const episodesOf = (run: RunDirectory) => readEpisodes(nodeFiles, run.stepEpisodesPath(3));
    expect(await episodesOf(log)).toEqual(await episodesOf(slow.log));
  });

  it.each(['evaluation.every=1', 'training.checkpointEvery=1', 'training.stopWhen.minutes=9'])(
    'begin after %s had its say',
    async (override) => {
      const { happened, done } = await happenedIn([override]);
      await done;
      for (const [i, what] of happened.entries())
        if (what.startsWith('update')) expect(happened[i + 1], happened.join()).toMatch('publish');
    },
  );

  it('begin once, also if everything before the next step is done at once', async () => {
    const { done, episodes, happened } = await happenedIn(
      ['training.keepEpisodes=false', 'evaluation.samples=1', 'evaluation.tasks=1'],
      { waitMs: 0 },
    );
    await done;
    expect(episodes()).toBe(5 * 8 + 1);
    expect(happened).toContain('publish 5');
  });

  it('end if the update fails', async () => {
    const { happened, done, ends, episodes } = await happenedIn([], { failsAt: 3 });
    await expect(done).rejects.toThrow('the server is gone');
    expect(happened.slice(-2)).toEqual(['update 3', 'begin 4']);
    expect(ends).toHaveLength(episodes());
  });
});

it('agents that share their statistics are agents of the team', async () => {
  await expect(runOf(['advantage.shareStatistics=[["teller","telller"]]'])).rejects.toThrow(
    "advantage.shareStatistics: the team has no agent 'telller'; did you mean 'teller'?",
  );
});

describe('greedy baselines', () => {
  it('are one episode a task at temperature 0, counted separately and not learnt from', async () => {
    const { run, progress, log, submitted } = await fakeRun(root, recipe(['advantage.type=remax']), script());
    const { kept, extra } = await rolloutStep(run, 1);
    const greedy = extra.episodes;
    expect(idsOf(greedy)).toEqual(idsOf(kept));
    expect(greedy.flatMap(({ turns }) => turns.map(({ temperature, text }) => [temperature, text]))).toEqual(
      new Array(4).fill([0, '3']),
    );
    await trainTeam(run, progress, log);
    const step = (await log.events()).find((event): event is Extract<typeof event, Step> => event.type === 'step');
    expect(step?.baseline).toEqual({ episodes: 4, reward: 3, failed: 0 });
    expect(step?.agents.teller?.turns).toBe(16);
    expect(step?.tokens.sampled).toBe(2 * (16 + 4)); // a digit and the stop token each
    const advantages = submitted[0]?.samples.map(({ advantages, mask }) => advantages[mask.indexOf(1)]);
    const rewards = kept.flatMap(({ episodes }) => episodes.map(({ score }) => score.team));
    expect(advantages).toEqual(rewards.map((reward) => reward - 3));
  });

  it("is the mean of the agent's own turns, penalties and rewards of its own included; else the reward that it would have had", () => {
    const turn = (of: string, more = {}) => ({ agent: of, penalty: 0, ...more });
    const score = { team: 1, agents: { critic: 0.5 }, parts: {} };
    const task = { id: 't', data: {} };
    const greedy = [
      {
        task,
        sample: 0,
        outcome: 1,
        score,
        turns: [turn('solver', { penalty: 0.25 }), turn('solver', { stepReward: 1 })],
      },
    ];
    const turns = [turn('solver'), turn('critic'), turn('judge')];
    const groups = [{ task, episodes: [{ task, sample: 0, outcome: 1, score, turns }] }];
    const baselines = baselinesOf(groups as never, greedy as never, 'exclude');
    expect(turns.map((one) => baselines.get(one as never)?.baseline)).toEqual([(0.75 + 2) / 2, 0.5, 1]);
    expect(baselinesOf(groups as never, [], 'exclude').size).toBe(0);
  });

  it('is the reward of the turn itself if the greedy episode failed and does not count', () => {
    const task = { id: 't', data: {} };
    const failed = (reason: string) => {
      const score = { team: -0.5, agents: {}, parts: {} };
      return [{ task, sample: 0, score, turns: [{ agent: 'solver', penalty: 0 }], failure: { reason, message: '' } }];
    };
    const turn = { agent: 'solver', penalty: 0.25 };
    const score = { team: 1, agents: {}, parts: {} };
    const groups = [{ task, episodes: [{ task, sample: 0, outcome: 1, score, turns: [turn] }] }];
    const baseline = (reason: string, rule: 'exclude' | 'zero') =>
      baselinesOf(groups as never, failed(reason) as never, rule).get(turn as never)?.baseline;
    expect(baseline('backend', 'exclude')).toBe(0.75);
    expect([baseline('backend', 'zero'), baseline('invalid-output', 'exclude')]).toEqual([-0.5, -0.5]);
  });
});
