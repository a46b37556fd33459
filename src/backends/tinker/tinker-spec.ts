import type { Secret } from '../../core/secret.js';
import type { ProfileName } from './server-profile.js';

/** A server that speaks the Tinker protocol: the hosted service, SkyRL on a cluster of one's own, and others. */
export interface TinkerSpec {
  readonly type: 'tinker';
  /** Of the server: http://127.0.0.1:8000, https://... */
  readonly url: string;
  /** Otherwise TINKER_API_KEY of the environment. */
  readonly apiKey?: Secret | undefined;
  /** What the server does: measured at the start, or that of a known server, taken at its word. */
  readonly profile: 'auto' | ProfileName;
  /** The server's names of models, by their path in the recipe; one that is not listed is called there what it is called here. */
  readonly models: Readonly<Record<string, string>>;
  /** Most sampling requests in flight. */
  readonly concurrency: number;
  /** Updates between savings of weights and optimiser on the server, from which a lost model is made again. */
  readonly saveEvery: number;
  /** How long a result may take. */
  readonly deadlineSeconds: number;
}

/** A server as it is written: all but the URL has a default. */
export interface TinkerInput {
  readonly type: 'tinker';
  readonly url: string;
  /** Never written to recipe.json, events or messages. */
  readonly apiKey?: string | undefined;
  readonly profile?: 'auto' | ProfileName | undefined;
  readonly models?: Readonly<Record<string, string>> | undefined;
  readonly concurrency?: number | undefined;
  readonly saveEvery?: number | undefined;
  readonly deadlineSeconds?: number | undefined;
}

/** Trains and samples on a server that speaks the Tinker protocol: `backend: tinker({ url: 'http://127.0.0.1:8000' })`. */
export function tinker(options: Omit<TinkerInput, 'type'>): TinkerInput {
  return { type: 'tinker', ...options };
}
