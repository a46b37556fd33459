// @module-tag verify
/** The laws of the examples with sub-agents and parallel agents: each reward counts once, for the right agent. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mean, standardDeviation } from '@drmas/engine/math';
import { describe, expect, it } from 'vitest';
import retrospect, { team } from '../../examples/retrospect/recipe.js';
import subAgents from '../../examples/sub-agents/recipe.js';
import type { RecipeDefinition } from '../../src/method/recipe/define.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { filesOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

interface LoggedEpisode<Outcome> {
  readonly task: { readonly id: string };
  readonly outcome: Outcome;
  readonly turns: readonly { readonly agent: string; readonly advantage: number; readonly reward?: number }[];
}

async function episodesOf<Outcome>(definition: RecipeDefinition, overrides: readonly string[]) {
  const brief = ['warmStart.steps=60', 'training.steps=1', 'evaluation.tasks=2', 'evaluation.samples=1'];
  const run = await trainTiny(root, resolveRecipe(definition, { overrides: [...brief, ...overrides] }));
  const text = await readFile(join(run.path, 'episodes', 'step-000001.jsonl'), 'utf8');
  const lines = text.trim().split('\n');
  return { run, episodes: lines.map((line) => JSON.parse(line) as LoggedEpisode<Outcome>) };
}

describe('sub-agents that are called a varying number of times', () => {
  interface Outcome {
    readonly invocations: readonly {
      readonly place: string;
      readonly turns: readonly number[];
      readonly success: boolean;
    }[];
  }

  /**
   * The invocations of each scout in each task: the number of turns, the result, the advantages of its turns. If a
   * scout gets the same place twice in an episode, its loops may begin with equal tokens. The test cannot distinguish
   * them and leaves such groups out.
   */
  async function invocationsOf(unit: string) {
    const { episodes } = await episodesOf<Outcome>(subAgents, [
      `advantage.unit=${unit}`,
      'training.tasksPerStep=16',
      'training.groupSize=4',
    ]);
    const groups = new Map<string, { turns: number; success: number; advantages: number[] }[]>();
    const again = new Set<string>();
    for (const { task, outcome, turns } of episodes) {
      const places = new Set<string>();
      for (const { place, turns: numbers, success } of outcome.invocations) {
        const key = `${task.id} ${turns[numbers[0] ?? 0]?.agent}`;
        if (places.has(place)) again.add(key);
        places.add(place);
        const advantages = numbers.map((number) => turns[number]?.advantage ?? Number.NaN);
        groups.set(key, [...(groups.get(key) ?? []), { turns: numbers.length, success: Number(success), advantages }]);
      }
    }
    for (const key of again) groups.delete(key);
    return [...groups.values()].filter((group) => new Set(group.map(({ success }) => success)).size > 1);
  }

  it('count each invocation as one member of its group, of one turn or of many', async () => {
    const groups = await invocationsOf('chain');
    expect(groups.length).toBeGreaterThan(3);
    expect(new Set(groups.flat().map(({ turns }) => turns)).size).toBeGreaterThan(2);
    expect(new Set(groups.map(({ length }) => length)).size).toBeGreaterThan(1);
    for (const group of groups) {
      const earned = group.map((each) => each.success);
      const [middle, spread] = [mean(earned), standardDeviation(earned)];
      for (const { success, advantages } of group)
        for (const advantage of advantages) expect(advantage).toBeCloseTo((success - middle) / (spread + 1e-6), 9);
    }
  });

  it('count long ones more often where turns are what counts', async () => {
    const groups = await invocationsOf('turn');
    const differ = groups.filter((group) => {
      const byInvocation = mean(group.map(({ success }) => success));
      const earned = group.flatMap(({ turns, success }) => Array<number>(turns).fill(success));
      const first = group[0];
      expect(first?.advantages[0]).toBeCloseTo(
        ((first?.success ?? 0) - mean(earned)) / (standardDeviation(earned) + 1e-6),
        9,
      );
      return Math.abs(byInvocation - mean(earned)) > 0.01;
    });
    expect(differ.length).toBeGreaterThan(0);
  });
});

describe('a retrospective agent beside a frozen actor', () => {
  it('earns with each reflection the gain of the next trial', async () => {
    const lock = 'attic'; // red1 green2 blue3
    const actor = ['red2green2blue1', 'red1green2blue1', 'red1green1blue1'];
    const play = (reward: 'improvement' | 'outcome') =>
      playScripted(team, { lock, reward }, { actor, coach: ['red1', 'green1'] });
    const rewardsOf = ({ turns }: Awaited<ReturnType<typeof play>>) =>
      turns.flatMap(({ agent, stepReward }) => (agent === 'coach' ? [stepReward] : []));
    const improved = await play('improvement');
    expect(improved.outcome).toMatchObject({ scores: [1 / 3, 2 / 3, 1 / 3] });
    expect(rewardsOf(improved)).toEqual([2 / 3 - 1 / 3, 1 / 3 - 2 / 3]);
    expect(rewardsOf(await play('outcome'))).toEqual([2 / 3, 1 / 3]);
  });

  it('is the only one that learns', async () => {
    const weightsAfter = async (steps: number) => {
      const { run, episodes } = await episodesOf(retrospect, [`training.steps=${steps}`]);
      const files = Object.entries(await filesOf(run)).filter(([name]) => name.endsWith('model.safetensors'));
      const of = (agent: string) => files.filter(([name]) => name.includes(`/${agent}/`)).map(([, hash]) => hash);
      return { actor: of('actor'), coach: of('coach'), turns: episodes.flatMap((episode) => episode.turns) };
    };
    const [one, two] = [await weightsAfter(1), await weightsAfter(2)];
    expect(one.actor).toHaveLength(1);
    expect(two.actor).toEqual(one.actor);
    expect(two.coach).not.toEqual(one.coach);
    expect(one.turns.filter(({ agent }) => agent === 'actor').every(({ advantage }) => !advantage)).toBe(true);
    expect(one.turns.some(({ agent, advantage }) => agent === 'coach' && Math.abs(advantage) > 0.1)).toBe(true);
  });
});
