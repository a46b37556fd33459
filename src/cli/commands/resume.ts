import { RunError } from '../../core/errors.js';
import { loadRecipe } from '../../recipe/load.js';
import { recipeJson } from '../../recipe/recipe.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import { contentHash } from '../../runs/cache.js';
import { RunDirectory } from '../../runs/run-directory.js';
import type { CommandContext } from '../context.js';
import { asked, report, work } from './train.js';

export interface ResumeFlags {
  readonly acceptChanges?: boolean;
  readonly threads?: number;
  readonly json?: boolean;
}

/** `drmas resume <run>`: goes on from the last checkpoint as if the run had never stopped. */
export async function resumeCommand(context: CommandContext, path: string, flags: ResumeFlags): Promise<number> {
  const previous = await RunDirectory.open(path);
  const { record } = previous;
  if ((await previous.events()).some((event) => event.type === 'run.finished' && event.reason === 'completed')) {
    throw new RunError(`${path} is complete: there is nothing to resume`);
  }
  const { source, overrides } = record.recipe;
  const loaded = await loadRecipe(source);
  const recipe = resolveRecipe(loaded.definition, { overrides, name: loaded.name });
  const resolved = recipeJson(recipe);
  const codeChanged = loaded.codeHash !== record.recipe.codeHash;
  const changed = codeChanged || contentHash(resolved) !== contentHash(record.resolved);
  if (changed && flags.acceptChanges !== true) {
    const what = codeChanged ? `the code of the recipe ${source} has changed` : 'the recipe resolves to other settings';
    throw new RunError(`${what} since ${path} was started; --accept-changes goes on with it as it is now`);
  }
  await context.work.prepareTasks(recipe);

  const reporting = report(context, recipe, { request: asked(source, overrides), path, json: flags.json === true });
  let run = await RunDirectory.open(path, { sinks: [reporting.sink] });
  const checkpoint = await run.latestCheckpoint();
  if (changed) run = await run.acceptChanges(loaded.codeHash, resolved, checkpoint?.step ?? 0);
  await run.rewind(checkpoint);
  reporting.reporter?.resume(await run.events());
  return work(context, { recipe, run, reporting, checkpoint, threads: flags.threads });
}
