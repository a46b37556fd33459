/**
 * The team `escalation` on tasks of two difficulties: for half of the tickets the expert may try once, for others four
 * times, so a mean over all tasks lies between the means of both kinds. research/plans/defaults.md
 */
import { defineRecipe, mix, type RecipeDefinition, type TaskSource } from 'drmas';
import { escalation } from './escalation.js';

const { tasks, ...rest } = escalation(1).input;
const isSource = (value: unknown): value is TaskSource =>
  typeof value === 'object' && value !== null && 'load' in value;
if (!isSource(tasks)) throw new TypeError('expected one source of tickets');
const source = tasks;

const kinds = (rare: number) => {
  const of = (tries: number) => source.configure?.({ ...source.settings, rare, tries }) ?? source;
  return { once: of(1), often: of(4) };
};

const recipe: RecipeDefinition = defineRecipe({
  ...rest,
  tasks: { train: mix(kinds(0.25), [1, 1]), test: mix(kinds(1)) },
});

export default recipe;
