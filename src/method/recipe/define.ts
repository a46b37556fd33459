import type { SamplerInput } from '@drmas/engine/endpoints';
import type { EventSink } from '@drmas/engine/host';
import type { ModelInput } from '@drmas/engine/model';
import type { TaskSource } from '@drmas/engine/nouns';
import type { z } from 'zod';
import type { Team } from '../../teams/index.js';
import type { FrozenInput } from './frozen.js';
import type { Plugin } from './plugins/plugins.js';
import type {
  AgentInput,
  BackendInput,
  EstimatorInput,
  EvaluationInput,
  GatewayInput,
  LossInput,
  PolicyInput,
  RolloutInput,
  TrainingInput,
  WarmStartInput,
} from './settings-input.js';

/** The names of a team's agents. */
export type AgentName<T extends Team> = keyof T['agents'] & string;

/** One policy for each agent, one for all, or a map from each agent to the name of a policy or to a frozen model. */
export type AssignmentInput<T extends Team> =
  | 'separate'
  | 'shared'
  | { readonly [A in AgentName<T>]: string | FrozenInput };

type PolicyName<T extends Team, Assign> = Assign extends 'separate'
  ? AgentName<T>
  : Assign extends 'shared'
    ? 'shared'
    : Extract<Assign[keyof Assign], string>;

type PluginSettings<P, Kind extends string> = P extends { readonly kind: Kind; readonly module: string }
  ? { readonly type: string; readonly [setting: string]: unknown } // the compiler does not know the module
  : P extends {
        readonly kind: Kind;
        readonly schema: infer Schema extends z.ZodType;
      }
    ? z.input<Schema>
    : never;

type Choice<Standard, Use extends readonly Plugin[], Kind extends string> =
  | Standard
  | PluginSettings<Use[number], Kind>;

type PolicySettings<Use extends readonly Plugin[]> = Omit<PolicyInput, 'loss' | 'backend'> & {
  readonly loss?: Choice<PolicyInput['loss'], Use, 'loss'>;
  readonly backend?: Choice<PolicyInput['backend'], Use, 'backend'>;
};

/** A recipe as a user writes it: team, tasks, model, and the settings that differ from their defaults. */
export interface RecipeInput<
  T extends Team = Team,
  Assign = AssignmentInput<T>,
  Use extends readonly Plugin[] = readonly Plugin[],
> {
  /** The name of the recipe and of the run's directory. Default: the name of the recipe's file. */
  readonly name?: string;
  /** The team, as `defineTeam` returns it. */
  readonly team: T;
  /** One source or list of tasks for both splits, or one for each. `test` may be several benchmarks by name. */
  readonly tasks:
    | TaskSource
    | readonly object[]
    | {
        readonly train: TaskSource | readonly object[];
        readonly test: TaskSource | readonly object[] | Readonly<Record<string, TaskSource | readonly object[]>>;
      };
  /** The model of every policy without a model of its own. */
  readonly model?: ModelInput;
  /**
   * The model of each agent. `separate` gives each agent its own policy, named like the agent. `shared` gives all
   * agents one policy named `shared`. A map gives each agent the name of a policy, or a frozen model.
   */
  readonly assign?: Assign;
  /** Limits of the team's loops, by the names that the team declares. Default: the team's own. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Settings of each policy, by its name. */
  readonly policies?: { readonly [P in PolicyName<T, Assign>]?: PolicySettings<Use> };
  /** Settings of each agent, by its name. */
  readonly agents?: { readonly [A in AgentName<T>]?: AgentInput };
  /** The seed of sampling and reinforcement. `--seed` sets it. The warm start has its own seed. */
  readonly seed?: number;
  /** The estimator. It turns rewards into advantages. */
  readonly advantage?: Choice<EstimatorInput, Use, 'estimator'>;
  /** The policy loss. It turns advantages into a gradient. */
  readonly loss?: Choice<LossInput, Use, 'loss'>;
  /** Supervised training on the task source's demonstrations before reinforcement. There is none by default. */
  readonly warmStart?: WarmStartInput;
  /** The reinforcement itself. */
  readonly training?: TrainingInput;
  /** Evaluations on held-out tasks. */
  readonly evaluation?: EvaluationInput;
  /**
   * Offers the agents over HTTP, for `play({ gateway })` and the programs that it starts. By default there is no
   * gateway.
   */
  readonly gateway?: GatewayInput;
  /** The place where episodes are played. Default: the thread of the program. */
  readonly rollout?: RolloutInput;
  /** The backend, which holds the models: it samples from them and trains them. */
  readonly backend?: Choice<BackendInput, Use, 'backend'>;
  /**
   * A vLLM or SGLang server that samples from the policies while `backend` trains them. By default the backend samples
   * too.
   */
  readonly sampler?: SamplerInput;
  /**
   * Your own plug-ins, made by `defineEstimator`, `lossFrom`, `defineTracker` and `defineBackend`. The sections
   * `advantage`, `loss` and `backend` can then name their types.
   */
  readonly use?: Use;
  /**
   * Receivers of the run's events. Each has its own queue: a receiver that throws or is slow does not affect the run.
   */
  readonly sinks?: readonly EventSink[];
}

/** The export of a recipe file: the input as written. drmas resolves it when it loads the file. */
export interface RecipeDefinition {
  readonly type: 'recipe';
  readonly input: RecipeInput;
}

/**
 * Defines a recipe. The compiler checks the names of agents and policies here. `resolveRecipe` checks the values and
 * fills in the defaults.
 *
 * @example
 * ```ts
 * import { arithmetic, checkpoint, defineRecipe, solverVerifier } from 'drmas';
 *
 * export default defineRecipe({
 *   team: solverVerifier(),
 *   tasks: arithmetic(),
 *   model: checkpoint('Qwen/Qwen2.5-0.5B-Instruct'),
 *   training: { steps: 20 },
 * });
 * ```
 */
export function defineRecipe<
  T extends Team,
  const Assign extends AssignmentInput<T> = 'separate',
  const Use extends readonly Plugin[] = readonly [],
>(input: RecipeInput<T, Assign, Use>): RecipeDefinition {
  return { type: 'recipe', input: input as unknown as RecipeInput };
}
