import type { ServerResponse } from 'node:http';
import type { FakeBehaviour, FakeName } from './behaviour.js';

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
