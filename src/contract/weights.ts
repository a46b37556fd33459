/** Where a model's first weights come from. */
import type { Tokenizer } from '../core/tokenizer.js';
import type { AdapterSettings, DecoderConfig } from './architecture.js';

/** Where a model's first weights come from. */
export type BaseSpec =
  | {
      readonly type: 'random';
      readonly config: DecoderConfig;
      readonly tokenizer: Tokenizer;
      readonly seed: number;
      /** Standard deviation of the first embedding. Default width^-1/2. */
      readonly embeddingDeviation?: number | undefined;
    }
  | {
      readonly type: 'directory';
      readonly directory: string;
      /** What the user calls it: the directory, or a name on a hub. The directory where it is missing. */
      readonly name?: string;
    };

/** A policy of weights of its own, or one that adapts a base; a backend stores equal bases once. */
export type PolicySpec =
  | BaseSpec
  | {
      readonly type: 'adapter';
      readonly base: BaseSpec;
      readonly adapter: AdapterSettings;
      /** Of the adapter's first weights. */
      readonly seed: number;
    }
  /** A base as it is: it plays and scores, nothing trains it. */
  | { readonly type: 'frozen'; readonly base: BaseSpec }
  /** An adapter that begins as it was saved, in a directory of PEFT's; its settings are those of the directory. */
  | { readonly type: 'saved-adapter'; readonly base: BaseSpec; readonly directory: string };

export interface PolicyInfo {
  /** What a person should know about how it was read. */
  readonly warnings?: readonly string[];
  /** Trained ones: of an adapter, without its base. Missing where only a server knows. */
  readonly parameters?: number | undefined;
  /** Longest prompt + response in tokens. */
  readonly context: number;
  readonly tokenizer: Tokenizer;
}
