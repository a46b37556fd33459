import type { Backend } from '../../contract/backend.js';
import type { Capabilities, Hardware } from '../../contract/capabilities.js';
import type { Handles, Role } from '../../contract/handles.js';
import type { WeightsSpec } from '../../contract/weights-spec.js';
import { BackendError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import { lossTypes } from '../../loss/loss-spec.js';
import { readTable } from './table-files.js';
import { TablePolicy, type TableRoom, tableOf } from './table-policy.js';

const weights = ['table', 'directory', 'like'] as const;

export const TABLE_CAPABILITIES: Capabilities = {
  roles: { frozen: weights, policy: weights, critic: [] },
  bases: [],
  precisions: ['float32'],
  losses: lossTypes,
  optimizers: ['adamw', 'sgd', 'nigt'],
  distribution: 'whole',
  keepsVersions: true,
  gradientNorms: 'before-update',
  clipsGradients: true,
  weights: 'here',
};

/**
 * Holds tables of choices. They are so small that the plain kernels compute them in this thread; decision 53 says why
 * they are a backend.
 */
export class TableBackend implements Backend {
  readonly capabilities = TABLE_CAPABILITIES;
  readonly hardware: Hardware = { kernels: 'reference', isa: 'typescript' };
  readonly #room: TableRoom;

  constructor(files: Files) {
    this.#room = { files, disposed: false };
  }

  /** @throws CheckpointError when a directory holds no table */
  async open<R extends Role>(spec: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
    if (this.#room.disposed) throw new BackendError('the tables of choices were given back');
    if (role === 'critic') throw new BackendError(`'${name}': a table of choices has no critic`);
    // What a table can do does not depend on its role: nobody asks a frozen one to train.
    return (await this.#open(spec, name)) as TablePolicy & Handles[R];
  }

  async #open(spec: WeightsSpec, name: string): Promise<TablePolicy> {
    const room = this.#room;
    switch (spec.type) {
      case 'table':
        return new TablePolicy(room, spec.shape, name);
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
