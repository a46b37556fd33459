import { forwardBackward } from '@drmas/engine/backends';
import type {
  ForwardBackwardResult,
  GenerateRequest,
  Generation,
  OnTokens,
  OptimStepResult,
  OptimStepSettings,
  PolicyHandle,
  StateOptions,
} from '@drmas/engine/contract';
import { ArgumentError, BackendError, CheckpointError, NonFiniteError } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import { createReferenceKernels } from '@drmas/engine/kernels';
import type { ForwardBackwardOptions } from '@drmas/engine/loss';
import type { Tokenizer, TrainingSample } from '@drmas/engine/nouns';
import { choicesTokenizer } from '@drmas/engine/tokens';
import { ChoiceTable, type TableShape } from './choice-table.js';
import { readTable, type TableState, writeTable } from './table-files.js';

/** The state that the tables of a backend share. */
export interface TableRoom {
  readonly files: Files;
  disposed: boolean;
}

/** A table of choices, for training or for playing only. Calls take effect in their order. */
export class TablePolicy implements PolicyHandle {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly warnings: readonly string[] = [];
  readonly #room: TableRoom;
  readonly #table: ChoiceTable;
  /** The published logits by version, the oldest first. */
  readonly #published = new Map<number, Float32Array>();
  #nextVersion = 0;
  /** The last call. Its caller gets the result or the error. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(room: TableRoom, shape: TableShape, name: string) {
    this.name = name;
    this.tokenizer = choicesTokenizer(shape);
    this.#room = room;
    this.#table = new ChoiceTable(createReferenceKernels(), shape);
  }

  get context(): number {
    return this.#table.context;
  }

  get parameters(): number {
    return this.#table.values.length;
  }

  get shape(): TableShape {
    return this.#table.shape;
  }

  get version(): number | undefined {
    return [...this.#published.keys()].at(-1);
  }

  isIn(room: TableRoom): boolean {
    return this.#room === room;
  }

  logprobs(samples: readonly TrainingSample[]): Promise<Float32Array[]> {
    return this.#compute(async () => (await this.#table.score(samples)).logprobs);
  }

  forwardBackward(samples: readonly TrainingSample[], options: ForwardBackwardOptions): Promise<ForwardBackwardResult> {
    return this.#compute(() => forwardBackward(this.#table, samples, options));
  }

  async discardGradient(): Promise<void> {
    await this.#compute(() => this.#table.gradient.fill(0));
  }

  optimStep(settings: OptimStepSettings): Promise<OptimStepResult> {
    return this.#compute(() => this.#table.optimStep(settings));
  }

  async resetOptimizer(): Promise<void> {
    await this.#compute(() => this.#table.optimizer.reset());
  }

  async copyFrom(policy: PolicyHandle): Promise<void> {
    await this.begin(tableOf(this.#room, policy));
  }

  /** Copies the logits of a table of this shape, and clears the optimiser's state. @throws BackendError */
  async begin(from: TablePolicy): Promise<void> {
    const before = from.#last;
    await this.#compute(async () => {
      await before;
      this.#takeOver(from);
    });
  }

  #takeOver(from: TablePolicy): void {
    if (JSON.stringify(from.shape) !== JSON.stringify(this.shape))
      throw new BackendError(`the table of policy '${from.name}' does not fit '${this.name}': their choices differ`);
    this.#table.values.set(from.#table.values);
    this.#table.optimizer.reset();
  }

  publish(keep = 1): Promise<number> {
    return this.#compute(() => {
      const version = this.#nextVersion++;
      this.#published.set(version, this.#table.values.slice());
      for (const old of [...this.#published.keys()].slice(0, -keep)) this.#published.delete(old);
      return version;
    });
  }

  async generate(request: GenerateRequest, signal?: AbortSignal, onTokens?: OnTokens): Promise<Generation> {
    signal?.throwIfAborted();
    const generation = await this.#compute(() => this.#sample(request));
    signal?.throwIfAborted();
    onTokens?.(generation.tokens);
    return generation;
  }

  async save(directory: string, { optimizer }: StateOptions = { optimizer: false }): Promise<void> {
    const table = this.#table;
    const state = await this.#compute(async (): Promise<TableState> => {
      await table.requireFinite({ optimizer });
      const logits = table.values.slice();
      if (!optimizer) return { logits };
      return { logits, optimizer: { ...(await table.optimizer.copyState()), version: this.version ?? 0 } };
    });
    await writeTable(this.#room.files, directory, this.shape, state);
  }

  /** @throws CheckpointError if the directory holds no table, or a table with other choices */
  async load(directory: string, options: StateOptions): Promise<void> {
    const { shape, state } = await readTable(this.#room.files, directory, options);
    for (const key of ['choices', 'features', 'length'] as const) {
      const [present, read] = [shown(this.shape[key]), shown(shape[key])];
      if (present !== read)
        throw new CheckpointError(`${directory}: '${this.name}' has ${key} ${present}, the checkpoint ${read}`);
    }
    await this.#compute(() => {
      this.#table.values.set(state.logits);
      if (state.optimizer === undefined) return;
      this.#table.optimizer.restore(state.optimizer);
      this.#nextVersion = state.optimizer.version;
    });
  }

  #sample(request: GenerateRequest): Generation {
    const version = request.version ?? this.version;
    if (version === undefined) throw new BackendError(`policy '${this.name}' has not been published`);
    const logits = this.#published.get(version);
    if (logits === undefined) throw new BackendError(`version ${version} of policy '${this.name}' is not kept`);
    return { ...this.#table.sample(logits, request), policyVersion: version };
  }

  /** @throws BackendError after `dispose`, and for arguments that the table refuses */
  #compute<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    const result = this.#last.then(() => this.#naming(work));
    this.#last = result.catch(() => {});
    return result;
  }

  async #naming<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    if (this.#room.disposed) throw new BackendError('the tables of choices were disposed of');
    try {
      return await work();
    } catch (error) {
      if (error instanceof NonFiniteError) throw new NonFiniteError(`policy '${this.name}': ${error.message}`);
      if (error instanceof ArgumentError) throw new BackendError(`policy '${this.name}': ${error.message}`);
      throw error;
    }
  }
}

/** A list of names, or a number, without spaces. */
const shown = (value: readonly string[] | number): string => (typeof value === 'number' ? `${value}` : value.join('|'));

/** The table behind a handle. @throws BackendError if another backend made the handle */
export function tableOf(room: TableRoom, policy: PolicyHandle): TablePolicy {
  if (policy instanceof TablePolicy && policy.isIn(room)) return policy;
  throw new BackendError(`policy '${policy.name}' belongs to another backend`);
}
