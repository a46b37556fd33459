/** The backends that there are, one row each. Whoever needs to know something about one asks its row. */
import { z } from 'zod';
import type { BackendDeclaration } from './backend-declaration.js';
import { embedded } from './embedded/embedded-declaration.js';
import { SAMPLER_KEY, type SamplerSpec } from './samplers/sampler-spec.js';
import { table } from './table/table-declaration.js';
import { server } from './tinker/tinker-declaration.js';

const named = [embedded, server] as const;
/** Tables of choices are held by theirs, which no recipe names. */
const rows = [...named, table] as const;

type Schemas<Rows> = { readonly [I in keyof Rows]: Rows[I] extends { readonly schema: infer Schema } ? Schema : never };

/** The recipe's section `backend`. */
export const backendSchema = z.discriminatedUnion(
  'type',
  // `map` gives an array of the union, and the schema needs the tuple, whose members keep their types.
  named.map(({ schema }) => schema) as unknown as Schemas<typeof named>,
);

/** A backend as a recipe describes it, or that of tables. */
export type BackendSpec = z.output<Schemas<typeof rows>[number]>;

type Row = BackendDeclaration<z.ZodType<BackendSpec>>;

/** The row of the backend that a recipe names by its type; undefined where there is none. */
export function backendNamed(type: string): Row | undefined {
  // A row is only ever given the spec that named it, which an index hides from the compiler.
  return rows.find(({ schema }) => schema.shape.type.value === type) as Row | undefined;
}

/** The row of a recipe's backend. */
export function backendOf({ type }: BackendSpec): Row {
  return backendNamed(type) as Row; // the schema has no other types
}

/**
 * A text that is equal for descriptions of one backend or one engine. It holds the key of a server: it is never shown
 * or kept.
 */
export function backendIdentity(spec: BackendSpec | SamplerSpec): string {
  return JSON.stringify([spec, 'apiKey' in spec ? spec.apiKey?.reveal() : undefined]);
}

/** The environment variables that hold the keys of backends, and of engines that sample. */
export const backendKeyVariables: readonly string[] = [
  ...rows.flatMap(({ keyVariable }: BackendDeclaration) => (keyVariable === undefined ? [] : [keyVariable])),
  SAMPLER_KEY,
];
