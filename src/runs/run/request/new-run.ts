/** The request for a new run: a recipe with overrides. */
import { basename } from 'node:path';
import { RecipeError, suggestion } from '@drmas/engine/errors';
import { commandText, nodeFiles } from '@drmas/engine/platform';
import { agentProfiles, type Recipe, type RecipeDefinition, recipeJson } from '../../../method/recipe.js';
import { codeOf, isRecipeFile, type LoadedRecipe, loadRecipe, withLossModules } from '../../../method/recipe-files.js';
import { RunDirectory, type RunRecord, readAblation, runsBeside } from '../../../method/store.js';
import { type ResolveOptions, resolveRecipe } from '../../composition/resolve-recipe.js';
import { purposeOf } from '../checks/backend-checks.js';

/** The source in recipe.json for a recipe without a file. */
export const PROGRAM = 'a program';

export interface RecipeRequest {
  readonly loaded: LoadedRecipe;
  /** Overrides as on the command line, including the seed. */
  readonly overrides: readonly string[];
  readonly recipe: Recipe;
}

/** Loads a recipe that ships (by name), a recipe file (by path), or a program's definition. @throws RecipeError */
export async function load(recipe: string | RecipeDefinition): Promise<LoadedRecipe> {
  if (typeof recipe === 'string')
    return loadRecipe(recipe).catch(async (error: unknown) => {
      const runs = isRecipeFile(recipe) ? [] : await runsBeside(nodeFiles, recipe);
      if (!(error instanceof RecipeError) || runs.length === 0) throw error;
      if (runs.includes(basename(recipe))) throw await runForRecipe(recipe);
      throw new RecipeError(`${error.message}; there is no such run either${suggestion(basename(recipe), runs)}`);
    });
  const definition = await withLossModules(recipe);
  return { definition, name: recipe.input.name ?? recipe.input.team.name, source: PROGRAM, codeHash: '' };
}

/** The error for a run or an ablation where a recipe is needed. It names the recipe of the run. */
async function runForRecipe(path: string): Promise<RecipeError> {
  const ablation = await readAblation(path);
  const { source, overrides } = (ablation ?? (await RunDirectory.open(path)).record).recipe;
  const words = [source, ...overrides.flatMap((override) => ['--set', override])];
  const recipe =
    source === PROGRAM ? 'the recipe is in the program that started it' : `its recipe: ${commandText(words)}`;
  return new RecipeError(`${path} is ${ablation === undefined ? 'a run' : 'an ablation'} and no recipe; ${recipe}`);
}

/** Resolves a recipe with overrides. @throws RecipeError with the path of the value that is wrong */
export async function requestRecipe(
  recipe: string | RecipeDefinition,
  { set = [], seed, allFrozen }: RecipeOptions = {},
): Promise<RecipeRequest> {
  return resolved(await load(recipe), [...set, ...(seed === undefined ? [] : [`seed=${seed}`])], allFrozen);
}

interface RecipeOptions extends Pick<ResolveOptions, 'allFrozen'> {
  readonly set?: readonly string[] | undefined;
  readonly seed?: number | undefined;
}

export function runRecord({ loaded, overrides, recipe }: RecipeRequest): RunRecord {
  const { source, codeHash } = loaded;
  return { version: 1, recipe: { source, overrides, codeHash }, ...described(recipe), acceptedChanges: [] };
}

export const described = (recipe: Recipe) => ({ resolved: recipeJson(recipe), agents: agentProfiles(recipe) });

/** A request's recipe: the definition with the overrides. @throws RecipeError */
export function resolved(loaded: LoadedRecipe, overrides: readonly string[], allFrozen?: boolean): RecipeRequest {
  const { definition, name } = loaded;
  const recipe = resolveRecipe(definition, { overrides, name, code: codeOf(loaded), allFrozen });
  return { loaded, overrides, recipe };
}

/**
 * A recipe for a study that does not need training. If all agents are frozen, nothing trains: the recipe gets no steps.
 * @throws RecipeError with the path of the value that is wrong
 */
export async function requestStudy(
  source: string | RecipeDefinition,
  options: Omit<RecipeOptions, 'allFrozen'>,
): Promise<Recipe> {
  const { recipe } = await requestRecipe(source, { ...options, allFrozen: true });
  return purposeOf(recipe) === 'evaluation' ? { ...recipe, training: { ...recipe.training, steps: 0 } } : recipe;
}
