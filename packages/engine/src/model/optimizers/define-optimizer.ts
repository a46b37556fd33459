/** The declaration of an optimiser: its settings, its memory, its step. */
import { z } from 'zod';
import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import type { Kernels } from '../../tensor/kernels.js';
import type { Floats } from '../../tensor/memory.js';

/** The memory of one step, [parameters] each. */
export interface StepMemory {
  readonly weights: Floats;
  readonly gradient: Floats;
  readonly buffers: Readonly<Record<string, Floats>>;
  readonly length: number;
  /** 1 in the first step. */
  readonly step: number;
  readonly gradientScale: number;
}

/** Whether settings use a buffer. Declared as a method so that lists can hold optimisers of any settings. */
type Uses<Settings> = { of(settings: Settings): boolean }['of'];

export interface OptimizerDeclaration<
  Type extends string = string,
  Schema extends z.ZodType<OptimizerSettings> = z.ZodType<OptimizerSettings>,
> {
  readonly type: Type;
  /** The default learning rates. An optimiser without a rate for critics trains none. */
  readonly rates: { readonly policy: number; readonly critic?: number };
  /** The schema of its settings, with this default of the learning rate. */
  schema(learningRate: number): Schema;
  /**
   * The numbers that it remembers for every parameter, by their names in checkpoints: `true` for a buffer that it
   * always uses. A checkpoint lacks the buffers of an optimiser that has made no step, and those that the settings do
   * not use.
   */
  readonly buffers: Readonly<Record<string, true | Uses<z.output<Schema>>>>;
  /** Whether a positive factor of all gradients changes no step, up to rounding and a small `epsilon`. */
  readonly takesScaleOut: boolean;
  /** Changes the weights, and its buffers. The gradient stays as it is. */
  step(kernels: Kernels, memory: StepMemory, settings: z.output<Schema>): void;
}

/** Declares an optimiser; a row in optimizers/index.ts makes it known. */
export const defineOptimizer = <const Type extends string, Schema extends z.ZodType<OptimizerSettings>>(
  declaration: OptimizerDeclaration<Type, Schema>,
): OptimizerDeclaration<Type, Schema> => declaration;

// Ranges that settings of several optimisers share.

export const nonNegative = z.number().min(0);
export const positive = z.number().gt(0);
/** The decay of a running mean: the share of the old value that is kept. */
export const decay = z.number().min(0).lt(1);
