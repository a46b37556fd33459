import { ArgumentError } from '../core/errors.js';
import type { LossSpec } from '../core/loss.js';
import { cispo } from './cispo.js';
import { gspo } from './gspo.js';
import type { LossKind } from './kind.js';
import { ppoClip } from './ppo-clip.js';

/** Every policy loss by name. A new one is a file of its own and a row here. */
const losses: { readonly [Type in LossSpec['type']]: (spec: Extract<LossSpec, { type: Type }>) => LossKind } = {
  'ppo-clip': ppoClip,
  cispo,
  gspo,
};

/** @throws ArgumentError for an unknown type or a number outside its range */
export function lossKind(spec: LossSpec): LossKind {
  if (!Object.hasOwn(losses, spec.type)) {
    throw new ArgumentError(`unknown loss ${JSON.stringify(spec.type)}; there are ${Object.keys(losses).join(', ')}`);
  }
  // The table pairs each type with its own spec, which the compiler cannot follow through an index.
  return (losses[spec.type] as (spec: LossSpec) => LossKind)(spec);
}
