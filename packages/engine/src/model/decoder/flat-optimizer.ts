import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';
import { defaultOptimizer, optimizerNamed, usedBuffers } from '../optimizers/index.js';

/** The state that an optimiser carries from step to step, with its buffers or copies of them. */
export interface OptimizerState<F extends Floats = Float32Array> {
  readonly type: string;
  /** The number of steps so far. */
  readonly step: number;
  /** The buffers, [parameters] each; a missing one is all zeros. */
  readonly buffers: Readonly<Record<string, F>>;
}

/** A part of the weights that has its own learning rate: a factor of the settings' rate. */
export interface WeightSlice {
  readonly start: number;
  readonly end: number;
  readonly rate: number;
}

/** An optimiser of one flat buffer of weights. Its buffers are allocated when a step first needs them. */
export class FlatOptimizer {
  readonly #kernels: Kernels;
  readonly #length: number;
  #type: string = defaultOptimizer;
  #step = 0;
  #buffers: Record<string, Floats> = {};

  constructor(kernels: Kernels, length: number) {
    this.#kernels = kernels;
    this.#length = length;
  }

  /**
   * Makes one step on the gradient times `gradientScale`. A change of the optimiser's type clears its state.
   * @param slices The parts that change. Default: all weights, at the settings' rate
   */
  update(
    settings: OptimizerSettings,
    weights: Floats,
    gradient: Floats,
    gradientScale: number,
    slices: readonly WeightSlice[] = [{ start: 0, end: this.#length, rate: 1 }],
  ): void {
    if (settings.type !== this.#type) this.#begin(settings.type, 0);
    this.#step++;
    const { step } = optimizerNamed(settings.type);
    for (const { start, end, rate } of slices) {
      const part = (flat: Floats) => flat.subarray(start, end);
      const buffers = Object.fromEntries(usedBuffers(settings).map((name) => [name, part(this.#buffer(name))]));
      const memory = { weights: part(weights), gradient: part(gradient), buffers, length: end - start };
      const scaled = { ...settings, learningRate: settings.learningRate * rate };
      step(this.#kernels, { ...memory, step: this.#step, gradientScale }, scaled);
    }
  }

  /** The state, with the buffers themselves. */
  get state(): OptimizerState<Floats> {
    return { type: this.#type, step: this.#step, buffers: this.#buffers };
  }

  /** Copies the state. Before the first step it has no buffers, also after a reset. */
  async copyState(): Promise<OptimizerState> {
    const { type, step } = this.state;
    const buffers = step === 0 ? {} : this.#buffers;
    const names = Object.keys(buffers);
    const copies = await this.#kernels.read(Object.values(buffers));
    return { type, step, buffers: Object.fromEntries(names.map((name, i) => [name, copies[i] as Float32Array])) };
  }

  /** A copy of the state in the kernels' own memory, which can be put back. */
  copyHere(): { restore(): void; free(): void } {
    const [type, step] = [this.#type, this.#step];
    const copies = Object.entries(this.#buffers).map(([name, buffer]) => {
      const copy = this.#kernels.allocate(this.#length);
      this.#kernels.copy({ to: copy, from: buffer });
      return [name, copy] as const;
    });
    return {
      restore: () => {
        this.#begin(type, step);
        for (const [name, copy] of copies) this.#kernels.copy({ to: this.#buffer(name), from: copy });
      },
      free: () => {
        for (const [, copy] of copies) this.#kernels.free(copy);
      },
    };
  }

  /** Replaces the state by a copy of `state`. */
  restore({ type, step, buffers }: OptimizerState): void {
    for (const [name, buffer] of this.restoreInto(type, step, Object.keys(buffers)))
      this.#kernels.write(buffer, buffers[name] as Float32Array);
  }

  /**
   * Replaces the state and returns the buffers with these names, [parameters] each and all 0, for the caller to fill.
   */
  restoreInto(type: string, step: number, names: readonly string[]): Map<string, Floats> {
    this.#begin(type, step);
    const wanted = Object.keys(optimizerNamed(type).buffers).filter((name) => names.includes(name));
    return new Map(wanted.map((name) => [name, this.#buffer(name)]));
  }

  #begin(type: string, step: number): void {
    if (type !== this.#type) this.free();
    this.#type = type;
    this.#step = step;
    for (const buffer of Object.values(this.#buffers)) this.#kernels.fill({ x: buffer, value: 0 });
  }

  reset(): void {
    this.#begin(this.#type, 0);
  }

  /** Gives the buffers back; the next step begins with new ones, all 0. */
  free(): void {
    for (const buffer of Object.values(this.#buffers)) this.#kernels.free(buffer);
    this.#buffers = {};
  }

  #buffer(name: string): Floats {
    this.#buffers[name] ??= this.#kernels.allocate(this.#length);
    return this.#buffers[name];
  }
}
