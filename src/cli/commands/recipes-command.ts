import { loadRecipe, shippedRecipes } from '../../recipe/load-recipe.js';
import { recipeJson } from '../../recipe/recipe.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import { requestRecipe } from '../../run/request.js';
import type { CommandContext } from '../command-context.js';
import { modelText } from '../reporter/start-printer.js';

/** `drmas recipes`: what ships. */
export async function recipesCommand(context: CommandContext): Promise<number> {
  const rows = await Promise.all(
    shippedRecipes().map(async (name) => {
      const { definition } = await loadRecipe(name);
      const { team, tasks, policies } = resolveRecipe(definition, { name });
      const models = new Set(Object.values(policies).map(({ model }) => modelText(model)));
      const agents = Object.keys(team.agents).join(' + ');
      return `${name}\n  ${agents} on ${tasks.train.name}; ${Object.keys(policies).length} x ${[...models].join(' / ')}\n`;
    }),
  );
  context.stdout.write(rows.join(''));
  context.stdout.write('\nSee one with: drmas recipes show <name>\n');
  return 0;
}

/** `drmas recipes show <name>`: the resolved whole, every default filled in. */
export async function showRecipeCommand(
  context: CommandContext,
  source: string,
  flags: { readonly set: readonly string[] },
): Promise<number> {
  const { recipe } = await requestRecipe(source, flags);
  context.stdout.write(`${JSON.stringify(recipeJson(recipe), null, 2)}\n`);
  return 0;
}
