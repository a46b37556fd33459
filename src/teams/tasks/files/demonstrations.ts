/** Demonstrations for the warm start from a file of JSON lines, beside tasks of any source. */
import { createHash } from 'node:crypto';
import { closeSync, createReadStream, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import {
  exactJson,
  type FilePlace,
  isObject,
  issuesText,
  jsonValue,
  parseWithSources,
  RecipeError,
  requireKnown,
  shown,
  TaskError,
} from '@drmas/engine/errors';
import { excerpt } from '@drmas/engine/host';
import type { RandomStream } from '@drmas/engine/math';
import type { JsonSchema, Message, Split, TaskSet, TaskSource, Tool, Trace } from '@drmas/engine/nouns';
import { codeOf, type EntryPlace, type FileEntry, strictValue } from '@drmas/engine/platform';
import { z } from 'zod';
import { isHeldOut } from '../split.js';
import { fileRows, textChunks } from './file-rows.js';

/** The options of `withDemonstrations`. */
export interface DemonstrationOptions {
  /** The agent of rows that name none. */
  readonly agent?: string;
}

/** The share of the rows that measure the held-out loss instead of training. */
const HELD_OUT = 0.1;

const toolCall = z.strictObject({ id: z.string(), name: z.string(), arguments: z.string() });

const message = z.strictObject({
  role: z.enum(['system', 'user', 'assistant', 'tool'], { error: 'expected system, user, assistant or tool' }),
  content: z.string(),
  reasoning: z.string().optional(),
  toolCalls: z.array(toolCall).optional(),
  toolCallId: z.string().optional(),
  name: z.string().optional(),
} satisfies Record<keyof Omit<Message, 'turnId'>, z.ZodType>);

const row = z
  .strictObject({
    agent: z.string().min(1).optional(),
    prompt: z.string().min(1).optional(),
    messages: z
      .array(message)
      .min(1)
      .refine((messages) => messages.every(({ role }, i) => role !== 'system' || i === 0), {
        error: 'expected at most one system prompt, as the first message',
      })
      .optional(),
    tools: z
      .array(
        z.strictObject({
          name: z.string().min(1),
          description: z.string().optional(),
          parameters: z.custom<JsonSchema>(isObject, 'expected a JSON schema'), // a copy would forget its digits
          strict: z.boolean().optional(),
        }),
      )
      .optional(),
    response: z.string().min(1).optional(),
  })
  .refine(({ prompt, messages }) => (prompt === undefined) !== (messages === undefined), {
    error: 'expected either prompt or messages',
  });

/** The value of a row's JSON, whose schemas of tools are written as in the file. */
const rowOf = (text: string) => strictValue(text, (json) => parseWithSources(json, SCHEMAS));
const SCHEMAS = new Set(['parameters']);

/** Rows of a file, by their numbers. Rows of a large file are read when they are asked for. */
interface Rows {
  readonly numbers: readonly number[];
  readonly at: (number: number) => Trace;
}

/** The rows of a file, those that are learnt from and those that are not. */
interface Demonstrations extends Readonly<Record<Split, readonly number[]>> {
  readonly rows: Rows;
  readonly key: string;
  readonly version: string;
}

/** Rows of larger files stay on disk, and a row is read when it is drawn. */
const HELD_BYTES = 2 ** 25;

/**
 * The tasks with demonstrations from a file, for the warm start. Each line is an object with these fields. `agent`:
 * the agent's name; default: the agent of the options. `prompt` (a text) or `messages`. `response`: if absent, the last
 * message is the response, and it must be an assistant's text or tool calls. `tools`: the tools that the agent is
 * offered. The agent's system prompt takes the place of a system message, but a line in it that demands a schema stays;
 * an agent without one reads the system message, as agents of frameworks do. A tenth of the lines, chosen by their
 * text, only measures the held-out loss. Lines whose user asks for a held-out task are left out, with a warning. Of a
 * file of more than 32 MB, lines are read when they are drawn. A relative path starts at the working directory.
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
  requireKnown<DemonstrationOptions>(options, { agent: true }, 'withDemonstrations: unknown key');
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
    async load(split, schema, options) {
      if (options?.withoutDemonstrations === true) return tasks.load(split, schema, options);
      // A file may change between two uses in one process: `drmas learn` writes it, rehearses, and writes it anew.
      const version = await versionOf(path);
      if (read === undefined || read.version !== version)
        read = { ...divided(await readRows(path, version, agent ?? undefined)), version };
      const set = await tasks.load(split, schema, options);
      if (split !== 'test' || !Number.isFinite(set.size)) return set;
      const train = await tasks.load('train', schema, options);
      const { left, warnings } = withoutHeldOut(read.rows, questionsOf(set, train), path);
      if (warnings.length === 0) return set;
      read = { ...divided(left), version };
      return withWarnings(set, warnings);
    },
    trace(random: RandomStream, split: Split): Trace {
      if (read === undefined)
        throw new TaskError('the demonstrations are drawn before the tasks were loaded', { file: path });
      return read.rows.at(random.pick(read[split] as readonly [number, ...number[]]));
    },
    traceKey: () => read?.key ?? '',
  };
}

/**
 * A mark that changes when a file is written anew. Empty if the file cannot be looked at.
 * @throws TaskError if there is no such file
 */
async function versionOf(file: string): Promise<string> {
  const facts = await stat(resolve(file)).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') return undefined; // the reader says why
    throw new TaskError('there is no such file. npx drmas demonstrate records demonstrations', { file });
  });
  return versionText(facts);
}
const versionText = (facts: Stats | undefined) =>
  facts === undefined ? '' : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;

/** @throws TaskError naming file and line */
async function readRows(file: string, version: string, agent: string | undefined): Promise<Rows> {
  const isHeld = Number(version.split(' ')[1] ?? 0) <= HELD_BYTES || (await beginsWith(file, '['));
  const held: Trace[] = [];
  const places: BytePlace[] = [];
  const numbers: number[] = [];
  const rows: AsyncGenerator<Row> = isHeld ? fileRows(file, { format: 'json', parse: rowOf }) : linesOf(file);
  for await (const { place, value, bytes } of rows) {
    const trace = traceOf(value, agent, { file, ...place });
    numbers.push(numbers.length);
    if (bytes === undefined) held.push(trace);
    else places.push(bytes);
  }
  if (numbers.length === 0) throw new TaskError('expected at least one demonstration, the file holds none', { file });
  return { numbers, at: (number) => held[number] ?? storedRow(file, version, places[number], agent) };
}

function divided(rows: Rows): Omit<Demonstrations, 'version'> {
  const hash = createHash('sha256');
  const sides = {
    learnt: { numbers: [] as number[], agents: new Set() },
    heldOut: { numbers: [] as number[], agents: new Set() },
  };
  for (const number of rows.numbers) {
    const trace = rows.at(number);
    const text = exactJson(trace);
    hash.update(`${text}\n`);
    const side = isHeldOut(text, HELD_OUT) ? sides.heldOut : sides.learnt;
    side.numbers.push(number);
    side.agents.add(trace.agent);
  }
  const { learnt, heldOut } = sides;
  const { size } = new Set([...learnt.agents, ...heldOut.agents]);
  // With few rows in all or for one agent, one side could be empty: then both sides hold all of these rows.
  const filled = ({ numbers, agents }: typeof learnt) => (agents.size === size ? numbers : rows.numbers);
  return { rows, train: filled(learnt), test: filled(heldOut), key: hash.digest('hex') };
}

interface BytePlace {
  readonly offset: number;
  readonly length: number;
  readonly line: number;
}

type Row = FileEntry & { readonly bytes?: BytePlace };

/** @throws TaskError naming file and line */
async function* linesOf(file: string): AsyncGenerator<Row> {
  let [line, offset] = [0, 0];
  let pieces: Buffer[] = [];
  const row = function* (): Generator<Row> {
    const whole = Buffer.concat(pieces);
    const bytes = { offset, length: whole.length, line: ++line };
    offset += whole.length + 1;
    pieces = [];
    const text = textOf(whole, { file, line });
    if (text.trim() === '') return;
    if (jsonValue(text) === undefined) throw new TaskError(`expected JSON, got ${excerpt(text)}`, { file, line });
    yield { place: { line }, value: rowOf(text), bytes };
  };
  for await (const chunk of createReadStream(resolve(file)) as AsyncIterable<Buffer>) {
    let begin = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, begin)) {
      pieces.push(chunk.subarray(begin, end));
      begin = end + 1;
      yield* row();
    }
    pieces.push(chunk.subarray(begin));
  }
  yield* row();
}

/** One for all lines: V8 collects such objects late, and there would be one a line. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The text of a line without a byte order mark. @throws TaskError if it is not UTF-8 */
function textOf(bytes: Buffer, where: FilePlace): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new TaskError('expected UTF-8 text', where);
  }
}

/** A row of a large file. Drawing is synchronous, and so is this. @throws TaskError if the file has changed */
function storedRow(
  file: string,
  version: string,
  { offset, length, line }: BytePlace = { offset: 0, length: 0, line: 0 },
  agent: string | undefined,
): Trace {
  const handle = openSync(resolve(file), 'r');
  try {
    if (versionText(fstatSync(handle)) !== version)
      throw new TaskError('the demonstrations have changed since they were read', { file });
    const bytes = Buffer.allocUnsafe(length); // small ones share their memory
    const read = readSync(handle, bytes, 0, length, offset);
    if (read < length) throw new TaskError('the demonstrations have become shorter since they were read', { file });
    return traceOf(rowOf(textOf(bytes, { file, line })), agent, { file, line });
  } finally {
    closeSync(handle);
  }
}

async function beginsWith(file: string, character: string): Promise<boolean> {
  for await (const text of textChunks(file)) {
    const first = text.trimStart()[0];
    if (first !== undefined) return first === character;
  }
  return false;
}

/** A set with more warnings, also when the tasks that are too long are left out. */
function withWarnings<Data>(set: TaskSet<Data>, more: readonly string[]): TaskSet<Data> {
  const { fitted } = set;
  return {
    ...set,
    name: set.name,
    size: set.size,
    at: (index) => set.at(index),
    warnings: [...(set.warnings ?? []), ...more],
    ...(fitted && { fitted: (tokensOf) => withWarnings(fitted.call(set, tokensOf), more) }),
  };
}

/** A shorter text may be in a message by chance. */
const SHORTEST_QUESTION = 3;
const MOST_QUESTIONS = 5000;

/** The texts by which tasks are known. */
interface Questions {
  /** The texts of held-out tasks that are no training tasks too. */
  readonly heldOut: ReadonlySet<string>;
  readonly training: ReadonlySet<string>;
}

function questionsOf(test: TaskSet<unknown>, train: TaskSet<unknown>): Questions {
  const textsOf = (set: TaskSet<unknown>, most: number) =>
    Number.isFinite(set.size)
      ? Array.from({ length: Math.min(set.size, most) }, (_, i) => longestText(set.at(i).data))
      : [];
  const training = new Set(textsOf(train, Number.POSITIVE_INFINITY));
  const isHeldOut = (text: string) => text.length >= SHORTEST_QUESTION && !training.has(text);
  return { heldOut: new Set(textsOf(test, MOST_QUESTIONS).filter(isHeldOut)), training };
}

/** The longest text in the data of a task: its question more often than its answer. */
function longestText(data: unknown, deepest = 6): string {
  if (typeof data === 'string') return data.trim();
  if (typeof data !== 'object' || data === null || deepest === 0) return '';
  return Object.values(data)
    .map((each) => longestText(each, deepest - 1))
    .reduce((longest, text) => (text.length > longest.length ? text : longest), '');
}

/**
 * The demonstrations of tasks that are not held out, with a warning that counts the others.
 * @throws TaskError if none is left
 */
function withoutHeldOut(
  { numbers, at }: Rows,
  questions: Questions,
  file: string,
): { readonly left: Rows; readonly warnings: readonly string[] } {
  const asked = ({ messages }: Trace) =>
    messages.flatMap(({ role, content }) => (role === 'user' ? [content.trim()] : []));
  const questionIn = questionFinder(questions);
  let example: string | undefined;
  const left = numbers.filter((number) => {
    const question = asked(at(number))
      .map(questionIn)
      .find((each) => each !== undefined);
    example ??= question;
    return question === undefined;
  });
  if (example === undefined) return { left: { numbers, at }, warnings: [] };
  if (left.length === 0)
    throw new TaskError(`all demonstrations are of held-out tasks, such as ${shown(example)}; expected others`, {
      file,
    });
  const count = numbers.length - left.length;
  const message = `${count} of ${numbers.length} demonstrations in ${file} are of held-out tasks, such as ${shown(example)}, and are left out`;
  return { left: { numbers: left, at }, warnings: [message] };
}

/** A run of letters and digits. */
const WORD = /[\p{L}\p{N}]+/gu;
const firstWord = (text: string) => /[\p{L}\p{N}]+/u.exec(text);

/**
 * Finds a held-out question that a text contains as whole words, outside of a longer question of training: the question
 * "kiwi?" is in "How much is one kiwi?". Among thousands only those whose first word is in the text are compared.
 */
function questionFinder({ heldOut, training }: Questions): (text: string) => string | undefined {
  const byWord = new Map<string, string[]>();
  const wordless: string[] = [];
  for (const question of heldOut) {
    const [word] = firstWord(question) ?? [];
    const others = word === undefined ? wordless : byWord.get(word);
    if (others !== undefined) others.push(question);
    else byWord.set(word as string, [question]);
  }
  const longer = new Map<string, readonly string[]>();
  const longerThan = (question: string) => {
    const known = longer.get(question) ?? [...training].filter((other) => other.includes(question));
    longer.set(question, known);
    return known;
  };
  const asks = (text: string, question: string) => {
    if (!isWithin(text, question)) return false;
    const rest = longerThan(question).reduce((left, other) => left.replaceAll(other, '\n'), text);
    return rest === text || isWithin(rest, question);
  };
  return (text) => {
    if (heldOut.has(text)) return text;
    const seen = new Set<string>();
    for (const [word] of text.matchAll(WORD)) {
      if (seen.has(word)) continue;
      seen.add(word);
      const found = byWord.get(word)?.find((question) => asks(text, question));
      if (found !== undefined) return found;
    }
    return wordless.find((question) => asks(text, question));
  };
}

/** Whether a text contains a question as whole words. */
function isWithin(text: string, question: string): boolean {
  const isPart = (letter: string | undefined) => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
  for (let at = text.indexOf(question); at >= 0; at = text.indexOf(question, at + 1)) {
    const isCut = isPart(text[at - 1]) && isPart(question[0]);
    if (!isCut && !(isPart(text[at + question.length]) && isPart(question.at(-1)))) return true;
  }
  return false;
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
  const [first, ...others] = messages as unknown as [Message, ...Message[]]; // the schema refuses an empty list
  const shared = {
    agent,
    ...(tools === undefined ? {} : { tools: tools as readonly Tool[] }),
    ...(first.role === 'system' ? { system: first.content } : {}),
  };
  const conversation = first.role === 'system' ? others : [first, ...others];
  if (response !== undefined && conversation.length > 0) return { ...shared, messages: conversation, response };
  const last = conversation.at(-1);
  const { content = '', toolCalls = [] } = last ?? {};
  if (last?.role !== 'assistant' || (content === '' && toolCalls.length === 0) || conversation.length === 1)
    throw new TaskError('expected "response", or messages that end with an assistant\'s text or tool calls', where);
  const unknown = toolCalls.find(({ name }) => tools?.every((tool) => tool.name !== name) ?? true);
  if (unknown !== undefined)
    throw new TaskError(`the response calls the tool '${unknown.name}', which "tools" does not have`, where);
  const calls = toolCalls.length === 0 ? {} : { toolCalls };
  return { ...shared, messages: conversation.slice(0, -1), response: content, ...calls };
}
