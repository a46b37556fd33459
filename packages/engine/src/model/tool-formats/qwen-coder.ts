import { isObject, ownValue } from '../../errors.js';
import type { JsonSchema, Tool } from '../../nouns.js';
import { exactMembers, exactText, objectText } from './exact-arguments.js';
import { propertiesOf } from './schema-properties.js';
import { blockOpening, blocksOf, callsInBlocks } from './tagged-blocks.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

const FUNCTION = /^<function=([^>\n]+)>([\s\S]*)<\/function>$/;
const PARAMETER = /\s*<parameter=([^>\n]+)>\n?([\s\S]*?)\n?<\/parameter>\s*/y;

/**
 * `<tool_call><function=name><parameter=name>value</parameter>...</function></tool_call>`. A value is a text if the
 * schema says so, else JSON. If the schema has no type, it is read as JSON if it is valid JSON.
 */
export const qwenCoder: ToolFormat = {
  families: 'Qwen3-Coder',
  isOf: (template) => template.includes('<function='),
  read: (text, tools) => callsInBlocks(text, (block) => callOfBlock(block, tools)),
  write: (response) => blocksOf(response, blockOfCall),
  opening: (name) => blockOpening(name === undefined ? '<function=' : `<function=${name}>\n`),
};

function callOfBlock(block: string, tools: readonly Tool[]): WrittenCall | undefined {
  const [, name = '', body = ''] = FUNCTION.exec(block) ?? [];
  const tool = tools.find((each) => each.name === name);
  const values = tool && valuesIn(body, tool.parameters);
  return values && { name, arguments: objectText(values) };
}

function valuesIn(body: string, schema: JsonSchema): Map<string, string> | undefined {
  const properties = propertiesOf(schema);
  const entries = new Map<string, string>();
  let at = 0;
  for (PARAMETER.lastIndex = 0; at < body.trimEnd().length; at = PARAMETER.lastIndex) {
    const [, name = '', text = ''] = PARAMETER.exec(body) ?? [];
    const value = parameterValue(text, ownValue(properties, name));
    if (name === '' || entries.has(name) || value === undefined) return undefined;
    entries.set(name, value);
  }
  return entries;
}

function parameterValue(text: string, schema: unknown): string | undefined {
  const type = isObject(schema) ? schema.type : undefined;
  if (type === 'string') return JSON.stringify(text);
  const value = exactText(type === 'boolean' ? text.toLowerCase() : text); // templates write True
  const isText = type === undefined || (Array.isArray(type) && type.includes('string'));
  return isText ? (value ?? JSON.stringify(text)) : value;
}

function blockOfCall({ name, arguments: text }: WrittenCall): string {
  const parameters = Array.from(
    exactMembers(text) ?? [],
    ([key, json]) => `<parameter=${key}>\n${json.startsWith('"') ? JSON.parse(json) : json}\n</parameter>\n`,
  );
  return `<function=${name}>\n${parameters.join('')}</function>`;
}
