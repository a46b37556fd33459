import type { NigtSettings, OptimizerSettings, SgdSettings } from '../../contract/optimizer-settings.js';
import type { Kernels } from '../../tensor/kernels.js';

type OptimizerType = OptimizerSettings['type'];

/** The buffers that each optimiser holds, one number for every weight, by their names in checkpoints. */
export const OPTIMIZER_BUFFERS = {
  adamw: ['first_moment', 'second_moment'],
  sgd: ['momentum'],
  nigt: ['direction', 'ahead'],
} as const satisfies Record<OptimizerType, readonly string[]>;

type BufferName = (typeof OPTIMIZER_BUFFERS)[OptimizerType][number];

/** The state that an optimiser carries from step to step. */
export interface OptimizerState {
  readonly type: OptimizerType;
  /** The number of steps so far. */
  readonly step: number;
  /** The buffers, [parameters] each; a missing one is all zeros. */
  readonly buffers: Readonly<Partial<Record<BufferName, Float32Array>>>;
}

/** An optimiser of one flat buffer of weights. Its buffers are allocated when a step first needs them. */
export class FlatOptimizer {
  readonly #kernels: Kernels;
  readonly #length: number;
  #type: OptimizerType = 'adamw';
  #step = 0;
  #buffers: Partial<Record<BufferName, Float32Array>> = {};

  constructor(kernels: Kernels, length: number) {
    this.#kernels = kernels;
    this.#length = length;
  }

  /** Makes one step on the gradient times `gradientScale`. A change of the optimiser's type clears its state. */
  update(settings: OptimizerSettings, weights: Float32Array, gradient: Float32Array, gradientScale: number): void {
    if (settings.type !== this.#type) this.restore({ type: settings.type, step: 0, buffers: {} });
    this.#step++;
    if (settings.type === 'sgd') {
      sgd(weights, gradient, settings.momentum > 0 ? this.#buffer('momentum') : undefined, settings, gradientScale);
      return;
    }
    if (settings.type === 'nigt') {
      const [direction, ahead] = [this.#buffer('direction'), this.#buffer('ahead')];
      nigt(weights, gradient, { direction, ahead, first: this.#step === 1 }, settings, gradientScale);
      return;
    }
    const [first, second] = [this.#buffer('first_moment'), this.#buffer('second_moment')];
    const step = { ...settings, step: this.#step, gradientScale };
    this.#kernels.adamw(weights, gradient, first, second, this.#length, step);
  }

  /** The state, as views into the buffers. */
  get state(): OptimizerState {
    return { type: this.#type, step: this.#step, buffers: this.#buffers };
  }

  /** Copies the state. */
  copyState(): OptimizerState {
    const copies = Object.entries(this.#buffers).map(([name, values]) => [name, Float32Array.from(values)]);
    return { ...this.state, buffers: Object.fromEntries(copies) };
  }

  /** Replaces the state by a copy of `state`. */
  restore({ type, step, buffers }: OptimizerState): void {
    this.#begin(type, step);
    for (const name of OPTIMIZER_BUFFERS[type]) {
      const saved = buffers[name];
      if (saved !== undefined) this.#buffer(name).set(saved);
    }
  }

  /**
   * Replaces the state and returns the buffers with these names, [parameters] each and all 0, for the caller to fill.
   */
  restoreInto(type: OptimizerType, step: number, names: readonly string[]): Map<string, Float32Array> {
    this.#begin(type, step);
    const wanted = OPTIMIZER_BUFFERS[type].filter((name) => names.includes(name));
    return new Map(wanted.map((name) => [name, this.#buffer(name)]));
  }

  #begin(type: OptimizerType, step: number): void {
    if (type !== this.#type) this.#buffers = {};
    this.#type = type;
    this.#step = step;
    for (const buffer of Object.values(this.#buffers)) buffer.fill(0);
  }

  reset(): void {
    this.restore({ type: this.#type, step: 0, buffers: {} });
  }

  #buffer(name: BufferName): Float32Array {
    this.#buffers[name] ??= this.#kernels.allocate(this.#length);
    return this.#buffers[name];
  }
}

/**
 * The step of torch.optim.SGD: the gradient is g + weightDecay w; with momentum m the direction becomes m times the
 * last direction plus the gradient; Nesterov's variant steps along the gradient plus m times the new direction. Each
 * weight is computed in double precision and rounded once, so the result is the same for every set of kernels.
 */
function sgd(
  weights: Float32Array,
  gradient: Float32Array,
  directions: Float32Array | undefined,
  { learningRate, momentum, nesterov, weightDecay }: SgdSettings,
  gradientScale: number,
): void {
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i] as number;
    let change = (gradient[i] as number) * gradientScale + weightDecay * weight;
    if (directions !== undefined) {
      const direction = momentum * (directions[i] as number) + change;
      directions[i] = direction;
      change = nesterov ? change + momentum * direction : direction;
    }
    weights[i] = weight - learningRate * change;
  }
}

/**
 * The step of N-PG-IGT (Fatkhullin, Barakat, Kireeva, He 2023, arXiv 2302.01734, algorithm 1), after the normalised SGD
 * of Cutkosky and Mehta 2020 (arXiv 2002.03305). d = m d + (1 - m) g, the first d is g; the iterate moves by the
 * learning rate along -d / |d|; the weights are the iterate plus m / (1 - m) times that move. There the next gradient
 * is taken, so that d has no bias where the objective is quadratic. `ahead` holds weights - iterate. All sums run in
 * order in double precision, so the result is the same for every set of kernels.
 */
function nigt(
  weights: Float32Array,
  gradient: Float32Array,
  { direction, ahead, first }: { direction: Float32Array; ahead: Float32Array; first: boolean },
  { learningRate, momentum }: NigtSettings,
  gradientScale: number,
): void {
  const kept = first ? 0 : momentum;
  let squares = 0;
  for (let i = 0; i < weights.length; i++) {
    direction[i] = kept * (direction[i] as number) + (1 - kept) * gradientScale * (gradient[i] as number);
    squares += (direction[i] as number) ** 2;
  }
  const length = squares > 0 ? -learningRate / Math.sqrt(squares) : 0;
  const further = momentum / (1 - momentum);
  for (let i = 0; i < weights.length; i++) {
    const move = length * (direction[i] as number);
    const iterate = (weights[i] as number) - (ahead[i] as number) + move;
    weights[i] = iterate + further * move;
    ahead[i] = further * move;
  }
}
