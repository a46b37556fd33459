import type { Tool } from '../../core/message.js';
import { fitsSchema } from './fits-schema.js';
import { jsonObject } from './json-object.js';
import { plain } from './plain.js';
import type { TextWithCalls, ToolFormat } from './tool-format.js';

/** The formats of calls; a row each. */
const formats = { plain } satisfies Readonly<Record<string, ToolFormat>>;

/** The name of a format in which models write calls of tools. */
export type ToolFormatName = keyof typeof formats;

export const toolFormatNames = Object.keys(formats) as ToolFormatName[];

export const toolFormat = (name: ToolFormatName): ToolFormat => formats[name];

/**
 * Takes the calls out of a response; `undefined` where a call cannot be read, names no tool of the list or has
 * arguments that do not fit its schema.
 */
export function callsIn(text: string, name: ToolFormatName, tools: readonly Tool[]): TextWithCalls | undefined {
  const response = toolFormat(name).read(text, tools);
  return response?.calls.every((call) => isCallOf(call, tools)) === true ? response : undefined;
}

/** Whether a call names one of the tools, and its arguments are those of the tool. */
export function isCallOf(
  { name, arguments: text }: { readonly name: string; readonly arguments: string },
  tools: readonly Tool[],
): boolean {
  const tool = tools.find((each) => each.name === name);
  const values = jsonObject(text);
  return tool !== undefined && values !== undefined && fitsSchema(values, tool.parameters);
}
