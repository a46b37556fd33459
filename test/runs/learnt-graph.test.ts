// @module-tag verify
/** A team whose communication graph is learnt: a policy without a language model in a run like any other. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RecipeError } from '@drmas/engine/errors';
import { beforeAll, describe, expect, it } from 'vitest';
import learntGraph from '../../examples/learnt-graph/recipe.js';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { planRun } from '../../src/runs/studies/plan/dry-run.js';
import { filesOf, resumedTiny, stepsOf, temporaryRoot, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const recipe = (...overrides: readonly string[]) =>
  resolveRecipe(learntGraph, {
    overrides: [
      ...['warmStart.steps=60', 'training.steps=3', 'training.tasksPerStep=4', 'training.groupSize=4'],
      ...[
        'evaluation.every=2',
        'training.checkpointEvery=1',
        'evaluation.tasks=2',
        'evaluation.samples=1',
        ...overrides,
      ],
    ],
  });

describe('a learnt communication graph', () => {
  let run: RunDirectory;
  beforeAll(async () => {
    run = await trainTiny(root, recipe());
  });

  const tableAt = async (step: string) => {
    const text = await readFile(join(run.path, 'checkpoints', step, 'graph', 'choices.json'), 'utf8');
    return JSON.parse(text) as { features: string[]; logits: [number, number][] };
  };

  it('is trained by the advantages of its turns, which are logged as any others', async () => {
    const lines = (await readFile(join(run.path, 'episodes', 'step-000001.jsonl'), 'utf8')).trim().split('\n');
    const turns = lines.flatMap((line) => {
      const { turns } = JSON.parse(line) as {
        turns: {
          agent: string;
          text: string;
          logprobs: number[];
          advantage: number;
          messages: { content: string }[];
        }[];
      };
      return turns.filter(({ agent }) => agent === 'graph');
    });
    expect(turns).toHaveLength(3 * 16);
    for (const { text, logprobs } of turns) {
      expect(['open', 'shut']).toContain(text);
      expect(logprobs).toEqual([Math.fround(-Math.LN2)]); // undecided at first
    }
    const [first] = await stepsOf(run);
    expect(first?.agents.graph).toMatchObject({ turns: 48, invalid: 0 });
    expect(first?.agents.graph?.gradientNorm).toBeGreaterThan(0);
    expect(first?.agents.graph?.entropy).toBeCloseTo(Math.LN2, 6);
    const { features, logits } = await tableAt('step-000003');
    const moved = new Set(features.filter((_, i) => logits[i]?.[0] !== 0));
    expect(moved.size).toBeGreaterThan(0);
    for (const [open, shut] of logits) expect(open).toBeCloseTo(-shut, 5);
  });

  it('goes on bit for bit', async () => {
    expect(await filesOf(await resumedTiny(root, recipe(), 2))).toEqual(await filesOf(run));
  });

  it('compares graphs with an edge with all graphs of the group, with credit for edges', async () => {
    const edges = recipe('tasks.train.credit=edge', 'training.steps=1', 'training.groupSize=8');
    const path = join((await trainTiny(root, edges)).path, 'episodes', 'step-000001.jsonl');
    interface Logged {
      readonly task: { readonly id: string };
      readonly score: { readonly team: number };
      readonly turns: readonly { readonly agent: string; readonly text: string; readonly advantage: number }[];
    }
    const episodes = (await readFile(path, 'utf8'))
      .trim()
      .split('\n')
      .map((line): Logged => JSON.parse(line));
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    let unlike = 0;
    for (const id of new Set(episodes.map(({ task }) => task.id))) {
      const graphs = episodes
        .filter(({ task }) => task.id === id)
        .map(({ score, turns }) => ({ earned: score.team, edges: turns.filter(({ agent }) => agent === 'graph') }));
      const all = mean(graphs.map(({ earned }) => earned));
      const pairs = graphs.flatMap(({ edges }) =>
        edges.map(({ text, advantage }, e) => {
          const alike = graphs.filter((other) => other.edges[e]?.text === text);
          return { lead: mean(alike.map(({ earned }) => earned)) - all, advantage };
        }),
      );
      // The advantages are the leads of the edges, divided by one spread.
      const spread = Math.sqrt(pairs.reduce((sum, { lead }) => sum + lead ** 2, 0) / (pairs.length - 1));
      for (const { lead, advantage } of pairs) expect(advantage).toBeCloseTo(lead / (spread + 1e-6), 4);
      unlike += graphs.filter(({ edges }) => new Set(edges.map(({ advantage }) => advantage)).size > 1).length;
    }
    expect(unlike).toBeGreaterThan(0);
  });

  it('is planned with its parameters', async () => {
    const planned = recipe();
    const plan = await planRun(planned, await prepareTasks(planned));
    expect(plan.policies.graph).toEqual({ trained: 18, whole: 18 });
    expect(plan.agents.graph).toMatchObject({ calls: 3, promptTokens: 1, responseTokens: 1 });
  });
});

describe('a recipe with a table of choices', () => {
  it.each([
    ['agents.graph.sampling.maxTokens=2', 'agents.graph.sampling.maxTokens'],
    ['policies.graph.backend.type=embedded', 'policies.graph.backend'],
    ['policies.graph.precision=bfloat16', 'policies.graph.precision'],
    ['advantage.type=gae', 'advantage.type'],
  ])('is refused with %s', async (override, path) => {
    await expect((async () => prepareTasks(recipe(override)))()).rejects.toThrow(RecipeError);
    await expect((async () => prepareTasks(recipe(override)))()).rejects.toThrow(path);
  });
});
