import { fitsJsonSchema, jsonObject } from '../../errors.js';
import type { Tool } from '../../nouns.js';
import { hermes } from './hermes.js';
import { llama } from './llama.js';
import { mistral } from './mistral.js';
import { mistralArgs } from './mistral-args.js';
import { plain } from './plain.js';
import { qwenCoder } from './qwen-coder.js';
import type { TextWithCalls, ToolFormat } from './tool-format.js';

/** The formats of calls; a row each. */
const formats = {
  hermes,
  'qwen-coder': qwenCoder,
  llama,
  mistral,
  'mistral-args': mistralArgs,
  plain,
} satisfies Readonly<Record<string, ToolFormat>>;

/** A template that knows tools has this word. */
const KNOWS_TOOLS = /\btools\b/;

/** The name of a format in which models write calls of tools. */
export type ToolFormatName = keyof typeof formats;

export const toolFormatNames = Object.keys(formats) as ToolFormatName[];

export const toolFormat = (name: ToolFormatName): ToolFormat => formats[name];

/** The format in which a chat template writes calls; undefined if it is none of these. */
export const formatOfTemplate = (template: string): ToolFormatName | undefined =>
  KNOWS_TOOLS.test(template) ? toolFormatNames.find((name) => formats[name].isOf(template)) : 'plain';

/**
 * Takes the calls out of a response; undefined if a call cannot be read, names no tool of the list or has
 * arguments that do not fit its schema.
 */
export function callsIn(text: string, name: ToolFormatName, tools: readonly Tool[]): TextWithCalls | undefined {
  const response = toolFormat(name).read(text, tools);
  return response?.calls.every((call) => isCallOf(call, tools)) === true ? response : undefined;
}

/** Whether a call names one of the tools, and its arguments fit the tool's schema. */
export function isCallOf(
  { name, arguments: text }: { readonly name: string; readonly arguments: string },
  tools: readonly Tool[],
): boolean {
  const tool = tools.find((each) => each.name === name);
  return tool !== undefined && jsonObject(text) !== undefined && fitsJsonSchema(text, tool.parameters);
}
