import { isObject } from '../../../base/errors.js';
import type { Tokenizer } from '../../../base/nouns.js';
import { createTokenizer } from '../../../engine/tokens.js';
import type { StoredEpisode } from '../../../method/store.js';
import type { ShownToken } from '../../../runs/analysis.js';

/** The tokens of a turn's response, with the values of each token in the file. */
export function shownTokens(
  { policy, response, logprobs, advantage, ratio, clipped = [] }: StoredEpisode['turns'][number],
  recipe: Readonly<Record<string, unknown>>,
): ShownToken[] {
  const tokenizer = tokenizerOf(policy, recipe);
  return (response ?? []).map((id, i) => ({
    text: tokenText(id, tokenizer),
    logprob: logprobs?.[i] ?? null,
    advantage: ofToken(advantage, i),
    ratio: ofToken(ratio, i),
    clipped: clipped.includes(i),
  }));
}

/** One number for all tokens, or one per token. */
const ofToken = (value: number | readonly number[] | undefined, token: number): number | null =>
  typeof value === 'number' ? value : (value?.[token] ?? null);

/** The tokenizer of a policy if recipe.json contains it. The tokenizer of a downloaded model is not in the run. */
function tokenizerOf(policy: string, { policies }: Readonly<Record<string, unknown>>): Tokenizer | undefined {
  const of = isObject(policies) ? policies[policy] : undefined;
  const model = isObject(of) ? of.model : undefined;
  if (!isObject(model)) return undefined;
  try {
    return createTokenizer(model.tokenizer);
  } catch {
    return undefined;
  }
}

function tokenText(id: number, tokenizer: Tokenizer | undefined): string {
  try {
    return tokenizer?.decode([id]) || `⟨${id}⟩`;
  } catch {
    return `⟨${id}⟩`;
  }
}
