/** What sets servers that speak the Tinker protocol apart, and what is known of those that there are. */
import type { ErrorShape } from './wire/tinker-failure.js';

export interface ServerProfile {
  readonly name: string;
  /**
   * What becomes of token losses. `sum`: all are added, as the protocol's documentation says. `sequence-mean`: a
   * datum's are averaged over its targets, the datums since the last update are averaged. `other`: something that this
   * client cannot turn back into a sum.
   */
  readonly reduction: 'sum' | 'sequence-mean' | 'other';
  /** A cross-entropy with negative weights is what it says. */
  readonly negativeWeights: boolean;
  /** There is a pass without a gradient; otherwise one whose weights are all 0 stands in for it. */
  readonly forward: boolean;
  /** Losses of the server's own that mean what ours of the same kind mean. */
  readonly native: readonly ('ppo' | 'cispo')[];
  /** Log-probs of a prompt's tokens: of all N with an empty first, of N - 1, or none. */
  readonly promptLogprobs: 'all' | 'after-first' | 'none';
  /** At which temperature the log-probs of sampled tokens are. */
  readonly loggedTemperature: 'one' | 'sampling';
  /** A snapshot for sampling stays what it was when training goes on, and sampling from it leaves training alone. */
  readonly snapshotIsolation: boolean;
  /** A training request that is sent again under its number is done once. */
  readonly seqIdIdempotent: boolean;
  /** Updates keep to `grad_clip_norm`. */
  readonly clipsGradients: boolean;
  readonly errorShape: ErrorShape;
  /**
   * The server is this package's own, and takes what the protocol has no field for: the alpha of an adapter, and the
   * whole name of a sample's random stream. Its runs then are those of the embedded engine.
   */
  readonly extended: boolean;
}

/**
 * Known servers. skyrl-jax and open-rl were measured, skyrl-train and hosted are as their sources and documentation
 * say, twinkle as its source says: there weights are a mask and any loss but two runs cross-entropy, so nothing of ours
 * can run.
 */
export const PROFILES = {
  hosted: {
    reduction: 'sum',
    negativeWeights: true,
    forward: true,
    native: ['ppo', 'cispo'],
    promptLogprobs: 'all',
    loggedTemperature: 'one',
    snapshotIsolation: true,
    seqIdIdempotent: true,
    clipsGradients: true,
    errorShape: 'detail',
    extended: false,
  },
  'skyrl-jax': {
    reduction: 'sequence-mean',
    negativeWeights: false,
    forward: true,
    native: [],
    promptLogprobs: 'after-first',
    loggedTemperature: 'one',
    snapshotIsolation: false,
    seqIdIdempotent: false,
    clipsGradients: false,
    errorShape: 'detail',
    extended: false,
  },
  'skyrl-train': {
    reduction: 'sum',
    negativeWeights: true,
    forward: true,
    native: ['ppo', 'cispo'],
    promptLogprobs: 'after-first',
    loggedTemperature: 'one',
    snapshotIsolation: false,
    seqIdIdempotent: true,
    clipsGradients: false,
    errorShape: 'detail',
    extended: false,
  },
  'open-rl': {
    reduction: 'sum',
    negativeWeights: true,
    forward: false,
    native: [],
    promptLogprobs: 'none',
    loggedTemperature: 'sampling',
    snapshotIsolation: false,
    seqIdIdempotent: false,
    clipsGradients: false,
    errorShape: 'error_message',
    extended: false,
  },
  twinkle: {
    reduction: 'other',
    negativeWeights: false,
    forward: true,
    native: [],
    promptLogprobs: 'after-first',
    loggedTemperature: 'one',
    snapshotIsolation: true,
    seqIdIdempotent: false,
    clipsGradients: false,
    errorShape: 'error',
    extended: false,
  },
  drmas: {
    reduction: 'sum',
    negativeWeights: true,
    forward: true,
    native: [],
    promptLogprobs: 'all',
    loggedTemperature: 'one',
    snapshotIsolation: true,
    seqIdIdempotent: true,
    clipsGradients: true,
    errorShape: 'error',
    extended: true,
  },
} as const satisfies Readonly<Record<string, Omit<ServerProfile, 'name'>>>;

export type ProfileName = keyof typeof PROFILES;
export const PROFILE_NAMES = Object.keys(PROFILES) as [ProfileName, ...ProfileName[]];

export function knownProfile(name: ProfileName): ServerProfile {
  return { name, ...PROFILES[name] };
}

/** How a gradient with respect to log-probs becomes a batch of this server's. */
export type GradientPath = 'weights' | 'ratio' | 'scaled-ratio';

/** `undefined` where none of the paths gives the sum. */
export function gradientPath({
  reduction,
  negativeWeights,
}: Pick<ServerProfile, 'reduction' | 'negativeWeights'>): GradientPath | undefined {
  if (reduction === 'sum') return negativeWeights ? 'weights' : 'ratio';
  return reduction === 'sequence-mean' ? 'scaled-ratio' : undefined;
}

/** What was measured, for people: one line. */
export function describeProfile(profile: ServerProfile): string {
  const path = {
    weights: "its cross-entropy, weighted by our loss's gradient",
    ratio: "its importance sampling at ratio 1, with our loss's gradient as advantages",
    'scaled-ratio': "its importance sampling at ratio 1, with our loss's gradient scaled up to a sum as advantages",
  };
  const way = gradientPath(profile);
  return [
    `server ${profile.name}: losses reduced by ${profile.reduction}`,
    way === undefined ? 'our losses cannot run on it' : `our losses run as ${path[way]}`,
    ...(profile.native.length > 0 ? [`native ${profile.native.join(', ')}`] : []),
    profile.forward ? 'forward' : 'no forward',
    `prompt log-probs: ${profile.promptLogprobs}`,
    `log-probs at temperature ${profile.loggedTemperature === 'one' ? '1' : 'of sampling'}`,
    profile.snapshotIsolation ? 'isolated snapshots' : 'snapshots not isolated',
    profile.seqIdIdempotent ? 'requests repeat safely' : 'requests do not repeat safely',
  ].join('; ');
}
