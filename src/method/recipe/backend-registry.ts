/** The backends of language models, one row each. The composition root adds the backend of tables (`src/lab`). */
import type { z } from 'zod';
import type { BackendDeclaration } from '../../engine/backends.js';
import { embedded } from '../../engine/embedded.js';
import { server } from '../../tinker/client.js';

export const backends: readonly BackendDeclaration[] = [embedded, server];

/** The schema of a recipe's section `backend`. */
export type BackendSchema = z.ZodDiscriminatedUnion<[(typeof embedded)['schema'], (typeof server)['schema']], 'type'>;

/** A backend as a recipe describes it, or the backend of choice tables. */
export type BackendSpec = z.output<BackendSchema> | { readonly type: 'table' };
