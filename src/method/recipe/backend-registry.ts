/** The backends of this package, one row each. A recipe's plug-ins can add to them. */
import type { z } from 'zod';
import type { BackendDeclaration } from '../../engine/backends.js';
import { embedded } from '../../engine/embedded.js';
import { table } from '../../lab/backend.js';
import { server } from '../../tinker/client.js';

export const backends: readonly BackendDeclaration[] = [embedded, server, table];

/** The schema of a recipe's section `backend`. */
export type BackendSchema = z.ZodDiscriminatedUnion<[(typeof embedded)['schema'], (typeof server)['schema']], 'type'>;

/** A backend as a recipe describes it, or the backend of choice tables. */
export type BackendSpec = z.output<BackendSchema> | z.output<(typeof table)['schema']>;
