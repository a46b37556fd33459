import { faultsText, RecipeError } from '@drmas/engine/errors';
import type { z } from 'zod';

/**
 * Checks the options of a task source and fills in their defaults.
 *
 * @param source The name of the source, which the error's message begins with
 * @throws RecipeError naming the option that is wrong
 *
 * @example
 * ```ts
 * import { checkedOptions } from 'drmas/tasks';
 * import { z } from 'zod';
 *
 * const { seed } = checkedOptions('riddles', z.strictObject({ seed: z.int().default(0) }), {});
 * ```
 */
export function checkedOptions<Schema extends z.ZodType>(
  source: string,
  schema: Schema,
  options: unknown,
): z.output<Schema> {
  const checked = schema.safeParse(options);
  if (!checked.success) throw new RecipeError(`${source}: ${faultsText(schema, options)}`);
  return checked.data;
}
