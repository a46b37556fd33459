import { isObject } from '../../errors.js';
import type { Tool } from '../../nouns.js';
import { exactMembers, exactText, objectText } from './exact-arguments.js';
import { propertiesOf } from './schema-properties.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

/** A line that begins so is a call. */
export const SIGN = '@';
const BEGINNING = /^@/m;
/** A text that needs no quotes. */
const BARE = /^(?!\s)[^"{}[\](),\n]+(?<!\s)$/;
const QUOTED = /"(?:[^"\\\n]|\\.)*"/y;

/**
 * The format of decoders that are too small for JSON. A call is `@name(value, value)` at the beginning of a line, with
 * the values in the order of the schema's properties, or `@name({"property": value})`. Values are JSON, but that a text
 * without commas, quotes and brackets needs no quotes. Calls end the response.
 */
export const plain: ToolFormat = {
  families: 'the `bytes` and `symbols` tokenizers, and models whose chat template knows no tools',
  isOf: () => false, // the format for templates without tools
  read(text, tools) {
    const begin = text.search(BEGINNING);
    if (begin < 0) return { content: text, calls: [] };
    const calls: WrittenCall[] = [];
    for (let at = begin; at < text.length; ) {
      // A name may have any characters: servers of tools write slashes and colons.
      const tool = tools.find((each) => text.startsWith(beginning(each.name), at));
      const values = tool && valuesAt(text, at + beginning(tool.name).length);
      const object = values && argumentsOf(values.texts, tool);
      if (tool === undefined || values === undefined || object === undefined) return undefined;
      calls.push({ name: tool.name, arguments: object });
      at = values.end;
      while (/\s/.test(text.charAt(at))) at++;
    }
    return { content: text.slice(0, begin).trimEnd(), calls };
  },
  write: ({ content, calls }, tools) => {
    const lines = calls.map((call) => `${beginning(call.name)}${valuesOf(call, tools)})`);
    return [...(content === '' ? [] : [content]), ...lines].join('\n');
  },
  opening: (name) => (name === undefined ? SIGN : beginning(name)),
};

const beginning = (name: string) => `${SIGN}${name}(`;

/** The texts of the values from a place behind a bracket on, and the place behind the closing one. */
function valuesAt(text: string, start: number): { readonly texts: string[]; readonly end: number } | undefined {
  if (text.charAt(start) === ')') return { texts: [], end: start + 1 };
  const texts: string[] = [];
  let at = start;
  for (;;) {
    const end = endOfValue(text, at);
    const closing = text.charAt(end);
    texts.push(text.slice(at, end).trim());
    if (closing === ')') return { texts, end: end + 1 };
    if (closing !== ',') return undefined;
    at = end + 1;
  }
}

/** The place of the comma or bracket that ends the value at a place. Inside brackets and quotes there is none. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  for (; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '\n') break;
    if (character === '"') {
      QUOTED.lastIndex = at;
      if (!QUOTED.test(text)) break;
      at = QUOTED.lastIndex - 1;
    } else if ('([{'.includes(character)) depth++;
    else if (depth > 0 && ')]}'.includes(character)) depth--;
    else if (depth === 0 && (character === ')' || character === ',')) return at;
  }
  return text.length;
}

/** The arguments of a list of values as JSON; undefined if one of them is not a value, or there are too many. */
function argumentsOf(texts: readonly string[], { parameters }: Tool): string | undefined {
  const [first = ''] = texts;
  if (texts.length === 1 && first.startsWith('{')) {
    const members = exactMembers(first);
    return members && objectText(members);
  }
  const properties = Object.entries(propertiesOf(parameters));
  if (texts.length > properties.length) return undefined;
  const values = texts.map((text, i) => {
    const isText = isTextual(properties[i]?.[1]);
    return isText && !text.startsWith('"') ? JSON.stringify(text) : exactText(text);
  });
  const members = values.flatMap((value, i) =>
    value === undefined ? [] : [[properties[i]?.[0] ?? '', value] as const],
  );
  return members.length < values.length ? undefined : objectText(members);
}

const isTextual = (schema: unknown) => isObject(schema) && schema.type === 'string';

/** The values of a call in the shortest form that reads as them. */
function valuesOf({ name, arguments: text }: WrittenCall, tools: readonly Tool[]): string {
  const values = exactMembers(text);
  if (values === undefined) return text;
  const properties = Object.entries(propertiesOf(tools.find((tool) => tool.name === name)?.parameters ?? {}));
  const count = values.size;
  const first = properties.slice(0, count);
  const inOrder = first.length === count && first.every(([property]) => values.has(property));
  const written = first.map(([property, schema]) => valueText(values.get(property) ?? '', schema));
  const [only] = written;
  return !inOrder || written.includes(undefined) || (count === 1 && only?.startsWith('{'))
    ? objectText(values)
    : written.join(',');
}

/** The JSON of a value in its shortest form; undefined if it would read as a text. */
function valueText(json: string, schema: unknown): string | undefined {
  if (!isTextual(schema)) return json;
  if (!json.startsWith('"')) return undefined;
  const value: string = JSON.parse(json);
  return BARE.test(value) ? value : json;
}
