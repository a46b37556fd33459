/** Requirements that a recipe has to meet. */
import { RecipeError } from '../../core/errors.js';

/** One requirement, of the value at a path of the recipe. The message says what is wrong where the test is false. */
export interface Check {
  readonly path: string;
  readonly test: boolean;
  readonly message: string;
}

export type Checks = Generator<Check, void>;

/** @throws RecipeError with the path of the first value that is wrong */
export function requireAll(checks: Checks): void {
  for (const { path, test, message } of checks) if (!test) throw new RecipeError(message, path);
}
