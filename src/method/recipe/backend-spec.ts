/** The types of the backends that this package ships. The composition root has their list. */

import type { embeddedSchema } from '@drmas/engine/embedded';
import type { Secret } from '@drmas/engine/host';
import type { modelKindOf } from '@drmas/engine/model';
import type { server } from '@drmas/tinker';
import type { z } from 'zod';

export type BackendSchema = z.ZodDiscriminatedUnion<[typeof embeddedSchema, (typeof server)['schema']], 'type'>;

export type BackendSpec = z.output<BackendSchema> | { readonly type: ReturnType<typeof modelKindOf>['backend'] };

export const serverKeyOf = (spec: BackendSpec): Secret | undefined => ('apiKey' in spec ? spec.apiKey : undefined);
