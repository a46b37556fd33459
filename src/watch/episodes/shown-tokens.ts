import type { Tokenizer } from '../../core/tokenizer.js';
import { isObject } from '../../core/validation/objects.js';
import { createTokenizer } from '../../model/tokenizers/create-tokenizer.js';
import type { ShownToken } from '../../report/analysis/shown-episode.js';
import type { StoredEpisode } from '../../store/episode-files.js';

/** The tokens of a turn's response, with what the file holds of each. */
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

/** One number for all tokens, or one a token. */
const ofToken = (value: number | readonly number[] | undefined, token: number): number | null =>
  typeof value === 'number' ? value : (value?.[token] ?? null);

/** The tokenizer of a policy, where recipe.json holds it; that of a downloaded model lies elsewhere. */
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
