import { defineLoss } from '../define-loss.js';
import { aggregate, clipSettings } from '../loss-settings.js';
import { clippedToken, ratioBounds } from './clipped-surrogate.js';

/** PPO-clip with an asymmetric clip where `clipLow` or `clipHigh` differ from `clip` (DAPO's clip-higher). */
export const ppoClip = defineLoss({
  type: 'ppo-clip',
  schema: { ...clipSettings, ...aggregate('token-mean') },
  source: 'PPO, Schulman et al. 2017, eq. 7; asymmetric: DAPO, Yu et al. 2025; dual: Ye et al. 2020',
  formula: 'max(-r A, -clip(r) A); with `dualClip` d, at most -d A for A < 0',
  use: 'the default',
  ratio: 'token',
  gradientOf: 'ratio',
  token: clippedToken,
  protocolLoss: (clips) => (clips.dualClip === undefined ? { name: 'ppo', ...ratioBounds(clips) } : undefined),
});
