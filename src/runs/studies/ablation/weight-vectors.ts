/** Weight vectors over named parts of a reward, as variants of an ablation. */
import { RecipeError } from '@drmas/engine/errors';

/** More variants than this are probably a mistake. */
const MOST = 200;

/**
 * All vectors of weights that sum to 1, in steps of 1 / (points - 1), as bundles of overrides. For two parts these are
 * `points` vectors, from all weight on the first part to all weight on the second.
 * @throws RecipeError if the parts are not at least two different names
 */
export function weightVectors(parts: readonly string[], points = 5): Record<string, readonly string[]> {
  if (parts.length < 2 || new Set(parts).size < parts.length)
    throw new RecipeError(`expected at least two named parts of the reward, got '${parts.join(',')}'`, 'weights');
  const odd = parts.find((part) => !/^[^.=\s]+$/.test(part));
  if (odd !== undefined) throw new RecipeError(`'${odd}' is no name that a setting can have`, 'weights');
  if (!Number.isInteger(points) || points < 2) throw new RecipeError(`expected at least 2, got ${points}`, 'points');
  const vectors = shares(parts.length, points - 1);
  if (vectors.length > MOST)
    throw new RecipeError(`${vectors.length} vectors of weights are too many; expected at most ${MOST}`, 'points');
  const digits = Math.max(2, Math.ceil(Math.log10(points - 1))); // so that no two vectors have one name
  return Object.fromEntries(
    vectors.map((counts) => {
      const weights = counts.map((count) => count / (points - 1));
      const name = parts.map((part, i) => `${part} ${(weights[i] as number).toFixed(digits)}`).join(', ');
      return [name, parts.map((part, i) => `training.partWeights.${part}=${weights[i]}`)];
    }),
  );
}

/** All ways to divide a number of equal shares. The first position gets its largest share first. */
function shares(places: number, total: number): number[][] {
  if (places === 1) return [[total]];
  return Array.from({ length: total + 1 }, (_, i) => total - i).flatMap((first) =>
    shares(places - 1, total - first).map((rest) => [first, ...rest]),
  );
}
