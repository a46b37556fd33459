/** Demonstrations for the warm start from a file of JSON lines, beside tasks of any source. */
import { basename } from 'node:path';
import { z } from 'zod';
import { issuesText, RecipeError, TaskError } from '../../../base/errors.js';
import type { RandomStream } from '../../../base/math.js';
import type { Message, Split, TaskSource, Trace } from '../../../base/nouns.js';
import type { EntryPlace } from '../../../base/platform.js';
import { isHeldOut } from '../split.js';
import { fileRows } from './file-rows.js';

/** The options of `withDemonstrations`. */
export interface DemonstrationOptions {
  /** The agent of rows that name none. */
  readonly agent?: string;
}

/** The share of the rows that measure the held-out loss instead of training. */
const HELD_OUT = 0.1;

const toolCall = z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() });

/** drmas puts the agent's system prompt in front of each conversation. */
const message = z.strictObject({
  role: z.enum(['user', 'assistant', 'tool'], {
    error: 'expected user, assistant or tool; the system prompt is set by the agent',
  }),
  content: z.string(),
  toolCalls: z.array(toolCall).optional(),
  toolCallId: z.string().optional(),
  name: z.string().optional(),
});

const row = z
  .strictObject({
    agent: z.string().min(1).optional(),
    prompt: z.string().min(1).optional(),
    messages: z.array(message).min(1).optional(),
    tools: z
      .array(
        z.strictObject({
          name: z.string().min(1),
          description: z.string().optional(),
          parameters: z.record(z.string(), z.unknown()),
        }),
      )
      .optional(),
    response: z.string().min(1).optional(),
  })
  .refine(({ prompt, messages }) => (prompt === undefined) !== (messages === undefined), {
    error: 'expected either prompt or messages',
  });

/** The rows of a file, those that are learnt from and those that are not. */
type Demonstrations = Readonly<Record<Split, readonly [Trace, ...Trace[]]>>;

/**
 * The tasks with demonstrations from a file, for the warm start. Each line is an object with these fields. `agent`:
 * the agent's name; default: the agent of the options. `prompt` (a text) or `messages` (without the agent's system
 * prompt). `response`: if absent, the last message is the response, and it must be an assistant's. `tools`: the tools
 * that the agent is offered. A tenth of the lines, chosen by their text, only measures the held-out loss. A relative
 * path starts at the working directory.
 * @throws RecipeError without a path. The file is read with the tasks: TaskError naming file and line
 *
 * @example
 * ```ts
 * import { jsonl, withDemonstrations } from 'drmas';
 *
 * const tasks = withDemonstrations(jsonl('train.jsonl'), 'demonstrations.jsonl', { agent: 'solver' });
 * ```
 */
export function withDemonstrations<Data>(
  tasks: TaskSource<Data>,
  path: string,
  options: DemonstrationOptions = {},
): TaskSource<Data> {
  if (typeof path !== 'string' || path === '') throw new RecipeError('withDemonstrations: expected the path of a file');
  const { agent = null } = options;
  const { settings, configure } = tasks;
  let read: Demonstrations | undefined;
  return {
    name: tasks.name,
    settings: { ...settings, demonstrationFile: path, demonstrationAgent: agent },
    configure({ demonstrationFile, demonstrationAgent, ...rest }) {
      const configured = Object.keys(rest).length > 0 && configure !== undefined ? configure.call(tasks, rest) : tasks;
      const named = typeof demonstrationAgent === 'string' ? { agent: demonstrationAgent } : {};
      return withDemonstrations(configured, demonstrationFile as string, named);
    },
    async load(split, schema) {
      read ??= await readDemonstrations(path, agent ?? undefined);
      return tasks.load(split, schema);
    },
    trace(random: RandomStream, split: Split): Trace {
      if (read === undefined)
        throw new TaskError('the demonstrations are drawn before the tasks were loaded', { file: path });
      return random.pick(read[split]);
    },
    traceKey: () => JSON.stringify(read),
  };
}

async function readDemonstrations(file: string, agent: string | undefined): Promise<Demonstrations> {
  const traces: Trace[] = [];
  for await (const { place, value } of fileRows(file, { format: 'json' }))
    traces.push(traceOf(value, agent, { file, ...place }));
  const [first] = traces;
  if (first === undefined) throw new TaskError('expected at least one demonstration, the file holds none', { file });
  const heldOut = traces.filter((trace) => isHeldOut(JSON.stringify(trace), HELD_OUT));
  const learnt = traces.filter((trace) => !heldOut.includes(trace));
  // With few rows in all or for one agent, one side could be empty: then both sides hold all of these rows.
  const filled = (some: readonly Trace[]) => (isComplete(some, traces) ? some : traces) as [Trace, ...Trace[]];
  return { train: filled(learnt), test: filled(heldOut) };
}

/** Whether all agents of the rows are among these. */
function isComplete(some: readonly Trace[], all: readonly Trace[]): boolean {
  const there = new Set(some.map(({ agent }) => agent));
  return some.length > 0 && all.every(({ agent }) => there.has(agent));
}

function traceOf(value: unknown, ofAll: string | undefined, where: EntryPlace & { readonly file: string }): Trace {
  const checked = row.safeParse(value);
  if (!checked.success) throw new TaskError(`not a demonstration: ${issuesText(checked.error.issues)}`, where);
  const {
    agent = ofAll,
    prompt,
    messages = [{ role: 'user' as const, content: prompt ?? '' }],
    tools,
    response,
  } = checked.data;
  if (agent === undefined)
    throw new TaskError(
      `expected the name of an agent, in "agent" or in the options of ${basename(where.file)}`,
      where,
    );
  const shared = { agent, ...(tools === undefined ? {} : { tools }) };
  if (response !== undefined) return { ...shared, messages: messages as Message[], response } as Trace;
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || last.toolCalls !== undefined || last.content === '' || messages.length === 1)
    throw new TaskError('expected "response", or messages that end with an assistant\'s text', where);
  return { ...shared, messages: messages.slice(0, -1) as Message[], response: last.content } as Trace;
}
