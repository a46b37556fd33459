import type { BackendDeclaration } from '@drmas/engine/backends';
import type { Backend, Capabilities, Handles, Hardware, Role, WeightsSpec } from '@drmas/engine/contract';
import { BackendError, RunError } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import { lossTypes } from '@drmas/engine/loss';
import { type ChoiceTableSpec, optimizerTypes } from '@drmas/engine/model';
import { z } from 'zod';
import { readTable } from './table-files.js';
import { TablePolicy, type TableRoom, tableOf } from './table-policy.js';

const weights = ['of-kind', 'directory', 'like'] as const;

export const TABLE_CAPABILITIES: Capabilities = {
  roles: { frozen: weights, policy: weights, critic: [] },
  bases: [],
  precisions: ['float32'],
  agentAdapters: false,
  losses: lossTypes,
  optimizers: optimizerTypes,
  distribution: 'whole',
  keepsVersions: true,
  gradientNorms: 'before-update',
  clipsGradients: true,
  weights: 'here',
};

/**
 * Holds tables of choices. They are so small that the plain kernels compute them in this thread. Decision 53 explains
 * why tables have a backend.
 */
export class TableBackend implements Backend {
  readonly capabilities = TABLE_CAPABILITIES;
  readonly hardware: Hardware = { kernels: 'reference', isa: 'typescript' };
  readonly #room: TableRoom;

  constructor(files: Files) {
    this.#room = { files, disposed: false };
  }

  /** @throws CheckpointError if a directory holds no table */
  async open<R extends Role>(spec: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
    if (this.#room.disposed) throw new BackendError('the tables of choices were disposed of');
    if (role === 'critic') throw new BackendError(`'${name}': a table of choices has no critic`);
    // Every table has all methods; the role decides which of them callers see.
    return (await this.#open(spec, name)) as TablePolicy & Handles[R];
  }

  async #open(spec: WeightsSpec, name: string): Promise<TablePolicy> {
    const room = this.#room;
    switch (spec.type) {
      case 'of-kind': {
        const { type, ...shape } = spec.model as ChoiceTableSpec; // models of other kinds are on other backends
        return new TablePolicy(room, shape, name);
      }
      case 'directory': {
        const { shape } = await readTable(room.files, spec.directory, { optimizer: false });
        const table = new TablePolicy(room, shape, name);
        await table.load(spec.directory, { optimizer: false });
        return table;
      }
      case 'like': {
        const policy = tableOf(room, spec.policy);
        const table = new TablePolicy(room, policy.shape, name);
        if (spec.directory === undefined) await table.begin(policy);
        else await table.load(spec.directory, { optimizer: false });
        return table;
      }
      default:
        throw new BackendError(`'${name}': expected a table of choices, got weights of type '${spec.type}'`);
    }
  }

  async dispose(): Promise<void> {
    this.#room.disposed = true;
  }
}

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
