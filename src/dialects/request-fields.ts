/** What the requests of all dialects have in common: their bounds, texts in parts, tools, and how faults are told. */
import { z } from 'zod';
import { DialectError } from '../core/errors.js';
import type { JsonSchema, Tool, ToolChoice } from '../core/message.js';
import { issuesText } from '../core/validation/issues.js';
import { isObject } from '../core/validation/objects.js';

/** More than these is no conversation that a model could read. */
export const MOST_MESSAGES = 10_000;
const MOST_TOOLS = 1_000;
const LONGEST_NAME = 1_000;

/** So many faults of one request are told. */
const MOST_FAULTS = 3;

export const nameText = z.string().min(1).max(LONGEST_NAME);
export const positive = z.int().min(1);

/** Any JSON object that may stand for a schema; models read it as it is. */
export const jsonSchema = z.custom<JsonSchema>(isObject, 'expected a JSON schema');

/** Types of content parts that carry text, with the key that it stands under. */
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
 * A text, or a list of parts that are texts; frameworks leave keys of their own in the parts. Nothing is put between
 * the parts, since together they are what was once one text.
 */
export const content = z.unknown().transform(readText);

/** A text or parts, or nothing at all, which is an empty text. */
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
    const key = typeof type === 'string' && Object.hasOwn(TEXT_PARTS, type) ? TEXT_PARTS[type] : undefined;
    const piece = key === undefined ? undefined : part[key];
    if (typeof piece !== 'string')
      return { fault: `expected parts of text, got one of type ${shown(type)}: these models read text alone` };
    text += piece;
  }
  return text;
}

const shown = (value: unknown) => (typeof value === 'string' ? `'${value.slice(0, 50)}'` : typeof value);

/** A list of tools; an empty one is as good as none. */
export const toolList = <Schema extends z.ZodType<Tool>>(schema: Schema) => z.array(schema).max(MOST_TOOLS).nullish();

/** A field that only says what is wanted where it has this value, and is refused otherwise. */
export const only = <Value>(allowed: (value: unknown) => boolean, message: string) =>
  z.custom<Value>((value) => value === undefined || value === null || allowed(value), message).optional();

/** Checks a body. @throws DialectError with the first faults */
export function checked<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw new DialectError(400, 'invalid_request', issuesText(result.error.issues.slice(0, MOST_FAULTS)));
}

/**
 * The tools and the choice among them; a choice without tools says nothing.
 * @throws DialectError for a choice of what is not there, and for two tools of one name
 */
export function toolsOf(
  tools: readonly Tool[] | null | undefined,
  choice: ToolChoice | undefined,
): { readonly tools?: readonly Tool[]; readonly toolChoice?: ToolChoice } {
  const names = new Set((tools ?? []).map(({ name }) => name));
  if (tools && names.size < tools.length)
    throw new DialectError(400, 'invalid_request', 'tools: two of them have one name');
  if (typeof choice === 'object' && !names.has(choice.name))
    throw new DialectError(400, 'invalid_request', `tool_choice: there is no tool '${choice.name.slice(0, 100)}'`);
  if (!tools || tools.length === 0) {
    if (choice === 'required') throw new DialectError(400, 'invalid_request', 'tool_choice: there are no tools');
    return {};
  }
  return { tools, ...(choice === undefined ? {} : { toolChoice: choice }) };
}

/** The names of those fields of a body that are there, `null` counting as absent. */
export function presentFields(body: object, names: readonly string[]): string[] {
  return names.filter((name) => Object.hasOwn(body, name) && (body as Record<string, unknown>)[name] !== null);
}

/** An object without its `null` and `undefined` fields. */
export function given<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], null | undefined> } {
  const present = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(present) as { [Key in keyof Fields]?: Exclude<Fields[Key], null | undefined> };
}
