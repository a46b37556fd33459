import type { OptimizerSettings } from '../../contract/optimizer-settings.js';
import { ArgumentError } from '../../errors.js';
import { adamw } from './adamw.js';
import type { OptimizerDeclaration } from './define-optimizer.js';
import { nigt } from './nigt.js';
import { sgd } from './sgd.js';

/** Every optimiser, in the order in which messages and tables list them. A new one is a file and a row here. */
export const optimizers = [adamw, sgd, nigt] as const;

/** The names of all optimisers. */
export const optimizerTypes: readonly string[] = optimizers.map(({ type }) => type);

/** The default optimiser. */
export const defaultOptimizer = adamw.type;

/** The optimiser of that name. @throws ArgumentError for an unknown one */
export function optimizerNamed(type: string): OptimizerDeclaration {
  const optimizer: OptimizerDeclaration | undefined = optimizers.find((one) => one.type === type);
  if (optimizer !== undefined) return optimizer;
  throw new ArgumentError(`unknown optimiser ${JSON.stringify(type)}; there are ${optimizerTypes.join(', ')}`);
}

export function usedBuffers(settings: OptimizerSettings): string[] {
  const { buffers } = optimizerNamed(settings.type);
  return Object.entries(buffers).flatMap(([name, used]) => (used === true || used(settings) ? [name] : []));
}
