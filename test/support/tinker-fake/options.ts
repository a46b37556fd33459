import type { ServerResponse } from 'node:http';

/** The fault of a request: see `respond`. */
export type Fault =
  /** Answered with this, and not looked at. */
  | { readonly type: 'status'; readonly status: number; readonly body: unknown }
  /** The connection is cut before the request, or after it was taken in. */
  | { readonly type: 'drop-before' | 'drop-after' }
  /** Its result never comes. */
  | { readonly type: 'hang' }
  /** Its result is `status`, or has null where numbers should be. */
  | { readonly type: 'result'; readonly status: number; readonly body: unknown }
  | { readonly type: 'null' }
  /** Makes the reply from the reply that would be right. */
  | { readonly type: 'answer'; readonly answer: (response: ServerResponse, honest: unknown) => void };

export interface FakeOptions {
  /** Directory of the model that is served. */
  readonly directory: string;
  /** The name of the model; the directory by default. */
  readonly model?: string;
  /** Directories of more models, by name. */
  readonly more?: Readonly<Record<string, string>>;
  readonly behaves?: FakeName;
  readonly changes?: Partial<FakeBehaviour>;
  /** Of every answer. */
  readonly latencyMs?: number;
  /** A poll without a result is answered after this time. */
  readonly pollMs?: number;
  readonly maxModels?: number;
  /** Of every adapter; its rank by default. */
  readonly alpha?: number;
  /** The key that requests must carry. */
  readonly apiKey?: string;
}

/** The behaviour of the measured servers, as switches of one fake. */
export interface FakeBehaviour {
  readonly reduction: 'sum' | 'sequence-mean' | 'token-mean';
  /** The least divisor of a cross-entropy, so that negative weights explode. */
  readonly forward: boolean;
  readonly losses: readonly string[];
  /** Whether `clip_low_threshold` and `clip_high_threshold` are read; otherwise the clip is 0.2. */
  readonly clipThresholds: boolean;
  readonly promptLogprobs: 'all' | 'after-first' | 'none';
  readonly loggedTemperature: 'one' | 'sampling';
  /** `rolled-back`: sampling a snapshot puts it in the place of the weights in training. `live`: it samples those. */
  readonly snapshots: 'isolated' | 'rolled-back' | 'live';
  /**
   * The faults of samplers that hold several adapters. `cached`: a prompt keeps the weights that first answered it.
   * `name-kept`: a name keeps the weights that were first saved under it. `behind`: each second request gets the
   * snapshot before. `mixed`: all requests of a batch get the first one's weights. `scaled`: an adapter that was
   * evicted comes back with twice its weights.
   */
  readonly sampler: 'right' | 'cached' | 'name-kept' | 'behind' | 'mixed' | 'scaled';
  readonly seqIdIdempotent: boolean;
  readonly errors: 'detail' | 'error_message' | 'error';
  readonly emptyBatch: 'hang' | 'ok';
  /** Weights can be loaded only before anything else was asked of a model. */
  readonly loadsFirst: boolean;
  readonly tellsNorm: boolean;
  readonly tellsLoss: boolean;
  readonly clipsGradients: boolean;
  /** A snapshot is answered with a path, and a session has to be opened on it. */
  readonly namesSnapshots: boolean;
  /** The server stops on request, and announces it. */
  readonly stops: boolean;
  readonly unloads: boolean;
}

const hosted: FakeBehaviour = {
  reduction: 'sum',
  forward: true,
  losses: ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'],
  clipThresholds: true,
  promptLogprobs: 'all',
  loggedTemperature: 'one',
  snapshots: 'isolated',
  sampler: 'right',
  seqIdIdempotent: true,
  errors: 'detail',
  emptyBatch: 'ok',
  loadsFirst: true,
  tellsNorm: false,
  tellsLoss: true,
  clipsGradients: true,
  namesSnapshots: true,
  stops: true,
  unloads: true,
};

const skyrlJax: FakeBehaviour = {
  ...hosted,
  reduction: 'sequence-mean',
  promptLogprobs: 'after-first',
  snapshots: 'rolled-back',
  seqIdIdempotent: false,
  emptyBatch: 'hang',
  loadsFirst: false,
  tellsNorm: true,
  tellsLoss: false,
  clipsGradients: false,
  namesSnapshots: false,
};

export const behaviours = {
  hosted,
  'skyrl-jax': skyrlJax,
  'skyrl-jax-head': { ...skyrlJax, seqIdIdempotent: true, loadsFirst: true },
  'skyrl-train': {
    ...skyrlJax,
    reduction: 'sum',
    snapshots: 'live',
    seqIdIdempotent: true,
    loadsFirst: true,
    tellsLoss: true,
  },
  'open-rl': {
    ...skyrlJax,
    reduction: 'sum',
    forward: false,
    losses: ['cross_entropy', 'importance_sampling', 'ppo'],
    clipThresholds: false,
    promptLogprobs: 'none',
    loggedTemperature: 'sampling',
    snapshots: 'live',
    errors: 'error_message',
    emptyBatch: 'ok',
    tellsLoss: true,
    stops: false,
    unloads: false,
  },
  twinkle: {
    ...hosted,
    reduction: 'token-mean',
    losses: ['cross_entropy', 'importance_sampling'],
    promptLogprobs: 'after-first',
    seqIdIdempotent: false,
    errors: 'error',
    tellsNorm: true,
  },
} as const satisfies Readonly<Record<string, FakeBehaviour>>;

export type FakeName = keyof typeof behaviours;
