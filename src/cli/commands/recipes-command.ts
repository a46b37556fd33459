import { recipeJson } from '../../method/recipe.js';
import { loadRecipe, shippedRecipes } from '../../method/recipe-files.js';
import { resolveRecipe } from '../../runs/composition.js';
import { requestRecipe } from '../../runs/index.js';
import { argument, defineCommand } from '../define-command.js';
import { set } from '../flags.js';
import { modelText } from '../reporter/start-printer.js';

const show = defineCommand({
  name: 'show',
  description: 'print a recipe with all its settings',
  details: 'prints a recipe with all its settings, defaults included',
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
  description: 'list the recipes that ship with drmas',
  details: 'lists the recipes that ship with drmas. `drmas recipes show <recipe>` prints one with all its settings',
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
    context.stdout.write('\nSettings of a recipe: drmas recipes show <name>\n');
    return 0;
  },
  subcommands: [show],
});
