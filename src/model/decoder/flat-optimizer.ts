import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';

type OptimizerType = OptimizerSettings['type'];

/** The buffers that each optimiser holds, one number for every weight, by their names in checkpoints. */
export const OPTIMIZER_BUFFERS = {
  adamw: ['first_moment', 'second_moment'],
  sgd: ['momentum'],
  nigt: ['direction', 'ahead'],
} as const satisfies Record<OptimizerType, readonly string[]>;

type BufferName = (typeof OPTIMIZER_BUFFERS)[OptimizerType][number];

/** The state that an optimiser carries from step to step, with its buffers where they are, or copies. */
export interface OptimizerState<F extends Floats = Float32Array> {
  readonly type: OptimizerType;
  /** The number of steps so far. */
  readonly step: number;
  /** The buffers, [parameters] each; a missing one is all zeros. */
  readonly buffers: Readonly<Partial<Record<BufferName, F>>>;
}

/** An optimiser of one flat buffer of weights. Its buffers are allocated when a step first needs them. */
export class FlatOptimizer {
  readonly #kernels: Kernels;
  readonly #length: number;
  #type: OptimizerType = 'adamw';
  #step = 0;
  #buffers: Partial<Record<BufferName, Floats>> = {};

  constructor(kernels: Kernels, length: number) {
    this.#kernels = kernels;
    this.#length = length;
  }

  /** Makes one step on the gradient times `gradientScale`. A change of the optimiser's type clears its state. */
  update(settings: OptimizerSettings, weights: Floats, gradient: Floats, gradientScale: number): void {
    if (settings.type !== this.#type) this.restore({ type: settings.type, step: 0, buffers: {} });
    this.#step++;
    if (settings.type === 'sgd') {
      const directions = settings.momentum > 0 ? this.#buffer('momentum') : undefined;
      this.#kernels.sgd(weights, gradient, directions, this.#length, { ...settings, gradientScale });
      return;
    }
    if (settings.type === 'nigt') {
      const [direction, ahead] = [this.#buffer('direction'), this.#buffer('ahead')];
      const step = { ...settings, step: this.#step, gradientScale };
      this.#kernels.nigt(weights, gradient, direction, ahead, this.#length, step);
      return;
    }
    const [first, second] = [this.#buffer('first_moment'), this.#buffer('second_moment')];
    const step = { ...settings, step: this.#step, gradientScale };
    this.#kernels.adamw(weights, gradient, first, second, this.#length, step);
  }

  /** The state, with the buffers themselves. */
  get state(): OptimizerState<Floats> {
    return { type: this.#type, step: this.#step, buffers: this.#buffers };
  }

  /** Copies the state. */
  async copyState(): Promise<OptimizerState> {
    const { type, step } = this.state;
    const names = Object.keys(this.#buffers);
    const copies = await this.#kernels.read(Object.values(this.#buffers));
    return { type, step, buffers: Object.fromEntries(names.map((name, i) => [name, copies[i]])) };
  }

  /** Replaces the state by a copy of `state`. */
  restore({ type, step, buffers }: OptimizerState): void {
    this.#begin(type, step);
    for (const name of OPTIMIZER_BUFFERS[type]) {
      const saved = buffers[name];
      if (saved !== undefined) this.#kernels.write(this.#buffer(name), saved);
    }
  }

  /**
   * Replaces the state and returns the buffers with these names, [parameters] each and all 0, for the caller to fill.
   */
  restoreInto(type: OptimizerType, step: number, names: readonly string[]): Map<string, Floats> {
    this.#begin(type, step);
    const wanted = OPTIMIZER_BUFFERS[type].filter((name) => names.includes(name));
    return new Map(wanted.map((name) => [name, this.#buffer(name)]));
  }

  #begin(type: OptimizerType, step: number): void {
    if (type !== this.#type) this.free();
    this.#type = type;
    this.#step = step;
    for (const buffer of Object.values(this.#buffers)) this.#kernels.fill(buffer, 0);
  }

  reset(): void {
    this.restore({ type: this.#type, step: 0, buffers: {} });
  }

  /** Gives the buffers back; the next step begins with new ones, all 0. */
  free(): void {
    for (const buffer of Object.values(this.#buffers)) this.#kernels.free(buffer);
    this.#buffers = {};
  }

  #buffer(name: BufferName): Floats {
    this.#buffers[name] ??= this.#kernels.allocate(this.#length);
    return this.#buffers[name];
  }
}
