/**
 * The importance correction for samples of another policy: the loss of every token is weighted with a constant made of
 * ρ = p_proximal / p_behaviour. Truncated at the cap (TIS: Yao et al. 2025, "Your efficient RL framework secretly
 * brings you off-policy RL training") or 0 above it (MIS: Liu et al. 2025, "When speed kills stability: demystifying RL
 * collapse from the training-inference mismatch"), by token or by sequence, as both describe. The ratio to the proximal
 * policy is the decoupled objective of Hilton et al. 2022, "Batch size-invariance for policy optimization".
 */
import { ArgumentError } from '../../base/errors.js';
import type { TokenNumbers } from './aggregate.js';
import type { ImportanceCorrection } from './loss-settings.js';

export interface CorrectionWeights {
  readonly weights: Float64Array; // [T], 0 where masked
  /** The number of response tokens whose ρ exceeds the cap. */
  readonly beyond: number;
}

/** The weights of a row. @throws ArgumentError when the cap is not positive */
export function correctionWeights(
  {
    behaviourLogprobs,
    proximalLogprobs,
    mask,
  }: Readonly<Record<'behaviourLogprobs' | 'proximalLogprobs' | 'mask', TokenNumbers>>,
  { cap, beyond, level }: ImportanceCorrection,
): CorrectionWeights {
  if (!(cap > 0)) throw new ArgumentError(`loss.importanceCorrection.cap must be greater than 0, got ${cap}`);
  const logs = Float64Array.from(mask, (written, t) =>
    written === 0 ? 0 : (proximalLogprobs[t] as number) - (behaviourLogprobs[t] as number),
  );
  const whole = level === 'sequence' ? logs.reduce((sum, log) => sum + log, 0) : undefined;
  let over = 0;
  const weights = logs.map((log, t) => {
    if (mask[t] === 0) return 0;
    const rho = Math.exp(whole ?? log);
    if (!(rho > cap)) return rho;
    over++;
    return beyond === 'truncate' ? cap : 0;
  });
  return { weights, beyond: over };
}
