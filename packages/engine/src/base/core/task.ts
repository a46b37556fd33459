import type { Message, Tool, ToolCall } from './message.js';
import type { RandomStream } from './random.js';

/** One problem. The team's `play` and `reward` receive its `data`: the question, the reference answer, and so on. */
export interface Task<Data = unknown> {
  /** The name: unique within its family and stable between runs, so that evaluations can be compared task by task. */
  readonly id: string;
  readonly data: Data;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** The part of the tasks: `train` for training, `test` (held out) for evaluations. */
export type Split = 'train' | 'test';

/** The files that tasks were read from: of a data set on a hub, or of this machine. */
export interface TaskOrigin {
  /** The name and the revision, such as `datasets/openai/gsm8k@main`; or the file's path. */
  readonly name: string;
  /** The commit that the revision was. Absent for a file of this machine. */
  readonly commit?: string;
  /**
   * The SHA-256 of each file that was read, hexadecimal, by its path in the data set or its name. The name is empty for
   * tasks that no file has.
   */
  readonly files: Readonly<Record<string, string>>;
}

/** The surroundings in which a source loads its tasks. */
export interface LoadOptions {
  /** The commits to take, by the name of an origin: a resumed run reads the data that it began with. */
  readonly commits?: Readonly<Record<string, string>> | undefined;
  /** Ends a download. */
  readonly signal?: AbortSignal | undefined;
  /** Receives messages for people, such as the progress of a download. */
  readonly notify?: ((message: string) => void) | undefined;
  /** Only tasks are wanted: demonstrations are not read, and their file may be missing. */
  readonly withoutDemonstrations?: boolean | undefined;
}

/** The tasks of one split. A generated family is practically endless; a file has one task a line. */
export interface TaskSet<Data = unknown> {
  readonly name: string;
  /** Number of tasks; `Number.POSITIVE_INFINITY` for generated families. */
  readonly size: number;
  /** Messages for the user about how the tasks were read, such as rows that were left out. */
  readonly warnings?: readonly string[];
  /** The data sets on hubs that the tasks were read from. Absent for tasks of this machine. */
  readonly origins?: readonly TaskOrigin[];
  /** The sets that this one joins or mixes; each is evaluated on its own first tasks. */
  readonly parts?: readonly TaskSet<Data>[];
  /**
   * The set without the tasks that exceed the source's limit of tokens, with a warning that counts them. Missing if the
   * source has no limit.
   * @param tokensOf Counts the tokens of a question, as one user message
   * @throws TaskError if no task is left
   */
  fitted?(tokensOf: (question: string) => number): TaskSet<Data>;
  /** The task at `index` (an integer in [0, size), at most 2^53 - 1). The same index always gives the same task. */
  at(index: number): Task<Data>;
}

/** Number of indices from which the tasks of generated families are drawn, which have no end. */
export const GENERATED_INDICES = 2 ** 48;

/** A demonstration for the warm start: a conversation (without the agent's system prompt) and the response to learn. */
export interface Trace {
  readonly agent: string;
  /** The system prompt that the agent's program brought along. An agent with a system prompt reads that one instead. */
  readonly system?: string;
  readonly messages: readonly Message[];
  /** The tools that the agent can call, if any. */
  readonly tools?: readonly Tool[];
  /** The text to learn, without the calls of `toolCalls`. */
  readonly response: string;
  /** The tool calls to learn. drmas writes them in the format of the policy's model. */
  readonly toolCalls?: readonly ToolCall[];
}

/** A fault that a schema reports in a value; zod's issues have this shape. */
export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
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
  load(split: Split, schema?: DataSchema<Data>, options?: LoadOptions): Promise<TaskSet<Data>>;
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

/** The set within its source's limit of tokens, or the set itself if the source has no limit. @throws TaskError */
export function fittedSet(set: TaskSet, tokensOf: (question: string) => number): TaskSet {
  const { fitted, origins } = set;
  return fitted === undefined ? set : { ...fitted(tokensOf), ...(origins && { origins }) };
}

/** The text of a task's field, from its metadata, else from its data. Undefined if neither has the field. */
export function fieldText({ metadata, data }: Task, field: string): string | undefined {
  const value = metadata?.[field] ?? (typeof data === 'object' && data !== null ? Reflect.get(data, field) : undefined);
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;
}
