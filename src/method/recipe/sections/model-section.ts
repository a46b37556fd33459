/** The settings of a model: a union by `type` of the kinds of models. */
import { z } from 'zod';
import type { ModelInput } from '../../../engine/model.js';
import { loraModel, wholeModels } from '../../../engine/model.js';
import { modelKinds } from '../../../lab/index.js';

export const modelSchema = z.discriminatedUnion('type', [
  ...wholeModels,
  ...modelKinds.map(({ schema }) => schema),
  loraModel,
]) satisfies z.ZodType<ModelInput>;
