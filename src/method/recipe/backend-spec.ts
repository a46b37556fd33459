/** The types of the backends that this package ships. The composition root has their list. */
import type { z } from 'zod';
import type { embeddedSchema } from '../../engine/backends.js';
import type { modelKindOf } from '../../engine/model.js';
import type { server } from '../../tinker/client.js';

/** The schema of a recipe's section `backend`. */
export type BackendSchema = z.ZodDiscriminatedUnion<[typeof embeddedSchema, (typeof server)['schema']], 'type'>;

/** A backend as a recipe describes it, or the backend of a kind of model. */
export type BackendSpec = z.output<BackendSchema> | { readonly type: ReturnType<typeof modelKindOf>['backend'] };
