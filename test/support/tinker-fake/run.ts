/** A small team trained on a fake server. */

import type { DecoderConfig } from '../../../src/engine/contract/architecture.js';
import { checkpoint, lora } from '../../../src/engine/model/model-spec.js';
import { createTokenizer } from '../../../src/engine/model/tokenizers/create-tokenizer.js';
import type { RecipeInput } from '../../../src/method/recipe/define.js';
import { arithmeticSymbols } from '../../../src/teams/tasks/generated/arithmetic.js';
import { type TinkerInput, tinker } from '../../../src/tinker/client/tinker-spec.js';
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
