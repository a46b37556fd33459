/** A small team trained on a fake server. */

import { type TinkerInput, tinker } from '../../../src/backends/tinker/tinker-spec.js';
import type { DecoderConfig } from '../../../src/contract/architecture.js';
import { checkpoint, lora } from '../../../src/model/model-spec.js';
import { createTokenizer } from '../../../src/model/tokenizers/create-tokenizer.js';
import type { RecipeInput } from '../../../src/recipe/define.js';
import { arithmeticSymbols } from '../../../src/tasks/generated/arithmetic.js';
import { tinyRecipe } from '../tiny-run.js';
import { writeBaseModel } from './base-model.js';

const symbols = createTokenizer({
  type: 'symbols',
  symbols: arithmeticSymbols,
  stop: '<end>',
  endOfUser: '<ask>',
  endOfAssistant: '<end>',
});

/** A base that speaks the symbols of arithmetic tasks. */
export const writeSymbolsModel = (root: string, options: { name?: string; config?: Partial<DecoderConfig> } = {}) =>
  writeBaseModel(root, { tokenizer: symbols, ...options });

/** The tiny team with adapters on the model in `directory`, on the server. */
export function remoteRecipe(
  directory: string,
  backend: Omit<TinkerInput, 'type'>,
  changes: Partial<RecipeInput> = {},
  overrides: readonly string[] = [],
) {
  return tinyRecipe(
    {
      model: lora(checkpoint(directory), { rank: 4 }),
      backend: tinker(backend),
      warmStart: undefined,
      ...changes,
    } as Partial<RecipeInput>,
    overrides,
  );
}
