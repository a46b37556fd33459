import { TokenizerError } from '../../errors.js';

/**
 * Returns the text if it is well-formed. Half of a surrogate pair has no UTF-8 form; encoders would replace it
 * silently.
 * @throws TokenizerError naming the position of a lone surrogate.
 */
export function requireWellFormed(text: string): string {
  const at = text.search(/\p{Surrogate}/u);
  if (at < 0) return text;
  const code = text.charCodeAt(at).toString(16);
  throw new TokenizerError(
    `position ${at} of the text is half a surrogate pair (\\u${code}), which is not a character`,
  );
}
