import type { z } from 'zod';
import { ArgumentError } from '../errors.js';
import { faultsText, suggestion } from './explain.js';

/** The names of all options of a call: the compiler checks that none is missing. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true };

/**
 * Refuses options that a call does not have, which would silently have no effect.
 * @param start The beginning of the message, before the name
 * @throws ArgumentError naming one
 */
export function requireKnown<Options>(options: object, known: OptionNames<Options>, start = 'unknown option'): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw new ArgumentError(`${start} '${unknown}'${suggestion(unknown, Object.keys(known))}`);
}

/**
 * Checks the options of a function that makes a part of a team, such as `agent`, and fills in their defaults.
 * @throws ArgumentError naming each that is wrong
 */
export function madeWith<Schema extends z.ZodType>(schema: Schema, options: unknown, maker: string): z.output<Schema> {
  const checked = schema.safeParse(options);
  if (checked.success) return checked.data;
  throw new ArgumentError(`${maker}(...): ${faultsText(schema, options)}`);
}
