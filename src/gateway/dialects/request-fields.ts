/** Parts that the requests of all dialects share: limits, texts in parts, tools, and error messages. */

import { DialectError, given, inPlainWords, isObject, issuesText, ownValue } from '@drmas/engine/errors';
import { argumentsText, type JsonSchema, type Tool, type ToolChoice } from '@drmas/engine/nouns';
import { z } from 'zod';

/** The most messages: no model could read a longer conversation. */
export const MOST_MESSAGES = 10_000;
const MOST_TOOLS = 1_000;
/** Each token of an answer is compared with every stop text. */
const MOST_STOPS = 256;
const LONGEST_NAME = 1_000;

const MOST_FAULTS = 3;

export const nameText = z.string().min(1).max(LONGEST_NAME);
export const positive = z.int().min(1);
/** The most tokens of an answer. The -1 of LM Studio and llama.cpp, which their clients send, is no limit. */
export const tokenLimit = z.preprocess((count) => (count === -1 ? undefined : count), positive.nullish()).optional();
/** The arguments of an earlier call; some clients leave them out if there are none. */
export const callArguments = z.string().nullish().transform(argumentsText);

/** A schema: any JSON object; models read it as it is. */
export const jsonSchema = z.custom<JsonSchema>(isObject, 'expected a JSON schema');

/** Types of content parts that contain text, with the key of the text. */
const TEXT_PARTS: Readonly<Record<string, string>> = {
  text: 'text',
  input_text: 'text',
  output_text: 'text',
  refusal: 'refusal',
};

const readText = (value: unknown, context: z.core.$RefinementCtx): string => {
  const read = textOf(value);
  if (typeof read === 'string') return read;
  context.addIssue({ code: 'custom', message: read.fault });
  return '';
};

/**
 * A text, or a list of parts that are texts; frameworks add keys of their own to the parts. The parts are joined
 * without a separator, since they once were one text.
 */
export const content = z.unknown().transform(readText);

/** A text or parts; a missing value is an empty text. */
export const optionalContent = z
  .unknown()
  .optional()
  .transform((value, context) => readText(value ?? '', context));

function textOf(value: unknown): string | { readonly fault: string } {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return { fault: 'expected a text or a list of parts' };
  let text = '';
  for (const part of value) {
    if (!isObject(part)) return { fault: 'expected parts that are objects' };
    const { type } = part;
    const key = typeof type === 'string' ? ownValue(TEXT_PARTS, type) : undefined;
    const piece = key === undefined ? undefined : part[key];
    if (typeof piece !== 'string')
      return { fault: `expected parts of text, got one of type ${shown(type)}: these models read only text` };
    text += piece;
  }
  return text;
}

const shown = (value: unknown) =>
  typeof value === 'string' ? `'${value.slice(0, 50)}'` : value === undefined ? 'nothing' : typeof value;

export const STOPS_EXPECTED = `expected at most ${MOST_STOPS} stop texts`;

export const stopTexts = z.array(z.string()).max(MOST_STOPS, STOPS_EXPECTED);

/**
 * A list of tools. Tools of other types are left out: servers or models of one company know them, such as a search of
 * the web. Coding agents send them beside functions, and `otherTools` names them.
 */
export function toolList(type: string, schema: z.ZodType<Tool>) {
  return z
    .array(z.unknown())
    .max(MOST_TOOLS)
    .nullish()
    .transform((list) => list?.map((each) => (isOther(each, type) ? undefined : each)))
    .pipe(z.array(schema.optional()).optional())
    .transform((list) => list?.filter((each) => each !== undefined));
}

const isOther = (tool: unknown, type: string) => isObject(tool) && typeof tool.type === 'string' && tool.type !== type;

/** The tools of a body that `toolList` leaves out, as fields that have no effect. */
export function otherTools(body: unknown, type: string): string[] {
  const list = isObject(body) && Array.isArray(body.tools) ? body.tools.slice(0, MOST_TOOLS) : [];
  const types = list.flatMap((each) => (isOther(each, type) ? [String(each.type)] : []));
  return [...new Set(types)].slice(0, MOST_IGNORED).map((each) => `tools of type ${plainName(each) ?? 'an odd name'}`);
}

/** A field that has no effect with this value, and is refused with any other. */
export const only = <Value>(allowed: (value: unknown) => boolean, message: string) =>
  z.custom<Value>((value) => value === undefined || value === null || allowed(value), message).optional();

/** Checks a body. @throws DialectError with the first faults */
export function checked<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body, { error: inPlainWords });
  if (result.success) return result.data;
  const issues = result.error.issues.slice(0, MOST_FAULTS);
  throw new DialectError(400, 'invalid_request', issuesText(issues), fieldAt(issues[0]?.path ?? []));
}

/** A path as errors of OpenAI name it: `messages[0].role`. */
function fieldAt([first, ...inner]: readonly PropertyKey[]): string | undefined {
  const steps = inner.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`));
  return first === undefined ? undefined : `${String(first)}${steps.join('')}`;
}

/** The error for a wrong value of a field at the top of a body. */
export const invalidField = (field: string, fault: string) =>
  new DialectError(400, 'invalid_request', `${field}: ${fault}`, field);

/**
 * The tools and the choice among them; `auto` and `none` without tools have no effect.
 * @throws DialectError for a choice of a missing tool, `required` without tools, and two tools of one name
 */
export function toolsOf(
  tools: readonly Tool[] | null | undefined,
  choice: ToolChoice | undefined,
): { readonly tools?: readonly Tool[]; readonly toolChoice?: ToolChoice } {
  const names = new Set((tools ?? []).map(({ name }) => name));
  if (tools && names.size < tools.length) throw invalidField('tools', 'two of them have the same name');
  if (typeof choice === 'object' && !names.has(choice.name))
    throw invalidField('tool_choice', `there is no tool '${choice.name.slice(0, 100)}'`);
  if (!tools || tools.length === 0) {
    if (choice === 'required') throw invalidField('tool_choice', 'there are no tools');
    return {};
  }
  return { tools, ...given({ toolChoice: choice }) };
}

/** The names of those fields of a body that are there, `null` counting as absent. */
export function presentFields(body: object, names: readonly string[]): string[] {
  return names.filter((name) => Object.hasOwn(body, name) && (body as Record<string, unknown>)[name] !== null);
}

/**
 * Fields that label a request for its sender, or for a cache, and change no answer. Clients such as Claude Code send
 * some with each request.
 */
const LABELS = new Set([
  ...['user', 'metadata', 'store', 'safety_identifier', 'anthropic_version'],
  ...['cache_control', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention'],
]);
/** Names of fields come from clients, and are printed and recorded. */
const [LONGEST_FIELD, MOST_IGNORED] = [64, 32];

/** The fields of a body that have no effect: those that set the sampling, and those that `shape` does not read. */
export function ignoredFields(body: object, shape: object): string[] {
  const names = Object.keys(body).filter(
    (name) => SAMPLING.has(name) || !(Object.hasOwn(shape, name) || LABELS.has(name)),
  );
  return presentFields(body, names)
    .slice(0, MOST_IGNORED)
    .map((name) => plainName(name) ?? 'a field of an odd name');
}

const plainName = (name: string) => (/^\w+$/.test(name) && name.length <= LONGEST_FIELD ? name : undefined);

/** A seed of 64 bits. JSON.parse rounds integers above 2^53, of which several then are one seed. */
export const seedNumber = z
  .number()
  .refine((seed) => Number.isInteger(seed) && Math.abs(seed) <= 2 ** 64, 'expected an integer of 64 bits')
  .transform((seed) => seed % Number.MAX_SAFE_INTEGER);

/** The seed that stands some places after another, among the seeds that numbers tell apart. */
export const nextSeed = (seed: number, places: number) =>
  seed > Number.MAX_SAFE_INTEGER - places ? seed - Number.MAX_SAFE_INTEGER + places : seed + places;

/** vLLM's -1 for all tokens is drmas's 0. */
export const topKNumber = z
  .int()
  .min(-1)
  .transform((count) => Math.max(count, 0));

const SAMPLING = new Set(['temperature', 'top_p', 'top_k', 'seed', 'stop', 'stop_sequences']);

/** The ignored fields of a request that `WishedSampling` does not have. */
export const beyondSampling = (ignored: readonly string[]): string[] => ignored.filter((name) => !SAMPLING.has(name));

/** Messages of once each: clients choose the names, so they end. */
const MOST_REPORTS = 1_000;

export function onceEach(
  report: (agent: string, field: string) => void,
): (agent: string, fields: readonly string[]) => void {
  const before = new Set<string>();
  return (agent, fields) => {
    for (const field of fields) {
      const key = `${agent} ${field}`;
      if (before.has(key) || before.size >= MOST_REPORTS) continue;
      before.add(key);
      report(agent, field);
    }
  };
}
