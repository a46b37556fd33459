import { z } from 'zod';
import { BackendError, RunError } from '../../base/errors.js';
import type { BackendDeclaration } from '../../engine/backends.js';
import { TABLE_CAPABILITIES, TableBackend } from './table-backend.js';

const schema = z.strictObject({ type: z.literal('table') });

/** Tables of choices. This process holds them, also if another backend holds the language models. */
export const table: BackendDeclaration<typeof schema> = {
  schema,
  hidden: true,
  capabilities: TABLE_CAPABILITIES,
  open: async (_, { host: { files } }) => new TableBackend(files),
  plan: {
    readModel: () => Promise.reject(new BackendError('a table of choices cannot be read from a model directory')),
    // A table has a few numbers, far less than a language model.
    memory: async () => ({ policies: {}, total: { bases: 0, cache: 0, total: 0 } }),
    memoryElsewhere: () => undefined,
  },
  prepareExport: ({ policy, from }) =>
    Promise.reject(
      new RunError(
        `policy '${policy}' is a table of choices, not a language model: ${from}/choices.json has all of it`,
      ),
    ),
};
