/** The warnings about a run that is open. The recipe is valid nevertheless. */
import type { OpenRun, RunWarning } from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { judgesOf } from '../../../teams/tasks.js';
import type { Purpose } from '../checks/backend-checks.js';
import { weakSettings } from '../checks/weak-settings.js';
import { leakedTasks, taskWarnings } from './prepare-tasks.js';

export function runWarnings(
  recipe: Recipe,
  { tasks, models, trained }: Pick<OpenRun, 'tasks' | 'models' | 'trained'>,
  purpose: Purpose,
): RunWarning[] {
  const trains = purpose === 'training';
  return [
    ...taskWarnings(tasks).map(about('tasks')),
    ...(trains ? leakedTasks(recipe.tasks, tasks, recipe.evaluation.tasks) : []).map(about('tasks')),
    ...Object.values(models).flatMap(({ warnings }) => warnings.map(about('policy'))),
    ...ignoredSettings(trained),
    ...(trains ? weakSettings(recipe) : []),
    ...judgesOf(recipe.team)
      .map(({ name }) => `the reward's scorer '${name}' calls a hosted model: the run does not repeat bit for bit`)
      .map(about('reward.judge')),
  ];
}

const about =
  (code: string) =>
  (message: string): RunWarning => ({ code, message });

/** Warnings about settings that a backend ignores. The recipe is valid nevertheless. */
function ignoredSettings(trained: OpenRun['trained']): RunWarning[] {
  return trained
    .map(({ name, settings, backend }) => ({ name, clipNorm: settings?.clipNorm ?? 0, can: backend.capabilities }))
    .filter(({ clipNorm, can }) => clipNorm > 0 && !can.clipsGradients)
    .map(({ name, clipNorm }) => ({
      code: 'backend.ignores',
      message: `policies.${name}.clipNorm is ${clipNorm}, but the server may not clip gradients`,
    }));
}
