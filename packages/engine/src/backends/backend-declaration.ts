/** The declaration of a backend: one row with all facts and functions that the rest of the program needs. */
import { z } from 'zod';
import type { AdapterSettings, DecoderConfig, Precision } from '../contract/architecture.js';
import type { Backend } from '../contract/backend.js';
import type { Capabilities } from '../contract/capabilities.js';
import type { Handles, PolicyHandle, Role } from '../contract/handles.js';
import type { OptimizerSettings } from '../contract/optimizer-settings.js';
import type { WeightsSpec } from '../contract/weights-spec.js';
import { ArgumentError, BackendError, type OptionNames, RunError, requireKnown } from '../errors.js';
import type { Files, Host, Secret } from '../host.js';
import type { BaseKind } from '../model/decoder/weights/decoder-tensors.js';
import type { Tokenizer } from '../nouns.js';

/** The surroundings in which a backend opens. */
export interface OpenOptions {
  readonly host: Host;
  /** Weights of the models that will be opened first. */
  readonly models: readonly WeightsSpec[];
}

/** The facts about a model that are known from its directory without reading the weights. */
export interface SizedModel {
  readonly tokenizer: Tokenizer;
  /** Longest sequence in tokens. */
  readonly context: number;
  /** Undefined if drmas does not know the layers of its family. */
  readonly config: DecoderConfig | undefined;
  /** The kind of numbers of matrices that are not trained. */
  readonly kept?: BaseKind;
}

/** A policy of a run that is planned. */
export interface PlannedPolicy {
  readonly name: string;
  /** Undefined if the model's sizes are not known. */
  readonly config: DecoderConfig | undefined;
  /** For an adapter: its settings, and the name of its base. Adapters with equal names share one base. */
  readonly adapter?: { readonly settings: AdapterSettings; readonly base: string; readonly kept: BaseKind } | undefined;
  /** Of a whole model whose agents have adapters. */
  readonly agentAdapters?: AdapterSettings | undefined;
  /** By default the engine's. */
  readonly precision?: Precision | undefined;
  readonly optimizer: OptimizerSettings;
  /** Number of agents that share the policy. */
  readonly agents: number;
  /** Number of published versions that can be sampled at the same time. */
  readonly versions: number;
}

/** Memory of one policy in bytes. Small blocks are not counted. */
export interface Footprint {
  /** The trained weights, the copies that passes read, the sampler's copy and the copies of published versions. */
  readonly weights: number;
  readonly gradients: number;
  readonly optimizer: number;
  /** Activations of one batch in the forward and backward pass, and of the prompts that are read. */
  readonly activations: number;
}

/** Memory of a whole run in bytes. */
export interface MemoryPlan {
  /** By policy; a policy whose sizes are not known is missing. */
  readonly policies: Readonly<Record<string, Footprint>>;
  /**
   * Bases that adapters share, keys and values, and the sum of everything; missing if a policy's sizes are not known.
   */
  readonly total?: { readonly bases: number; readonly cache: number; readonly total: number };
  /** Sentences about the device that holds the memory, if it is not this process. */
  readonly notes?: readonly string[];
  /** False if the device that is here cannot hold the run, by this forecast. */
  readonly fits?: boolean;
}

/** The forecast of a run: sizes and memory. `Spec` is the backend as a recipe describes it. */
export interface BackendPlan<Spec> {
  /**
   * Reads a model's directory.
   * @param chatTemplate A chat template in place of the directory's
   * @throws CheckpointError, TokenizerError
   */
  readModel(files: Files, directory: string, chatTemplate?: string): Promise<SizedModel>;
  /**
   * The memory of this process, or of the device that it computes on; undefined if a server computes.
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
   * A sentence about memory elsewhere, from the parameters of each policy whose sizes are known; undefined if this
   * process computes.
   */
  memoryElsewhere(policies: readonly { readonly trained: number; readonly whole: number }[]): string | undefined;
}

/**
 * `hf`: a whole model in the Hugging Face layout; `peft`: an adapter in PEFT's; `gguf`: a whole model for llama.cpp.
 */
export const EXPORT_FORMATS = ['hf', 'peft', 'gguf'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A policy of a checkpoint that a backend shall write in a format for other programs. */
export interface ExportRequest {
  readonly policy: string;
  /** The policy's directory in a checkpoint. */
  readonly from: string;
  readonly format: ExportFormat;
  /** The recipe's settings of the policy, as the run recorded them. */
  readonly settings: unknown;
  readonly environment: NodeJS.ProcessEnv;
  /** The key that the recipe has for the policy's server, which the run does not record. It loads the recipe. */
  readonly apiKey?: () => Promise<Secret | undefined>;
  /** Requires that the user has named or allowed the server that a checkpoint names. @throws RunError */
  readonly requireServer: (url: string) => Promise<void>;
  /** Receives a sentence about a file that the directory lacks, with the reason. */
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
  /** All abilities that a backend of this type can have. An open backend may have fewer: see its own capabilities. */
  readonly capabilities: Capabilities;
  /** True if no recipe can name it: the program chooses it. */
  readonly hidden?: boolean;
  /** The environment variable that holds a key which no recipe.json may keep. */
  readonly keyVariable?: string;
  /** Starts the backend or connects to it. The caller disposes of it. @throws BackendError */
  open(spec: z.output<Schema>, options: OpenOptions): Promise<Backend>;
  readonly plan: BackendPlan<z.output<Schema>>;
  /** Looks at a policy of a checkpoint. @throws RunError when it cannot be exported in this format */
  prepareExport(request: ExportRequest): Promise<PreparedExport>;
}

/** A backend as `defineBackend` returns it. */
export interface BackendPlugin<Type extends string = string, Shape extends z.ZodRawShape = z.ZodRawShape>
  extends BackendDeclaration<BackendShape<Type, Shape>> {
  /** Tells plug-ins of a recipe apart. */
  readonly kind: 'backend';
}

type BackendShape<Type extends string, Shape extends z.ZodRawShape> = z.ZodObject<
  { type: z.ZodLiteral<Type> } & Shape,
  z.core.$strict
>;

/** A backend as its author writes it. Missing fields get defaults. */
export interface BackendDefinition<Type extends string, Shape extends z.ZodRawShape>
  extends Pick<BackendDeclaration<BackendShape<Type, Shape>>, 'capabilities' | 'keyVariable'> {
  /** The name by which a recipe chooses it: `backend: { type: 'mine' }`. */
  readonly type: Type;
  /** The schema of its settings, without `type`. Default: no settings. */
  readonly schema?: Shape;
  /** Starts the backend or connects to it. Default: there is nothing to start, and `policy` opens its models. */
  readonly open?: BackendDeclaration<BackendShape<Type, Shape>>['open'];
  /** Opens a model in this process. Required without `open`. The model plays every role. @throws BackendError */
  readonly policy?: (weights: WeightsSpec, name: string, host: Host) => PolicyHandle;
  /** Its answers to a dry run. By default it reads no model directory and does not know its memory. */
  readonly plan?: Partial<BackendPlan<z.output<BackendShape<Type, Shape>>>>;
  /** By default its policies cannot be exported. */
  readonly prepareExport?: BackendDeclaration['prepareExport'];
}

/**
 * Defines a backend of your own, which holds the models of a run: it samples, scores and trains. A recipe takes it with
 * `use: [backend]` and chooses it with `backend: { type: 'mine' }`. A recipe that needs an ability which its
 * capabilities lack is refused before the run.
 * @throws ArgumentError without `open` and `policy`, and for a field that no backend has
 *
 * @example
 * ```ts
 * import { type Backend, type Capabilities, defineBackend } from 'drmas/backends';
 *
 * declare const myCapabilities: Capabilities;
 * declare function connect(): Promise<Backend>;
 *
 * export const mine = defineBackend({
 *   type: 'mine',
 *   capabilities: myCapabilities,
 *   open: () => connect(),
 * });
 * ```
 */
export function defineBackend<const Type extends string, Shape extends z.ZodRawShape = Record<never, never>>(
  definition: BackendDefinition<Type, Shape>,
): BackendPlugin<Type, Shape> {
  const { type, schema = {} as Shape, capabilities, keyVariable, policy, plan, prepareExport } = definition;
  const { open = policy && inProcess(type, capabilities, policy) } = definition;
  requireKnown(definition, DEFINITION, `defineBackend: '${type}' has the unknown field`);
  requireKnown(plan ?? {}, PLAN, `defineBackend: the plan of '${type}' has the unknown field`);
  if (open === undefined) throw new ArgumentError(`the backend '${type}' has neither \`open\` nor \`policy\``);
  return {
    kind: 'backend',
    schema: z.strictObject({ type: z.literal(type), ...schema }) as unknown as BackendShape<Type, Shape>,
    capabilities,
    ...(keyVariable === undefined ? {} : { keyVariable }),
    open,
    plan: {
      readModel: () => Promise.reject(new BackendError(`the backend '${type}' reads no model directories`)),
      memory: async () => undefined,
      memoryElsewhere: () => `the backend '${type}' does not say how much memory it needs`,
      ...plan,
    },
    prepareExport:
      prepareExport ??
      (({ policy }) =>
        Promise.reject(new RunError(`policy '${policy}' was trained on the backend '${type}', which exports nothing`))),
  };
}

const DEFINITION: OptionNames<BackendDefinition<string, z.ZodRawShape>> = {
  ...{ type: true, schema: true, capabilities: true, keyVariable: true, open: true, policy: true, plan: true },
  prepareExport: true,
};
const PLAN: OptionNames<BackendPlan<unknown>> = { readModel: true, memory: true, memoryElsewhere: true };

/** Opens a backend that has nothing to start: it opens models by `policy`. */
const inProcess =
  (type: string, capabilities: Capabilities, policy: NonNullable<BackendDefinition<string, z.ZodRawShape>['policy']>) =>
  async (_: unknown, { host }: OpenOptions): Promise<Backend> => ({
    capabilities,
    hardware: { kernels: type, isa: 'typescript' },
    async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
      if (role === 'critic') throw new BackendError(`the backend '${type}' has no critics`);
      return policy(weights, name, host) as Handles[Role] as Handles[R];
    },
    dispose: async () => {},
  });
