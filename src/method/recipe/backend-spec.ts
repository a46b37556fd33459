/** The types of the backends that this package ships. The composition root has their list. */

import type { embeddedSchema } from '@drmas/engine/embedded';
import type { Secret } from '@drmas/engine/host';
import type { modelKindOf } from '@drmas/engine/model';
import type { server } from '@drmas/tinker';
import type { z } from 'zod';

/** The schema of a recipe's section `backend`. */
export type BackendSchema = z.ZodDiscriminatedUnion<[typeof embeddedSchema, (typeof server)['schema']], 'type'>;

/** A backend as a recipe describes it, or the backend of a kind of model. */
export type BackendSpec = z.output<BackendSchema> | { readonly type: ReturnType<typeof modelKindOf>['backend'] };

/** The key that a recipe has for a server. Undefined without one, or without a server. */
export const serverKeyOf = (spec: BackendSpec): Secret | undefined => ('apiKey' in spec ? spec.apiKey : undefined);
