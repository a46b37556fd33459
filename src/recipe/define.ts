import type { SamplerInput } from '../backends/samplers/sampler-spec.js';
import type { EventSink } from '../core/play/event-sink.js';
import type { TaskSource } from '../core/task.js';
import type { ModelInput } from '../model/model-spec.js';
import type { Team } from '../teams/team.js';
import type { FrozenInput } from './frozen.js';
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

/** One policy for each agent, one for all, or for every agent the name of a policy or what is frozen. */
export type Assignment<T extends Team> = 'separate' | 'shared' | { readonly [A in AgentName<T>]: string | FrozenInput };

/** The names of the policies that an assignment creates. */
type PolicyName<T extends Team, Assign> = Assign extends 'separate'
  ? AgentName<T>
  : Assign extends 'shared'
    ? 'shared'
    : Extract<Assign[keyof Assign], string>;

/** A recipe as a user writes it: team, tasks and model, and whatever is to differ from the defaults. */
export interface RecipeInput<T extends Team = Team, Assign = Assignment<T>> {
  /** The recipe's name, which names the run's directory. By default it is the file's name. */
  readonly name?: string;
  /** The team, as `defineTeam` returns it. */
  readonly team: T;
  /** One source for both splits, or one each; `test` may be several benchmarks by name. */
  readonly tasks:
    | TaskSource
    | { readonly train: TaskSource; readonly test: TaskSource | Readonly<Record<string, TaskSource>> };
  /** The model of every policy that names none of its own. */
  readonly model?: ModelInput;
  /**
   * Who speaks for each agent: `separate` gives each agent a policy of its name, `shared` gives all one policy named
   * `shared`, and a map gives each agent the name of a policy or a frozen model.
   */
  readonly assign?: Assign;
  /** Settings of each policy, by its name. */
  readonly policies?: { readonly [P in PolicyName<T, Assign>]?: PolicyInput };
  /** Settings of each agent, by its name. */
  readonly agents?: { readonly [A in AgentName<T>]?: AgentInput };
  /** The seed of sampling and reinforcement. `--seed` sets it; the warm start has a seed of its own. */
  readonly seed?: number;
  /** The estimator that makes advantages of rewards. */
  readonly advantage?: EstimatorInput;
  /** The loss that makes a gradient of advantages. */
  readonly loss?: LossInput;
  /** Supervised training on the task source's demonstrations before reinforcement. There is none by default. */
  readonly warmStart?: WarmStartInput;
  /** The reinforcement itself. */
  readonly training?: TrainingInput;
  /** Evaluations on held-out tasks. */
  readonly evaluation?: EvaluationInput;
  /** The agents over HTTP, for `play({ gateway })` and the programs that it starts; by default none. */
  readonly gateway?: GatewayInput;
  /** How episodes are played; by default in the program's own thread. */
  readonly rollout?: RolloutInput;
  /** What holds the models and computes. */
  readonly backend?: BackendInput;
  /**
   * A server of vLLM or SGLang that samples the policies, while `backend` trains them; by default the backend samples
   * too.
   */
  readonly sampler?: SamplerInput;
  /** Receivers of the run's events. They stand behind a queue: one that throws or is slow is no matter of the run. */
  readonly sinks?: readonly EventSink[];
}

/** The export of a recipe file: the input as written, which is resolved when it is loaded. */
export interface RecipeDefinition {
  readonly type: 'recipe';
  readonly input: RecipeInput;
}

/**
 * Defines a recipe. The names of agents and policies are checked by the compiler here; values are checked, and defaults
 * filled in, by `resolveRecipe`.
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
export function defineRecipe<T extends Team, const Assign extends Assignment<T> = 'separate'>(
  input: RecipeInput<T, Assign>,
): RecipeDefinition {
  return { type: 'recipe', input: input as RecipeInput };
}
