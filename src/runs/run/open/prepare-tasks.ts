/** The first stage: the tasks, read and checked with the recipe, and warnings about them. */

import type { ModelHandle } from '@drmas/engine/contract';
import { isObject } from '@drmas/engine/errors';
import type { Commits } from '@drmas/engine/formats';
import { sampledCapabilities } from '@drmas/engine/node';
import { fittedSet, type LoadOptions, type Task, type TaskSet, user } from '@drmas/engine/nouns';
import { evaluationTasks, loadTasks, type Tasks } from '../../../method/index.js';
import { assignmentOf, backendOf, backendOfModel, type Recipe, samplerOfModel } from '../../../method/recipe.js';
import type { Purpose } from '../checks/backend-checks.js';
import { checkRecipe } from '../checks/recipe-checks.js';

/**
 * Reads the tasks and makes the checks that the recipe's schema cannot make, so that a mistake is reported before any
 * work.
 * @throws TaskError with file and line; RecipeError
 */
export async function prepareTasks(recipe: Recipe, purpose?: Purpose, options: LoadOptions = {}): Promise<Tasks> {
  const schema = recipe.team.task;
  const train = await loadTasks(recipe.tasks.train, 'train', schema, options);
  // A branch of a data set may move between the two downloads.
  const commits = { ...commitsOfTasks([train]), ...options.commits };
  const test = await loadTasks(recipe.tasks.test, 'test', schema, { ...options, commits });
  const tasks = { train, test };
  const can = (model: string) => {
    const { capabilities } = backendOf(recipe, backendOfModel(recipe, model));
    const sampler = samplerOfModel(recipe, model);
    return sampler === undefined ? capabilities : sampledCapabilities(capabilities, sampler);
  };
  checkRecipe(recipe, assignmentOf(recipe), can, tasks, purpose);
  return tasks;
}

/** The commits of the data sets on hubs that the tasks come from, by name. */
export const commitsOfTasks = (sets: readonly TaskSet[]): Commits =>
  Object.fromEntries(
    sets.flatMap(({ origins = [] }) =>
      origins.flatMap(({ name, commit }) => (commit === undefined ? [] : [[name, commit]])),
    ),
  );

/** The tasks within their sources' limits of tokens, counted by the recipe's first model. @throws TaskError */
export function fittedTasks({ train, test }: Tasks, { tokenizer }: Pick<ModelHandle, 'tokenizer'>): Tasks {
  const tokensOf = (question: string) => tokenizer.chat([user(question)]).length;
  return { train: fittedSet(train, tokensOf), test: fittedSet(test, tokensOf) };
}

/** The warnings about the tasks. A warning of both splits comes once. */
export function taskWarnings({ train, test }: Tasks): string[] {
  return [...new Set([train, test].flatMap(({ warnings = [] }) => warnings))];
}

/** A warning if one file without a split gives the tasks of training and those of evaluations. */
export function undividedFile({ train, test }: Recipe['tasks']): string[] {
  const settings = train.settings ?? {};
  if (typeof settings.file !== 'string' || settings.split != null || settings.test != null) return [];
  if (JSON.stringify(settings) !== JSON.stringify(test.settings)) return [];
  return [
    `the tasks of ${settings.file} are the training tasks and the test tasks, so scores say nothing about new tasks; ` +
      "give a share to tests (test: 0.2), name the field that says 'train' or 'test' (split), or use two files " +
      '({ train, test })',
  ];
}

/** A warning if a source of a program gives the same tasks, in the same order, whatever split it loads. */
function undividedSource(sources: Recipe['tasks'], { train, test }: Tasks, count: number): string[] {
  const first = (tasks: TaskSet) => evaluationTasks(tasks, count);
  const named = (task: Task) => `${task.id}: ${contentOf(task)}`;
  try {
    const evaluated = first(test);
    if (new Set(evaluated.map(contentOf)).size < 2) return []; // the only problem of a game belongs to both splits
    if (evaluated.map(named).join() !== first(train).map(named).join()) return [];
  } catch {
    return []; // no JSON, such as a cycle
  }
  return [
    `the evaluated tasks are the first training tasks, so scores say nothing about new tasks; give '${sources.test.name}' ` +
      'other tasks for `test` than for `train`: as { train, test }, or by the split that `load` is called with',
  ];
}

/** A warning if training tasks are evaluated tasks too. */
export function leakedTasks(sources: Recipe['tasks'], tasks: Tasks, count: number): string[] {
  const undivided = undividedFile(sources);
  const areFiles = [sources.train, sources.test].every(({ settings }) => typeof settings?.file === 'string');
  if (undivided.length > 0) return undivided;
  if (!areFiles) return undividedSource(sources, tasks, count);
  if (!(tasks.train.size <= MOST_COMPARED)) return [];
  const known = new Set(Array.from({ length: tasks.train.size }, (_, i) => contentOf(tasks.train.at(i))));
  const evaluated = evaluationTasks(tasks.test, count);
  const leaked = evaluated.filter((task) => known.has(contentOf(task)));
  const [first] = leaked;
  return first === undefined
    ? []
    : [
        `${leaked.length} of ${evaluated.length} evaluated tasks are training tasks too, such as ${first.id}, so scores say less about new tasks`,
      ];
}

/** In larger sets of training tasks nobody looks for the evaluated ones. */
const MOST_COMPARED = 200_000;

/** The question of a task, by which two tasks with other names are one. */
function contentOf({ data }: Task): string {
  if (!isObject(data)) return JSON.stringify(data) ?? '';
  const { id: _, split: __, ...rest } = data;
  return JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
}
