import type { TaskSource } from '../core/task.js';
import type { ModelInput } from '../model/model-spec.js';
import type { Team } from '../teams/team.js';
import type { FrozenInput } from './frozen.js';
import type {
  AgentInput,
  BackendInput,
  EstimatorInput,
  EvaluationInput,
  LossInput,
  PolicyInput,
  TrainingInput,
  WarmStartInput,
} from './settings-input.js';

type AgentName<T extends Team> = keyof T['agents'] & string;

/** One policy for each agent, one for all, or for every agent the name of a policy or what is frozen. */
export type Assignment<T extends Team> = 'separate' | 'shared' | { readonly [A in AgentName<T>]: string | FrozenInput };

/** The policies that an assignment makes. */
type PolicyName<T extends Team, Assign> = Assign extends 'separate'
  ? AgentName<T>
  : Assign extends 'shared'
    ? 'shared'
    : Extract<Assign[keyof Assign], string>;

/** A recipe as a user writes it: team, tasks and model, and whatever is to differ from the defaults. */
export interface RecipeInput<T extends Team = Team, Assign = Assignment<T>> {
  /** By default the file's name. */
  readonly name?: string;
  readonly team: T;
  /** One source for both splits, or one each; `test` may be several benchmarks by name. */
  readonly tasks:
    | TaskSource
    | { readonly train: TaskSource; readonly test: TaskSource | Readonly<Record<string, TaskSource>> };
  /** The model of every policy that names none of its own. */
  readonly model?: ModelInput;
  readonly assign?: Assign;
  readonly policies?: { readonly [P in PolicyName<T, Assign>]?: PolicyInput };
  readonly agents?: { readonly [A in AgentName<T>]?: AgentInput };
  /** Seed of sampling and reinforcement; `--seed` sets it. The warm start has its own. */
  readonly seed?: number;
  readonly advantage?: EstimatorInput;
  readonly loss?: LossInput;
  /** Supervised training on the task family's generated traces before reinforcement. */
  readonly warmStart?: WarmStartInput;
  readonly training?: TrainingInput;
  readonly evaluation?: EvaluationInput;
  readonly backend?: BackendInput;
}

/** What a recipe file exports: the input as written, to be resolved when it is loaded. */
export interface RecipeDefinition {
  readonly type: 'recipe';
  readonly input: RecipeInput;
}

/**
 * Defines a recipe. The names of agents and policies are checked by the compiler here; values are checked, and defaults
 * filled in, by `resolveRecipe`.
 */
export function defineRecipe<T extends Team, const Assign extends Assignment<T> = 'separate'>(
  input: RecipeInput<T, Assign>,
): RecipeDefinition {
  return { type: 'recipe', input: input as RecipeInput };
}
