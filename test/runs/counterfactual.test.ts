/** Credit by replay: turns that are played again in the context that they had, and what they are worth for it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import drivers from '../../examples/counterfactual/recipe.js';
import type { Episode } from '../../src/core/episode.js';
import { mean, standardDeviation } from '../../src/core/statistics.js';
import { choiceTable } from '../../src/model/model-spec.js';
import { nodeHost } from '../../src/platform/node-host.js';
import { defineRecipe } from '../../src/recipe/define.js';
import { resolveRecipe } from '../../src/recipe/resolve.js';
import { openRun, prepareTasks, publishAll } from '../../src/run/open-run.js';
import type { RunDirectory } from '../../src/store/run-directory.js';
import { planRun } from '../../src/studies/plan/dry-run.js';
import { agent } from '../../src/teams/agent.js';
import { oneOf } from '../../src/teams/parsers.js';
import { defineTeam } from '../../src/teams/team.js';
import { playBranches } from '../../src/training/step/branches.js';
import { playTasks } from '../../src/training/step/rollout-step.js';
import { filesOf, resumedTiny, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const sides = ['heads', 'tails'] as const;
/** What two players earn together by what each shows. */
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

  it('is on average what the turn is worth in its context, computed by hand', async () => {
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
    // The context is exact: player two is measured against what it earns beside the same side of player one.
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

  it('is planned with what it costs', async () => {
    const planned = resolveRecipe(twoTurns);
    const plan = await planRun(planned, await prepareTasks(planned));
    expect(plan.tokens.episodes.step).toBe(240 * (1 + 2 * 2));
    expect(plan.tokens.policies.one?.step.generated).toBe(240 * (1 + 3));
    expect(plan.notes.join()).toMatch(/4\.0 more episodes for each that is learnt from, .* of 3\.0 whole ones/);
  });
});

describe('an episode that is played again from a turn on', () => {
  it('has the context that it had, and another end', async () => {
    const recipe = resolveRecipe(drivers, { overrides: ['training.groupSize=3', 'advantage.alternatives=2'] });
    const tasks = await prepareTasks(recipe);
    const open = await openRun(recipe, tasks, nodeHost({ threads: 1 }));
    try {
      await publishAll(open);
      const groups = await playTasks(
        open,
        1,
        [0, 1, 2].map((index) => tasks.train.at(index)),
      );
      const branches = await playBranches(open, 1, groups);
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
      expect(await playBranches(open, 1, groups)).toEqual(branches);
    } finally {
      await open.dispose();
    }
  });
});
