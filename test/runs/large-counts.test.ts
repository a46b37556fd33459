// @module-tag verify
/** Each count of a recipe at a thousand million: drmas refuses it by its name, or a step takes no longer. */
import { describe, expect, it } from 'vitest';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { choiceRecipe, learnSteps } from '../support/choice-run.js';
import { numericSettings } from '../support/recipe-settings.js';

/** Settings without which others are refused. */
const company: readonly (readonly [RegExp, string])[] = [
  [/curriculum/, 'training.curriculum.by=level'],
  [/staleness/, 'loss.importanceCorrection.cap=2'],
  [/entropySchedule/, 'policies.first.entropyCoefficient=0.1'],
  [/rewardFloor/, 'training.stopWhen.rewardFloor.below=0'],
  [/promptLimit/, 'agents.first.promptLimit.cut=left'],
];
/** Sizes of models, of which each kind has its own checks; other machines; and the policy that is like the first. */
const elsewhere = /\b(model|agentAdapters|critic|warmStart|backend|sampler|second)\b/;

const counts = numericSettings({ first: 'first', second: 'second' }).filter(
  ({ path, values }) => values.every(Number.isInteger) && values.includes(100) && !elsewhere.test(path),
);

describe('a count of a thousand million', () => {
  it.each(counts.map(({ path, chosen }) => [path, chosen] as const))('%s, with %j', async (path, chosen) => {
    const more = company.flatMap(([name, override]) => (name.test(path) ? [override] : []));
    const read = async () => {
      const recipe = choiceRecipe({}, [...more, ...chosen, `${path}=1000000000`]);
      await prepareTasks(recipe);
      return recipe;
    };
    const recipe = await read().catch((error: Error) => error);
    if (recipe instanceof Error) {
      expect(recipe.message).toMatch(new RegExp(`^${path.replaceAll('.', String.raw`\.`)}: `));
      return;
    }
    expect(await learnSteps({ ...recipe, training: { ...recipe.training, steps: 2 } })).toHaveLength(2);
  });
});
