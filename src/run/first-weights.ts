/** Where the first weights of a recipe's models come from. */
import type { BaseSpec, OwnWeights, WeightsSpec } from '../contract/weights-spec.js';
import { type ChoiceTableSpec, type ModelSpec, type WholeModelSpec, wholeModel } from '../model/model-spec.js';
import { createTokenizer } from '../model/tokenizers/create-tokenizer.js';
import type { Assignment } from '../recipe/assignment.js';
import { inPrecisionOf, type Recipe } from '../recipe/recipe.js';

/** The first weights of every model, by its name. `requested` holds the names that the user gave the models. */
export function firstWeights(
  recipe: Recipe,
  { models }: Assignment,
  requested: Assignment,
): Readonly<Record<string, WeightsSpec>> {
  const written = new Map(requested.models.map(({ name, model }) => [name, wholeModel(model)]));
  return Object.fromEntries(
    models.map(({ name, model }, index) => {
      const whole = written.get(name);
      const called = whole?.type === 'checkpoint' ? whole.path : undefined;
      return [name, inPrecisionOf(recipe, name, modelWeights(recipe, model, index, called))];
    }),
  );
}

/** Policies that are to share a warm start begin alike; those with one each begin differently. */
function modelWeights(recipe: Recipe, model: ModelSpec, index: number, called: string | undefined): OwnWeights {
  const { warmStart, seed } = recipe;
  const first = warmStart?.seed ?? seed;
  // Far apart, so that runs with neighbouring seeds have no first weights in common.
  const seedOfModel = warmStart?.share === 'policy' ? first + index * 1000 : first;
  if (model.type === 'choice-table') return tableWeights(model);
  if (model.type !== 'lora') return wholeWeights(model, seedOfModel, called);
  if ('from' in model)
    return { type: 'saved-adapter', base: wholeWeights(model.base, first, called), directory: model.from };
  const { base, rank, alpha, targets } = model;
  const adapter = { rank, alpha, targets };
  return { type: 'adapter', base: wholeWeights(base, first, called), adapter, seed: seedOfModel };
}

/** A table of choices, all equally likely. */
const tableWeights = ({ choices, features, length }: ChoiceTableSpec): OwnWeights => ({
  type: 'table',
  shape: { choices, features, length },
});

/** Where the first weights of a whole model come from; with its sizes and tokenizer, where the recipe says them. */
export function wholeWeights(model: WholeModelSpec, seed: number, called?: string): BaseSpec {
  if (model.type === 'checkpoint') {
    const { path: directory, chatTemplate } = model;
    return { type: 'directory', directory, name: called ?? directory, ...(chatTemplate && { chatTemplate }) };
  }
  const { width, layers, heads, kvHeads, feedForward, context, ropeBase, embeddingDeviation } = model;
  const tokenizer = createTokenizer(model.tokenizer);
  return {
    type: 'random',
    tokenizer,
    seed,
    embeddingDeviation,
    config: {
      vocabSize: tokenizer.vocabSize,
      width,
      layers,
      heads,
      kvHeads,
      headDim: width / heads,
      feedForward,
      context,
      ropeBase,
      normEpsilon: 1e-6,
    },
  };
}
