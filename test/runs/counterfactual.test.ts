// @module-tag verify
/** Credit by replay: the worth of a turn, found by playing it again in its context. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mean, standardDeviation } from '@drmas/engine/math';
import { choiceTable } from '@drmas/engine/model';
import type { Episode } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import drivers from '../../examples/counterfactual/recipe.js';
import { defineRecipe } from '../../src/method/recipe/define.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { playBranches } from '../../src/method/training/signals/branches.js';
import { trainingRun } from '../../src/method/training/signals/training-run.js';
import { playStep } from '../../src/method/training/step/play-step.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { openRun, publishAll } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { filesOf, resumedTiny, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const sides = ['heads', 'tails'] as const;
/** The joint reward of two players, by the sides that they show. */
const worth = { heads: { heads: 1, tails: 0 }, tails: { heads: 0.2, tails: 0.6 } };
const show = () => agent({ parse: oneOf(...sides), sampling: { maxTokens: 1 } });
const team = defineTeam({
  name: 'two turns',
  task: z.object({}),
  agents: { one: show(), two: show() },
  async play({ agents: { one, two }, random }) {
    const [first, coin] = [await one('show'), random.uniform()];
    const second = await two('show');
    return { first: first.value ?? 'heads', second: second.value ?? 'heads', coin };
  },
  reward: ({ outcome: { first, second } }) => worth[first][second],
});
const policy = { model: choiceTable({ choices: sides }) };
const twoTurns = defineRecipe({
  team,
  tasks: {
    name: 'one',
    load: async () => ({ name: 'one', size: 4, at: (index: number) => ({ id: `${index}`, data: {} }) }),
  },
  policies: { one: policy, two: policy },
  advantage: { type: 'counterfactual', alternatives: 2 },
  training: { steps: 2, tasksPerStep: 2, groupSize: 120, checkpointEvery: 1 },
  evaluation: { every: 2, tasks: 1, samples: 1 },
});

interface LoggedTurn {
  readonly agent: string;
  readonly advantage: number;
}
interface LoggedEpisode {
  readonly outcome: { readonly first: keyof typeof worth; readonly second: keyof typeof worth };
  readonly turns: readonly LoggedTurn[];
}

describe('counterfactual credit', () => {
  let run: RunDirectory;
  beforeAll(async () => {
    run = await trainTiny(root, resolveRecipe(twoTurns));
  });

  it('is on average the worth of the turn in its context, computed by hand', async () => {
    const text = await readFile(join(run.path, 'episodes', 'step-000001.jsonl'), 'utf8');
    const episodes = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as LoggedEpisode);
    const advantagesOf = (agent: string, of: (outcome: LoggedEpisode['outcome']) => boolean) =>
      episodes.flatMap(({ outcome, turns }) =>
        of(outcome) ? turns.flatMap((turn) => (turn.agent === agent ? [turn.advantage] : [])) : [],
      );
    const around = (values: readonly number[], exact: number) =>
      expect(Math.abs(mean(values) - exact)).toBeLessThan((4 * standardDeviation(values)) / Math.sqrt(values.length));
    // The context is exact: player two is compared with its reward beside the same side of player one.
    for (const { outcome, turns } of episodes) {
      const { heads, tails } = worth[outcome.first];
      const possible = [heads, (heads + tails) / 2, tails].map((other) => worth[outcome.first][outcome.second] - other);
      expect(Math.min(...possible.map((value) => Math.abs(value - (turns[1]?.advantage ?? 9))))).toBeLessThan(1e-9);
    }
    // Both players are undecided in the first step: every side has probability one half.
    const ofFirst = (first: keyof typeof worth) => mean(sides.map((second) => worth[first][second]));
    for (const first of sides) {
      around(
        advantagesOf('one', (outcome) => outcome.first === first),
        ofFirst(first) - mean(sides.map(ofFirst)),
      );
      for (const second of sides)
        around(
          advantagesOf('two', (outcome) => outcome.first === first && outcome.second === second),
          worth[first][second] - ofFirst(first),
        );
    }
  });

  it('is said in events: the other ends, and their tokens', async () => {
    const [first] = await stepsOf(run);
    expect(first?.baseline).toMatchObject({ episodes: 2 * 2 * 240, failed: 0 });
    // Two turns an episode; of its other ends two have both turns to play and two have one.
    expect(first?.tokens.sampled).toBe(240 * (2 + 2 * 2 + 2 * 1));
  });

  it('goes on bit for bit', async () => {
    expect(await filesOf(await resumedTiny(root, resolveRecipe(twoTurns), 1))).toEqual(await filesOf(run));
  });

  it('is planned with its costs', async () => {
    const planned = resolveRecipe(twoTurns);
    const plan = await planRun(planned, await prepareTasks(planned));
    expect(plan.tokens.episodes.step).toBe(240 * (1 + 2 * 2));
    expect(plan.tokens.policies.one?.step.generated).toBe(240 * (1 + 3));
    expect(plan.notes.join()).toMatch(/4\.0 more episodes for each that is learnt from, .* 3\.0 whole ones/);
  });
});

describe('an episode that is played again from a turn on', () => {
  it('has the context that it had, and another end', async () => {
    const recipe = resolveRecipe(drivers, { overrides: ['training.groupSize=3', 'advantage.alternatives=2'] });
    const tasks = await prepareTasks(recipe);
    const open = await openRun(recipe, tasks, nodeHost({ threads: 1 }));
    try {
      await publishAll(open);
      const { all: groups } = await playStep(
        { ...trainingRun(open), signals: [] },
        { step: 0, predictions: {} },
        { tasks: 3 },
      );
      const branches = await playBranches(open, { step: 1, groups }, 2);
      expect(branches).toHaveLength(9 * 4 * 2);
      const episodeOf = new Map(groups.flatMap(({ episodes }) => episodes.flatMap((e) => e.turns.map((t) => [t, e]))));
      const ends = new Set<string>();
      for (const { of, episode } of branches) {
        const recorded = episodeOf.get(of) as Episode;
        expect(episode.sample).toBe(recorded.sample);
        expect(episode.turns.slice(0, of.turn)).toEqual(recorded.turns.slice(0, of.turn));
        const other = episode.turns[of.turn];
        expect(other?.prompt).toEqual(of.prompt);
        expect(other?.id).not.toBe(of.id);
        for (const { id } of episode.turns.slice(of.turn)) ends.add(`${id}`);
      }
      expect(ends.size).toBe(9 * 2 * (4 + 3 + 2 + 1)); // each with random numbers of its own
      expect(await playBranches(open, { step: 1, groups }, 2)).toEqual(branches);
    } finally {
      await open.dispose();
    }
  });
});
