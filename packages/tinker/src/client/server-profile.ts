/** Profiles of servers that speak the Tinker protocol: the differences in their behaviour, and the known servers. */
import type { ErrorShape } from './wire/tinker-failure.js';

export interface ServerProfile {
  readonly name: string;
  /**
   * The reduction of token losses. `sum`: the server adds all of them, as the protocol's documentation says.
   * `sequence-mean`: it averages over the targets of a datum, then over the datums since the last update. `other`: this
   * client cannot turn the result back into a sum.
   */
  readonly reduction: 'sum' | 'sequence-mean' | 'other';
  /** The server computes a cross-entropy with negative weights as written. */
  readonly negativeWeights: boolean;
  /** The server has a pass without a gradient. If not, a pass with weights 0 replaces it. */
  readonly forward: boolean;
  /** The server's own losses that equal ours of the same kind. */
  readonly native: readonly ('ppo' | 'cispo')[];
  /** Log-probs of a prompt's tokens: of all N with an empty first, of N - 1, or none. */
  readonly promptLogprobs: 'all' | 'after-first' | 'none';
  /** The temperature of the log-probs of sampled tokens. */
  readonly loggedTemperature: 'one' | 'sampling';
  /** A snapshot for sampling keeps its weights while training continues, and sampling does not change training. */
  readonly snapshotIsolation: boolean;
  /** The server runs a training request once, even if it is sent again with the same number. */
  readonly seqIdIdempotent: boolean;
  /** Updates respect `grad_clip_norm`. */
  readonly clipsGradients: boolean;
  readonly errorShape: ErrorShape;
  /**
   * The server is drmas's own. It accepts two fields that the protocol lacks: the alpha of an adapter, and the whole
   * name of a sample's random stream. Its runs are then equal to runs of the embedded engine. It deletes saved weights.
   */
  readonly extended: boolean;
}

/**
 * Known servers. The profiles of skyrl-jax and open-rl were measured. The profiles of skyrl-train and hosted follow
 * their sources and documentation. The profile of twinkle follows its source: there weights are a mask and all losses
 * but two run cross-entropy, so none of our losses can run.
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

/**
 * Whether an update may be sent before the results of its passes are there. SkyRL 0.3 may carry out an update that
 * waits beside its passes first: then it has no gradient, and the next update has both.
 */
export const keepsOrder = ({
  seqIdIdempotent,
  snapshotIsolation,
}: Pick<ServerProfile, 'seqIdIdempotent' | 'snapshotIsolation'>): boolean => seqIdIdempotent && snapshotIsolation;

/** The way to turn a gradient with respect to log-probs into a batch of the server. */
export type GradientPath = 'weights' | 'ratio' | 'scaled-ratio';

/** Undefined if none of the paths gives the sum. */
export function gradientPath({
  reduction,
  negativeWeights,
}: Pick<ServerProfile, 'reduction' | 'negativeWeights'>): GradientPath | undefined {
  if (reduction === 'sum') return negativeWeights ? 'weights' : 'ratio';
  return reduction === 'sequence-mean' ? 'scaled-ratio' : undefined;
}

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
