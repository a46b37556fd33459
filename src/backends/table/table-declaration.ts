import { z } from 'zod';
import { BackendError, RunError } from '../../core/errors.js';
import type { BackendDeclaration } from '../backend-declaration.js';
import { TABLE_CAPABILITIES, TableBackend } from './table-backend.js';

const schema = z.strictObject({ type: z.literal('table') });

/** Tables of choices, which are held in this process whatever holds the language models. */
export const table: BackendDeclaration<typeof schema> = {
  schema,
  capabilities: TABLE_CAPABILITIES,
  open: async (_, { host: { files } }) => new TableBackend(files),
  plan: {
    readModel: () => Promise.reject(new BackendError('tables of choices are read from no model directory')),
    // A few numbers each, beside language models nothing.
    memory: async () => ({ policies: {}, total: { bases: 0, cache: 0, total: 0 } }),
    memoryElsewhere: () => undefined,
  },
  prepareExport: ({ policy, from }) =>
    Promise.reject(
      new RunError(`policy '${policy}' is a table of choices, no language model: ${from}/choices.json is all of it`),
    ),
};
