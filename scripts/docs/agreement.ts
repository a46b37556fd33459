/**
 * The type of a recipe is written by hand, because it depends on the team. Its doc comments must equal the descriptions
 * in the schema.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { root } from './pages.js';
import { settingsNode } from './settings-page.js';

const FILE = 'src/method/recipe/define.ts';
const TYPE = 'RecipeInput';

/** Keys whose doc comment in the type differs from their description in the schema, one line each. */
export function disagreements(program: ts.Program): string[] {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(join(root, FILE));
  const module = source && checker.getSymbolAtLocation(source);
  const symbol = module && checker.getExportsOfModule(module).find(({ name }) => name === TYPE);
  if (symbol === undefined) return [`${FILE}: expected an exported type ${TYPE}`];
  const keys = settingsNode().properties ?? {};
  return checker
    .getDeclaredTypeOfSymbol(symbol)
    .getProperties()
    .flatMap((property) => {
      const described = keys[property.name]?.description;
      const written = ts.displayPartsToString(property.getDocumentationComment(checker)).replaceAll(/\s+/g, ' ');
      if (described === undefined || described === written) return [];
      return [
        `${FILE}: ${TYPE}.${property.name} has the comment "${written}"; expected, as in its schema: "${described}"`,
      ];
    });
}
