import { describe, expect, it } from 'vitest';
import { tinyRecipe } from '../../test/support/tiny-run.js';
import type { TaskSource } from '../core/task.js';
import { prepareTasks } from './open-run.js';

const prepare = (overrides: readonly string[], tasks?: TaskSource) =>
  prepareTasks(tinyRecipe(tasks === undefined ? {} : { tasks }, overrides));

describe('what is refused before any work', () => {
  it('a warm start without traces, a split without tasks', async () => {
    const silent = (size: number): TaskSource => ({
      name: 'silent',
      load: async () => ({ name: 'silent', size, at: () => ({ id: 'one', data: {} }) }),
    });
    await expect(prepare([], silent(1))).resolves.toBeDefined();
    await expect(prepare(['warmStart.steps=1'], silent(1))).rejects.toThrow(/warmStart: .*'silent' generate no traces/);
    await expect(prepare([], silent(0))).rejects.toThrow(/tasks.train: there are no tasks/);
  });

  it('a division of evaluations by what no task has, or what each has alone', async () => {
    await expect(prepare(['evaluation.by=operations'])).resolves.toBeDefined();
    await expect(prepare(['evaluation.by=["operations","answer"]'])).resolves.toBeDefined();
    await expect(prepare(['evaluation.by=level'])).rejects.toThrow(
      "evaluation.by: no evaluated task has the field 'level' (they have operations)",
    );
    await expect(prepare(['evaluation.by=question', 'evaluation.tasks=200'])).rejects.toThrow(
      /evaluation.by: the field 'question' has \d+ values, expected at most 100/,
    );
    expect(() => prepare(['evaluation.by=7'])).toThrow('evaluation.by: expected the name of a field');
  });

  it('a base for policies that are not alike', async () => {
    const deeper = 'policies.verifier.model.layers=2';
    await expect(prepare([deeper])).rejects.toThrow(/warmStart.share: .*different models/);
    await expect(prepare([deeper, 'warmStart.share=policy'])).resolves.toBeDefined();
  });

  it('responses that are longer than the context', async () => {
    const message = "agents.verifier.sampling.maxTokens: 64 leave no room for a prompt in the model's context of 64";
    await expect(prepare(['agents.verifier.sampling.maxTokens=64'])).rejects.toThrow(message);
    await expect(prepare(['agents.verifier.sampling.maxTokens=63'])).resolves.toBeDefined();
  });
});
