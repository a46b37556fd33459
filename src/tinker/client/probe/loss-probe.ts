/**
 * Measures how a server computes losses: how it reduces them, whether weights may be negative, and which of its own
 * losses equal ours.
 */
import type { GradientPath, ServerProfile } from '../server-profile.js';
import { datumOf, gradientPass } from '../wire/datum.js';
import { isKind } from '../wire/tinker-failure.js';
import { isNear, LEARNING, LONG, type ProbedModel, SHORT, TOLERANCE } from './probed-model.js';

type LossProfile = Pick<ServerProfile, 'reduction' | 'negativeWeights' | 'native'>;

export async function probeLosses(probed: ProbedModel): Promise<LossProfile> {
  const [long, short] = (await probed.score(LONG, SHORT)) as [Float32Array, Float32Array];
  const row = (tokens: Int32Array, logprobs: Float32Array, gradient: number) => ({
    tokens,
    logprobs,
    gradient: Float32Array.from(tokens, (_, t) => (t === LEARNING ? gradient : 0)),
  });
  // One token's cross-entropy is the same for all kinds of averaging.
  const alone = datumOf(LONG, { weights: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)) });
  const unit = (await probed.measure([{ data: [alone], loss_fn: 'cross_entropy' }])).norm;
  // Gradients of the same log-prob add up, and so do the losses. At ratio 1 the losses equal the gradients, otherwise
  // the gradients times the log-prob.
  const works = async (path: GradientPath, one: number, other: number) => {
    const { norm, loss } = await probed.measure([
      gradientPass([row(LONG, long, one), row(SHORT, short, other)], path, 2),
    ]);
    const sum = one + other;
    if (norm !== undefined && unit !== undefined) return isNear(norm, Math.abs(sum) * unit);
    return path !== 'scaled-ratio' && isNear(loss, path === 'ratio' ? sum : sum * (long[LEARNING] ?? 0));
  };
  if (await works('ratio', -1, -2)) {
    const negativeWeights = await works('weights', 3, -1);
    return { reduction: 'sum', negativeWeights, native: await nativeLosses(probed, long, unit) };
  }
  const reduction = (await works('scaled-ratio', -1, -2)) ? 'sequence-mean' : 'other';
  return { reduction, negativeWeights: false, native: [] };
}

/** A ratio of e^1/2, with bounds that clip it and with bounds that do not. */
async function nativeLosses(
  probed: ProbedModel,
  logprobs: Float32Array,
  unit: number | undefined,
): Promise<ServerProfile['native']> {
  if (unit === undefined) return [];
  const ratio = Math.exp(0.5);
  const norm = async (loss: 'ppo' | 'cispo', low: number, high: number) => {
    const datum = datumOf(LONG, {
      logprobs: logprobs.map((logprob) => logprob - 0.5),
      advantages: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)),
    });
    const config = { clip_low_threshold: low, clip_high_threshold: high };
    try {
      return (await probed.measure([{ data: [datum], loss_fn: loss, loss_fn_config: config }])).norm;
    } catch (error) {
      if (isKind(error, 'refused', 'failed')) return undefined; // the server does not have this loss or setting
      throw error;
    }
  };
  const native: ('ppo' | 'cispo')[] = [];
  const clipsPpo = async () => ((await norm('ppo', 0.8, 1.2)) ?? unit) < TOLERANCE * unit;
  if (isNear(await norm('ppo', 0.5, 2), ratio * unit) && (await clipsPpo())) native.push('ppo');
  if (isNear(await norm('cispo', 0, 2), ratio * unit) && isNear(await norm('cispo', 0, 1.1), 1.1 * unit, 0.1))
    native.push('cispo');
  return native;
}
