/** The first weights of a model that a recipe or a program describes. */
import type { BaseSpec } from '../contract/weights-spec.js';
import type { WholeModelSpec } from './model-spec.js';
import { createTokenizer } from './tokenizers/create-tokenizer.js';
import { chatTemplateWith } from './tokenizers/named-templates.js';

/**
 * The first weights of a whole model. A tiny decoder's come with its sizes and its tokenizer; a checkpoint's are in its
 * directory.
 * @param called The user's name of a checkpoint, for messages; default: its path
 */
export function wholeWeights(model: WholeModelSpec, seed: number, called?: string): BaseSpec {
  if (model.type === 'checkpoint') {
    const { path: directory } = model;
    const chatTemplate = chatTemplateWith(model);
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
