/**
 * Types that are written by hand, because rooms below the recipe's room need them. Their doc comments must equal the
 * descriptions in the schema.
 */
import { join } from 'node:path';
import ts from 'typescript';
import { member, type Node } from './json-schema.js';
import { root } from './pages.js';
import { modelNode, settingsNode } from './settings-page.js';

interface Documented {
  readonly file: string;
  readonly type: string;
  readonly node: Node;
}

function documented(): Documented[] {
  return [
    { file: 'src/method/recipe/define.ts', type: 'RecipeInput', node: settingsNode() },
    {
      file: 'packages/engine/src/model/model-spec.ts',
      type: 'TinyDecoderInput',
      node: member(modelNode(), 'tiny-decoder'),
    },
    {
      file: 'packages/engine/src/model/model-spec.ts',
      type: 'CheckpointSpec',
      node: member(modelNode(), 'checkpoint'),
    },
    { file: 'packages/engine/src/model/model-spec.ts', type: 'LoraInput', node: member(modelNode(), 'lora') },
  ];
}

/** Keys whose doc comment in the type differs from their description in the schema, one line each. */
export function disagreements(program: ts.Program): string[] {
  const checker = program.getTypeChecker();
  return documented().flatMap(({ file, type, node }) => {
    const source = program.getSourceFile(join(root, file));
    const module = source && checker.getSymbolAtLocation(source);
    const symbol = module && checker.getExportsOfModule(module).find(({ name }) => name === type);
    if (symbol === undefined) return [`${file}: expected an exported type ${type}`];
    const properties = checker.getDeclaredTypeOfSymbol(symbol).getProperties();
    return properties.flatMap((property) => {
      const described = node.properties?.[property.name]?.description;
      const written = ts.displayPartsToString(property.getDocumentationComment(checker)).replaceAll(/\s+/g, ' ');
      if (described === undefined || described === written) return [];
      return [
        `${file}: ${type}.${property.name} has the comment "${written}"; expected, as in its schema: "${described}"`,
      ];
    });
  });
}
