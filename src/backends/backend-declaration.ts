/** The declaration of a backend: everything that the rest of the program asks of one, in one row. */
import type { z } from 'zod';
import type { AdapterSettings, DecoderConfig, Precision } from '../contract/architecture.js';
import type { Backend } from '../contract/backend.js';
import type { Capabilities } from '../contract/capabilities.js';
import type { OptimizerSettings } from '../contract/optimizer-settings.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import type { Files } from '../core/files.js';
import type { Host } from '../core/host.js';
import type { Tokenizer } from '../core/tokenizer.js';
import type { MatrixKind } from '../tensor/kernel-arguments.js';

export interface OpenOptions {
  readonly host: Host;
  /** Weights of the models that will be opened first. */
  readonly models: readonly WeightsSpec[];
}

/** A model as far as its directory tells without its weights. */
export interface SizedModel {
  readonly tokenizer: Tokenizer;
  /** Longest sequence in tokens. */
  readonly context: number;
  /** Undefined where the layers of its family are not known here. */
  readonly config: DecoderConfig | undefined;
  /** Numbers in which the matrices are kept where nothing trains them. */
  readonly kept?: MatrixKind;
}

/** A policy of a run that is planned. */
export interface PlannedPolicy {
  readonly name: string;
  /** Undefined where the model's sizes are not known. */
  readonly config: DecoderConfig | undefined;
  /** Settings of its adapter, where it is one, and what names the base: adapters with equal names share one. */
  readonly adapter?:
    | { readonly settings: AdapterSettings; readonly base: string; readonly kept: MatrixKind }
    | undefined;
  readonly precision: Precision;
  readonly optimizer: OptimizerSettings;
  /** Number of agents that the policy speaks for. */
  readonly agents: number;
  /** Number of published versions that can be played at once. */
  readonly versions: number;
}

/** Memory of one policy in bytes, up to the odd block. */
export interface Footprint {
  /** What is trained: the weights, the copies that passes read, the sampler's copy and those that were published. */
  readonly weights: number;
  readonly gradients: number;
  readonly optimizer: number;
  /** Activations of one batch through forward and backward pass, and of prompts that are played. */
  readonly activations: number;
}

/** Memory of a whole run in bytes. */
export interface MemoryPlan {
  /** By policy; a policy whose sizes are not known is missing. */
  readonly policies: Readonly<Record<string, Footprint>>;
  /**
   * Bases that adapters share, keys and values, and all together; missing where the sizes of a policy are not known.
   */
  readonly total?: { readonly bases: number; readonly cache: number; readonly total: number };
  /** Sentences about the device whose memory this is, where it is not this process's. */
  readonly notes?: readonly string[];
}

/** What a dry run asks. `Spec` is the backend as a recipe describes it. */
export interface BackendPlan<Spec> {
  /**
   * Reads a model's directory.
   * @param chatTemplate A chat template in place of the directory's
   * @throws CheckpointError, TokenizerError
   */
  readModel(files: Files, directory: string, chatTemplate?: string): Promise<SizedModel>;
  /**
   * The memory of this process, or of the device that it computes on; undefined where a server computes.
   * @param longest Tokens of the longest sequence
   * @param written The largest share of a sequence's tokens that are trained on, above 0
   */
  memory(
    spec: Spec,
    policies: readonly PlannedPolicy[],
    longest: number,
    written: number,
  ): Promise<MemoryPlan | undefined>;
  /**
   * A sentence about memory elsewhere, from the parameters of each policy whose sizes are known; undefined where this
   * process computes.
   */
  memoryElsewhere(policies: readonly { readonly trained: number; readonly whole: number }[]): string | undefined;
}

/**
 * `hf`: a whole model in the Hugging Face layout; `peft`: an adapter in PEFT's; `gguf`: a whole model for llama.cpp.
 */
export const EXPORT_FORMATS = ['hf', 'peft', 'gguf'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportRequest {
  readonly policy: string;
  /** The policy's directory in a checkpoint. */
  readonly from: string;
  readonly format: ExportFormat;
  /** The recipe's settings of the policy, as the run recorded them. */
  readonly settings: unknown;
  readonly environment: NodeJS.ProcessEnv;
  /** Hears what the directory lacks, and why. */
  readonly tell: (why: string) => void;
}

/** An export that was found to be possible. */
export interface PreparedExport {
  /** Fills an empty directory. @throws CheckpointError, BackendError */
  write(directory: string): Promise<void>;
  /** The name or directory of the model that the adapter in `directory` adapts. Only for `peft`. */
  baseOf(directory: string): Promise<string>;
}

export interface BackendDeclaration<Schema extends z.ZodType = z.ZodType> {
  /** The recipe's section `backend`; it tells backends apart by `type`. */
  readonly schema: Schema;
  /** The most that a backend of this type can do; an open one says what it can. */
  readonly capabilities: Capabilities;
  /** The environment variable that holds a key which no recipe.json may keep. */
  readonly keyVariable?: string;
  /** Starts the backend or connects to it. The caller disposes of it. @throws BackendError */
  open(spec: z.output<Schema>, options: OpenOptions): Promise<Backend>;
  readonly plan: BackendPlan<z.output<Schema>>;
  /** Looks at a policy of a checkpoint. @throws RunError when it cannot be exported in this format */
  prepareExport(request: ExportRequest): Promise<PreparedExport>;
}
