import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent, Step, Warmup } from '@drmas/engine/events';
import { nodeFiles, nodeHost } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { digitTeam, temporaryRoot, tinyRecipe, trainTiny } from '../../../../../test/support/tiny-run.js';
import { readEpisodes, type StoredEpisode } from '../../../../method/store/episode-files.js';
import type { RunDirectory } from '../../../../method/store/run-directory.js';
import { probeRecipe } from './probe-recipe.js';

const root = temporaryRoot();
const recipe = tinyRecipe();
const host = nodeHost({ threads: 1 });
let run: RunDirectory;
beforeAll(async () => {
  run = await trainTiny(root, recipe);
});

/** A stored episode without the effect of an update on its tokens, because a probe makes no update. */
const asPlayed = ({ turns, ...episode }: StoredEpisode) => ({
  ...episode,
  turns: turns.map(({ ratio: _, clipped: _clipped, ...turn }) => turn),
});

describe('probeRecipe', () => {
  it('plays the same first step as a run, from the cached warm start, and writes nothing', async () => {
    const before = await readdir(root, { recursive: true });
    const report = await probeRecipe(recipe, host, { tasks: 2 });
    expect(await readdir(root, { recursive: true })).toEqual(before);
    const events = await run.events();
    const step = events.find((event): event is Step & RunEvent => event.type === 'step');
    expect(report).toMatchObject({ start: 'warm start', tasks: 2, groupSize: 4, episodes: 8 });
    expect(report.projection.warmStart).toBe(0);
    expect(report.reward).toBeCloseTo(step?.reward?.mean ?? Number.NaN, 12);
    expect(report.success.mean).toBeCloseTo(step?.success ?? Number.NaN, 12);
    for (const [agent, of] of Object.entries(step?.agents ?? {})) {
      const { turns, rewardMean, invalid, responseTokens } = of;
      expect(report.agents[agent]).toMatchObject({ turns, rewardMean, invalid, responseTokens });
      const { inflation, maxAbsAdvantage } = report.estimators.drmas?.[agent] ?? {};
      expect([inflation ?? 1, maxAbsAdvantage]).toEqual([of.inflation.predicted, of.maxAbsAdvantage]);
    }
    expect(Object.keys(report.estimators)).toEqual(['drmas', 'grpo', 'grpo-turn', 'drmas-mean', 'drmas-std']);
    const stored = await readEpisodes(nodeFiles, run.stepEpisodesPath(1));
    const played = JSON.parse(JSON.stringify(report.examples));
    expect(played).toHaveLength(3);
    for (const example of played) expect(stored.map(asPlayed)).toContainEqual(example);
  });

  for (const [where, settings, tags] of [
    ['in the reward, from another policy', { in: 'reward', reference: { type: 'policy', policy: 'verifier' } }, []],
    ['in the loss', { in: 'loss' }, ['verify']],
  ] as const)
    it(`scores with the KL penalty of a run: ${where}`, { tags: [...tags] }, async () => {
      const share = ['warmStart.share=policy'];
      const kl = { coefficient: 0.5, ...settings };
      const near = tinyRecipe({ advantage: { type: 'reinforce++' }, policies: { solver: { kl } } }, share);
      const { examples } = await probeRecipe(near, host, { tasks: 2 });
      const stored = await readEpisodes(nodeFiles, (await trainTiny(root, near)).stepEpisodesPath(1));
      for (const example of JSON.parse(JSON.stringify(examples))) expect(stored.map(asPlayed)).toContainEqual(example);
      const far = tinyRecipe({ advantage: { type: 'reinforce++' } }, share);
      const free = await probeRecipe(far, host, { tasks: 2 });
      if (kl.in === 'reward') expect(free.examples).not.toEqual(examples);
      else expect(free.examples).toEqual(examples);
    });

  it('from a checkpoint measures the KL from the stored references of its run', { tags: 'verify' }, async () => {
    const changes = { policies: { solver: { kl: { coefficient: 5, in: 'reward' } } } } as const;
    const near = tinyRecipe({ advantage: { type: 'reinforce++' }, ...changes });
    const trained = await trainTiny(root, near);
    const checkpoint = await trained.latestCheckpoint();
    const { examples } = await probeRecipe(near, host, { tasks: 2, checkpoint });
    await rename(join(trained.path, 'references'), join(trained.path, 'away'));
    const without = await probeRecipe(near, host, { tasks: 2, checkpoint }); // the references are the current policies
    expect(without.examples.map(({ turns }) => turns.map(({ text }) => text))).toEqual(
      examples.map(({ turns }) => turns.map(({ text }) => text)),
    );
    expect(without.examples).not.toEqual(examples);
  });

  it('plays further steps for more tasks, and trains a warm start that is not in the cache', async () => {
    const warmups: Warmup[] = [];
    const other = tinyRecipe({}, ['warmStart.seed=9', 'training.steps=10']);
    const onWarmup = (event: Warmup) => void warmups.push(event);
    const report = await probeRecipe(other, host, { tasks: 3, onWarmup });
    expect(report).toMatchObject({ tasks: 3, episodes: 12 });
    expect(warmups.at(-1)).toMatchObject({ step: 12, steps: 12 });
    const { warmStart, rollout, update, evaluation, total, memory } = report.projection;
    expect(warmStart).toBeGreaterThan(0);
    expect(total).toBeCloseTo(warmStart + rollout + update + evaluation, 12);
    expect(memory).toBeGreaterThan(2 ** 20);
  });

  it('uses the policies of a checkpoint, or their first weights if there is no warm start', async () => {
    const checkpoint = await run.latestCheckpoint();
    const trained = await probeRecipe(recipe, host, { tasks: 2, checkpoint });
    expect(trained.start).toBe('checkpoint');
    expect(checkpoint?.directory).toBe(join(run.path, 'checkpoints', 'step-000004'));
    const { warmStart, ...cold } = recipe;
    const untrained = await probeRecipe(cold, host, { tasks: 2 });
    expect(untrained.start).toBe('first weights');
    expect(untrained.reward).not.toEqual(trained.reward);
  });

  it.each(['remax', 'gigpo'])('plays the extra rollouts of %s', async (type) => {
    const report = await probeRecipe(tinyRecipe({}, [`advantage.type=${type}`]), host, { tasks: 3 });
    expect(report.estimators[type]?.solver?.maxAbsAdvantage).toBeGreaterThan(0);
  });

  it('divides the time of a step by all episodes that it plays, greedy ones and replaced ones too', async () => {
    const answers = { verifier: { ...digitTeam.agents.verifier, parse: () => '<approve>' } };
    const team = { ...digitTeam, agents: { ...digitTeam.agents, ...answers } }; // two calls in each episode
    const ratio = async (...settings: string[]) => {
      const { evaluation, rollout } = (await probeRecipe(tinyRecipe({ team }, settings), host, { tasks: 2 }))
        .projection;
      return evaluation / rollout;
    };
    // Four steps of 2 tasks x 4 episodes; three evaluations of 3 tasks x 2 samples.
    expect(await ratio()).toBeCloseTo(18 / (4 * 8), 9);
    expect(await ratio('advantage.type=remax')).toBeCloseTo(18 / (4 * (8 + 2)), 9);
    const filter = 'training.filter={"type":"equal-outcomes","refill":{"maxRounds":3}}';
    const alike = { ...team, reward: () => 1 };
    const refilled = await probeRecipe(tinyRecipe({ team: alike }, [filter]), host, { tasks: 2 });
    expect(refilled.projection.evaluation / refilled.projection.rollout).toBeCloseTo(18 / (4 * 3 * 8), 9);
  });

  it('refuses to play nothing', async () => {
    await expect(probeRecipe(recipe, host, { tasks: 0 })).rejects.toThrow(/tasks: expected at least 1, got 0/);
  });

  it('uses untrained critics if the estimator needs values', async () => {
    const report = await probeRecipe(tinyRecipe({ advantage: { type: 'gae' } }), host, { tasks: 2 });
    expect(report.estimators.gae?.solver?.maxAbsAdvantage).toBeGreaterThan(0);
    expect(report.projection.update).toBeGreaterThan(0);
  });
});
