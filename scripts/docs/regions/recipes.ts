import { modelText } from '../../../src/cli/reporter/start-printer.js';
import { loadRecipe, shippedRecipes } from '../../../src/method/recipe/load-recipe.js';
import { resolveRecipe } from '../../../src/runs/composition/resolve-recipe.js';
import { type Region, table } from '../pages.js';

/** The recipes that ship, each with its team, its tasks and the model of its policies. */
export const recipes: Region = {
  name: 'recipes',
  async render() {
    const rows: string[][] = [];
    for (const name of shippedRecipes()) {
      const { team, tasks, policies } = resolveRecipe((await loadRecipe(name)).definition, { name });
      const models = new Set(Object.values(policies).map(({ model }) => modelText(model)));
      rows.push([
        `[\`${name}\`](../recipes/${name}/recipe.ts)`,
        Object.keys(team.agents).join(', '),
        tasks.train.name,
        `${Object.keys(policies).length} x ${[...models].join(' / ')}`,
      ]);
    }
    return table(['name', 'agents', 'tasks', 'policies'], rows);
  },
};
