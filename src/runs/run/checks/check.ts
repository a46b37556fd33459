/** Requirements that a recipe has to meet. */
import { RecipeError } from '../../../base/errors.js';
import type { Requirement } from '../../../method/index.js';

export type Checks = Generator<Requirement, void>;

/** @throws RecipeError with the path of the first value that is wrong */
export function requireAll(checks: Checks): void {
  for (const { path, test, message } of checks) if (!test) throw new RecipeError(message, path);
}
