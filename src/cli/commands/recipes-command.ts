import { loadRecipe, shippedRecipes } from '../../recipe/load-recipe.js';
import { recipeJson } from '../../recipe/recipe.js';
import { resolveRecipe } from '../../recipe/resolve.js';
import { requestRecipe } from '../../run/request.js';
import { argument, defineCommand } from '../define-command.js';
import { set } from '../flags.js';
import { modelText } from '../reporter/start-printer.js';

const show = defineCommand({
  name: 'show',
  description: 'print a recipe with every default filled in',
  details: 'prints a recipe with every default filled in',
  arguments: [argument('recipe', 'name or file')],
  flags: { set },
  examples: [],
  async run(context, [source], flags) {
    const { recipe } = await requestRecipe(source, flags);
    context.stdout.write(`${JSON.stringify(recipeJson(recipe), null, 2)}\n`);
    return 0;
  },
});

export const recipes = defineCommand({
  name: 'recipes',
  description: 'list the recipes that ship',
  details: 'lists what ships; `drmas recipes show <recipe>` prints one with every default filled in',
  arguments: [],
  flags: {},
  examples: ['drmas recipes', 'drmas recipes show math'],
  async run(context) {
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
  },
  subcommands: [show],
});
