// @module-tag verify

import { RecipeError } from '@drmas/engine/errors';
import type { EvaluationEvent, ScoredEvaluation } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { evaluationLines } from '../../src/cli/reporter/score-printer.js';
import { defineRecipe } from '../../src/method/recipe/define.js';
import { recipeJson } from '../../src/method/recipe/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { arithmetic } from '../../src/teams/tasks/generated/arithmetic.js';
import { eventsOf, temporaryRoot, tinyDefinition, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const sums = (operations: [number, number]) => arithmetic({ operations, warmStartOperations: [1, 2], top: 19 });
const tasks = { train: sums([1, 2]), test: { short: sums([1, 1]), long: sums([2, 3]) } };
const overrides = ['training.steps=1', 'evaluation.by=operations', 'evaluation.samples=4'];

describe('a recipe with several benchmarks', () => {
  it('evaluates all of them at once, each on its own first tasks', async () => {
    const run = await trainTiny(root, tinyRecipe({ tasks, warmStart: { steps: 12, batch: 4 } }, overrides));
    const evaluations = (await eventsOf(run)).filter((event): event is EvaluationEvent => event.type === 'evaluation');
    expect(evaluations.map(({ step }) => step)).toEqual([0, 1]);
    for (const event of evaluations) {
      expect(event.tasks).toBe(6);
      const { benchmark, operations } = event.slices ?? {};
      expect(Object.keys(event.slices ?? {})).toEqual(['benchmark', 'operations']);
      expect([benchmark?.short?.tasks, benchmark?.long?.tasks]).toEqual([3, 3]);
      expect(operations?.['1']).toEqual(benchmark?.short);
      const mean = ((benchmark?.short?.averageAtK ?? -1) + (benchmark?.long?.averageAtK ?? -1)) / 2;
      expect(event.averageAtK).toBeCloseTo(mean, 12);
      expect(event.benchmarkMean?.averageAtK).toBeCloseTo(mean, 12);
    }
    const episodes = await readEpisodes(nodeFiles, run.evaluationEpisodesPath(1));
    expect(new Set(episodes.map(({ task }) => task.id.split('/')[0]))).toEqual(new Set(['short', 'long']));
    const text = evaluationLines(evaluations[1] as ScoredEvaluation, 100).join('\n');
    expect(text).toMatch(/^avg@4 +[\d.]+ % +\[[\d.]+, [\d.]+\]\npass@4 .*\nmaj@4 .*\nreward of solver .*\n/);
    expect(text).toMatch(/pass@1 [\d.]+ %, pass@2 [\d.]+ %, pass@4 [\d.]+ %\n/);
    expect(text).toMatch(
      /benchmark +tasks +avg@4 +pass@4 +maj@4\nshort +3 .*\nlong +3 .*\nmean of these +[\d.]+ % .*\n\noperations .*\n1 +3 .*\n2/,
    );
  });

  it('has their settings by name, which can be overridden one by one', () => {
    const json = recipeJson(tinyRecipe({ tasks }, ['tasks.test.long.top=9']));
    expect(json.tasks).toMatchObject({
      test: { name: 'short + long', short: { top: 19, operations: [1, 1] }, long: { top: 9, operations: [2, 3] } },
    });
    expect(() => tinyRecipe({ tasks }, ['tasks.test.longer.top=9'])).toThrow(
      /tasks\.test\.longer: unknown key 'longer'.*long/,
    );
    expect(() => tinyRecipe({ tasks }, ['tasks.test.long.tap=9'])).toThrow(RecipeError);
  });

  it('is refused where one of them is no source', () => {
    const wrong = { ...tasks, test: { short: sums([1, 1]), long: 7 } } as never;
    expect(() => tinyRecipe({ tasks: wrong })).toThrow(
      "tasks.test.long: expected a list of tasks or a source of them, such as file('tasks.jsonl'), got 7",
    );
    expect(() => tinyRecipe({ tasks: { ...tasks, test: {} } })).toThrow(
      'tasks.test: expected a list of tasks or a source',
    );
  });

  it('is read like any other, and typed as it is written', async () => {
    const { team, model } = tinyDefinition().input;
    const { test } = await prepareTasks(resolveRecipe(defineRecipe({ team, tasks, ...(model && { model }) }), {}));
    expect(test.parts).toHaveLength(2);
    expect(test.at(0).metadata).toMatchObject({ benchmark: 'short', operations: 1 });
  });
});
