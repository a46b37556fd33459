import { ArgumentError } from '../core/errors.js';
import type { LossKind } from './define-loss.js';
import type { ImportanceCorrection, LossSpec } from './loss-spec.js';
import { cispo } from './losses/cispo.js';
import { crossEntropy } from './losses/cross-entropy.js';
import { gspo } from './losses/gspo.js';
import { ppoClip } from './losses/ppo-clip.js';
import { sPpo, stPpo, turnPpo } from './losses/st-ppo.js';

/** Every policy loss by name. A new one is a file of its own and a row here. */
const losses: { readonly [Type in LossSpec['type']]: (spec: Extract<LossSpec, { type: Type }>) => LossKind } = {
  'ppo-clip': ppoClip,
  'turn-ppo': turnPpo,
  's-ppo': sPpo,
  'st-ppo': stPpo,
  cispo,
  gspo,
  'cross-entropy': crossEntropy,
};

/** The names of all losses. */
export const lossTypes = Object.keys(losses) as LossSpec['type'][];

/** @throws ArgumentError for an unknown type or a number outside its range */
export function lossKind(spec: LossSpec): LossKind {
  if (!Object.hasOwn(losses, spec.type)) {
    throw new ArgumentError(`unknown loss ${JSON.stringify(spec.type)}; there are ${lossTypes.join(', ')}`);
  }
  // The table pairs each type with its own spec, which the compiler cannot follow through an index.
  return (losses[spec.type] as (spec: LossSpec) => LossKind)(spec);
}

/** How the loss corrects importance; undefined where it does not. */
export function correctionOf(spec: LossSpec): ImportanceCorrection | undefined {
  return 'importanceCorrection' in spec ? spec.importanceCorrection : undefined;
}
