import type { Message, Tool } from './message.js';
import type { RandomStream } from './random.js';
import type { Issue } from './validation/issues.js';

/** One problem. The team's `play` and `reward` receive its `data`: the question, the reference answer, and so on. */
export interface Task<Data = unknown> {
  /** The name: unique within its family and stable between runs, so that evaluations can be compared task by task. */
  readonly id: string;
  readonly data: Data;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export type Split = 'train' | 'test';

/** The tasks of one split. A generated family is practically endless; a file has one task a line. */
export interface TaskSet<Data = unknown> {
  readonly name: string;
  /** Number of tasks; `Number.POSITIVE_INFINITY` for generated families. */
  readonly size: number;
  /** Messages for the user about how the tasks were read, such as rows that were left out. */
  readonly warnings?: readonly string[];
  /** The sets that this one joins or mixes; each is evaluated on its own first tasks. */
  readonly parts?: readonly TaskSet<Data>[];
  /** The task at `index` (an integer in [0, size), at most 2^53 - 1). The same index always gives the same task. */
  at(index: number): Task<Data>;
}

/** Number of indices from which the tasks of generated families are drawn, which have no end. */
export const GENERATED_INDICES = 2 ** 48;

/** A demonstration for the warm start: a conversation (without the agent's system prompt) and the response to learn. */
export interface Trace {
  readonly agent: string;
  readonly messages: readonly Message[];
  /** The tools that the agent can call, if any. */
  readonly tools?: readonly Tool[];
  readonly response: string;
}

/** A validator of a task's data; a zod schema is one. */
export interface DataSchema<Data> {
  safeParse(
    data: unknown,
  ):
    | { readonly success: true; readonly data: Data }
    | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } };
}

/** A source of tasks. Files are read in `load`, so that a bad file is reported before any work starts. */
export interface TaskSource<Data = unknown> {
  readonly name: string;
  /**
   * Loads the tasks of a split. The team's `schema` checks data that come from files; generated families need no check.
   * @throws TaskError naming file and line when the tasks cannot be read or do not fit.
   */
  load(split: Split, schema?: DataSchema<Data>): Promise<TaskSet<Data>>;
  /** Draws a demonstration, if the source can generate them. Traces of `train` never show a task of `test`. */
  trace?(random: RandomStream, split: Split): Trace;
  /**
   * A key of the demonstrations, such as a hash of their file's rows. Runs with equal keys share a cached warm start. A
   * source needs it if a sample of its draws does not tell its demonstrations from the demonstrations of another
   * source.
   */
  traceKey?(): string;
  /** The plain settings with every default filled in: shown in recipe.json, overridable as `tasks.train.<key>`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /**
   * Makes a source of the same kind with other settings, all of them given. @throws RecipeError naming the wrong
   * setting.
   */
  configure?(settings: Readonly<Record<string, unknown>>): TaskSource<Data>;
}

/** The text of a task's field, from its metadata, else from its data. Undefined if neither has the field. */
export function fieldText({ metadata, data }: Task, field: string): string | undefined {
  const value = metadata?.[field] ?? (typeof data === 'object' && data !== null ? Reflect.get(data, field) : undefined);
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;
}
