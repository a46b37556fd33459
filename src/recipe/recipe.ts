import type { TaskSource } from '../core/task.js';
import type { Team } from '../teams/team.js';
import type { RecipeSettings } from './recipe-schema.js';

/** A resolved recipe: every default filled in, everything checked. The plain part is what recipe.json holds. */
export interface Recipe extends Readonly<RecipeSettings> {
  readonly team: Team;
  readonly tasks: { readonly train: TaskSource; readonly test: TaskSource };
}

/** The plain part of a recipe without its secrets, with the task sources' settings: two recipes with equal JSON ask for the same run. */
export function recipeJson({ team, tasks, ...settings }: Recipe): Record<string, unknown> {
  const { name, seed, assign, ...rest } = settings;
  return {
    name,
    team: team.name,
    tasks: { train: sourceJson(tasks.train), test: sourceJson(tasks.test) },
    seed,
    assign: Object.fromEntries(Object.entries(assign).map(([agent, entry]) => [agent, withoutKey(entry)])),
    ...rest,
  };
}

function withoutKey(entry: Recipe['assign'][string]): unknown {
  if (typeof entry === 'string' || entry.type !== 'endpoint') return entry;
  const { apiKey, ...shown } = entry;
  return shown;
}

const sourceJson = (source: TaskSource) => ({ name: source.name, ...source.settings });
