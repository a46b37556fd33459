/** The recipe of a run that exists, as its file is now, and what is known of the run by it. */
import { basename, extname, isAbsolute } from 'node:path';
import type { BackendDeclaration } from '@drmas/engine/backends';
import { RunError } from '@drmas/engine/errors';
import type { Secret } from '@drmas/engine/host';
import type { AgentProfile } from '@drmas/engine/model';
import { nodeFiles } from '@drmas/engine/platform';
import { agentProfiles, backendOfModel, type RecipeDefinition, serverKeyOf, typeOf } from '../../../method/recipe.js';
import { loadRecipe } from '../../../method/recipe-files.js';
import type { RunDirectory } from '../../../method/store.js';
import { standard } from '../../composition/standard.js';
import { load, PROGRAM, type RecipeRequest, resolved } from './new-run.js';
import { requireOwnAddress, requireOwnRecipe, requireOwnSettings } from './stored-data.js';

/**
 * The recipe of an existing run. `recipe` is the definition if a program started the run, or the path of the recipe's
 * file if it was moved.
 * @throws RunError when its code has changed and the change was not accepted; the changed code did not run. Also if the
 *   stored data names a program or an address that this user did not name
 */
export async function recipeOfRun(
  run: RunDirectory,
  recipe: string | RecipeDefinition | undefined,
  { more = [], acceptChanges }: { readonly more?: readonly string[]; readonly acceptChanges: boolean | undefined },
): Promise<RecipeRequest> {
  const { source, overrides, codeHash } = run.record.recipe;
  if (recipe === undefined && source === PROGRAM)
    throw new RunError(
      `${run.path} was started by a program, and only that program has its recipe: call there resume(run, definition), or evaluate or loadTeam of 'drmas' with { recipe: definition }`,
    );
  const checkCode = (hash: string) => {
    if (hash !== codeHash && acceptChanges !== true)
      throw changedSince(run, `the code of the recipe ${typeof recipe === 'string' ? recipe : source} has changed`);
  };
  if (recipe === undefined && isAbsolute(source) && !(await nodeFiles.exists(source)))
    throw new RunError(
      `${run.path} was started with ${source}, which does not exist; give the recipe's new path with --recipe FILE`,
    );
  if (recipe === undefined) await requireOwnRecipe(run.path, source);
  const loaded = await (typeof recipe === 'object' ? load(recipe) : loadRecipe(recipe ?? source, checkCode));
  await requireOwnSettings(run.path, overrides, { definition: loaded.definition, typed: more });
  const name = typeof recipe === 'string' ? basename(source, extname(source)) : loaded.name; // the name does not change
  return resolved({ ...loaded, name }, [...overrides, ...more]);
}

/**
 * The agents of a run by name, without their weights. Runs of earlier versions do not record them; then the recipe is
 * loaded.
 * @throws RunError, RecipeError as `recipeOfRun` does, only for such a run
 */
export async function agentsOfRun(
  run: RunDirectory,
  acceptChanges?: boolean,
): Promise<Readonly<Record<string, AgentProfile>>> {
  return run.record.agents ?? agentProfiles((await recipeOfRun(run, undefined, { acceptChanges })).recipe);
}

/**
 * The backend of a type that trained a policy of a run: a standard one, else one from the `use` of the run's recipe,
 * as its file is now. Undefined if neither has the type.
 * @throws RunError, RecipeError as `recipeOfRun` does, if the type is not a standard one
 */
export async function backendOfRun(run: RunDirectory, type: unknown): Promise<BackendDeclaration | undefined> {
  const shipped = standard.backends.find((backend) => typeOf(backend) === type);
  if (shipped !== undefined) return shipped;
  const { recipe } = await recipeOfRun(run, undefined, { acceptChanges: true });
  return recipe.lists.backends.find((backend) => typeOf(backend) === type);
}

/**
 * The key that the run's recipe, as its file is now, has for a policy's server. Runs do not record keys.
 * @throws RunError, RecipeError if the recipe cannot be loaded
 */
export async function serverKeyOfRun(run: RunDirectory, policy: string): Promise<Secret | undefined> {
  const { recipe } = await recipeOfRun(run, undefined, { acceptChanges: true });
  return serverKeyOf(backendOfModel(recipe, policy));
}

/**
 * Requires that this user has named or allowed the address of the server that has a policy's weights.
 * @throws RunError with the flag that allows it
 */
export async function requireServerOfRun(run: RunDirectory, url: string): Promise<void> {
  const request = await recipeOfRun(run, undefined, { acceptChanges: true }).catch(() => undefined);
  await requireOwnAddress(run.path, 'checkpoints: tinker.json: url', url, { definition: request?.loaded.definition });
}

export function changedSince({ path }: RunDirectory, what: string): RunError {
  return new RunError(
    `${what} since ${path} was started; --accept-changes (acceptChanges: true) uses the changed version`,
  );
}
