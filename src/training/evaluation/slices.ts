/** An evaluation divided by what its tasks are: benchmark, difficulty, or any other field. */
import type { EpisodeGroup } from '../../core/episode.js';
import { RecipeError } from '../../core/errors.js';
import type { Task, TaskSet } from '../../core/task.js';
import type { Recipe } from '../../recipe/recipe.js';
import { BENCHMARK } from '../../tasks/benchmarks.js';
import { evaluationTasks } from '../step/step-tasks.js';

/** The part of the tasks that lack the field which others have. */
const WITHOUT = '(none)';
/** More parts than this are no division. */
const MOST = 100;

/** The fields by which a recipe's evaluations are divided; several benchmarks always are. */
export function divisions({ evaluation }: Pick<Recipe, 'evaluation'>, test: TaskSet): readonly string[] {
  const { by = [] } = evaluation;
  return test.parts === undefined || by.includes(BENCHMARK) ? by : [BENCHMARK, ...by];
}

/** Groups by the text of a field of their tasks, in the order of numbers and letters. */
export function divided(groups: readonly EpisodeGroup[], field: string): ReadonlyMap<string, readonly EpisodeGroup[]> {
  const parts = new Map<string, EpisodeGroup[]>();
  for (const group of groups) {
    const name = fieldText(group.task, field) ?? WITHOUT;
    parts.set(name, [...(parts.get(name) ?? []), group]);
  }
  if (field === BENCHMARK) return parts; // as the recipe has them
  const byName = new Intl.Collator('en', { numeric: true }).compare;
  return new Map([...parts].sort(([a], [b]) => byName(a, b)));
}

/** @throws RecipeError where no evaluated task has a field, or so many values of it are found that it identifies tasks */
export function checkDivisions(recipe: Recipe, test: TaskSet): void {
  const { by = [], tasks } = recipe.evaluation;
  if (by.length === 0) return;
  const evaluated = evaluationTasks(test, tasks);
  for (const field of by) {
    const values = new Set(evaluated.map((task) => fieldText(task, field)));
    if (values.size === 1 && values.has(undefined)) {
      const known = Object.keys({ ...evaluated[0]?.metadata });
      const names = known.length === 0 ? 'their metadata is empty' : `they have ${known.join(', ')}`;
      throw new RecipeError(`no evaluated task has the field '${field}' (${names})`, 'evaluation.by');
    }
    if (values.size > MOST)
      throw new RecipeError(
        `the field '${field}' has ${values.size} values, expected at most ${MOST}`,
        'evaluation.by',
      );
  }
}

function fieldText({ metadata, data }: Task, field: string): string | undefined {
  const own = metadata?.[field] ?? (typeof data === 'object' && data !== null ? Reflect.get(data, field) : undefined);
  return ['string', 'number', 'boolean'].includes(typeof own) ? String(own) : undefined;
}
