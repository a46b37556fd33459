/** Where the weights of a model come from. */
import type { Tokenizer } from '../nouns.js';
import { type AdapterSettings, type DecoderConfig, PRECISIONS, type Precision } from './architecture.js';
import type { PolicyHandle } from './handles.js';

/** A whole model. */
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
      /** The user's name of the model: a path, or a name on a hub. Default: the directory. */
      readonly name?: string;
      /** The chat template, in place of the directory's: its text, or the name of one that ships. */
      readonly chatTemplate?: string | undefined;
    };

/** A model with its own weights. A backend stores equal bases once. */
export type OwnWeights = (
  | BaseSpec
  /** A fresh adapter, which changes nothing at first. */
  | {
      readonly type: 'adapter';
      readonly base: BaseSpec;
      readonly adapter: AdapterSettings;
      /** Seed of the adapter's first weights. */
      readonly seed: number;
    }
  /** A fresh model of a kind that is no decoder, as its recipe describes it. Only the backend of its kind opens it. */
  | { readonly type: 'of-kind'; readonly model: { readonly type: string } }
  /** An adapter as it was saved in a directory in PEFT's layout, which holds its settings too. */
  | { readonly type: 'saved-adapter'; readonly base: BaseSpec; readonly directory: string }
) & {
  /** The precision of the model's matrix products; by default the engine's: bfloat16 on a card, else float32. */
  readonly precision?: Precision | undefined;
  /** Adapters on a whole model that is trained with them: `random` or `directory`. */
  readonly agentAdapters?: AgentAdapters | undefined;
};

/**
 * An adapter for each agent of a policy. The policy's own weights are their trunk: every agent's rows pass through the
 * trunk and through the agent's adapter, and both are trained.
 */
export interface AgentAdapters {
  readonly agents: readonly string[];
  readonly settings: AdapterSettings;
  /** The seed of the first adapters, which change nothing at first. Without it they are read from the directory. */
  readonly seed?: number | undefined;
}

/** The first weights of a handle. */
export type WeightsSpec =
  | OwnWeights
  /**
   * A model of the same shape and precision as a policy: with the policy's present weights or, where a directory is
   * given, with the weights that a model of this shape and role saved there.
   */
  | { readonly type: 'like'; readonly policy: PolicyHandle; readonly directory?: string | undefined };

/** The precisions that models need, float32 included; all of them if no model is known yet. */
export function precisionsOf(models: readonly WeightsSpec[]): readonly Precision[] {
  if (models.length === 0) return PRECISIONS;
  const needed = models.map((weights) => (weights.type === 'like' ? undefined : weights.precision));
  return PRECISIONS.filter((precision) => precision === 'float32' || needed.includes(precision));
}
