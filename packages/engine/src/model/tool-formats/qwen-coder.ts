import { isObject, ownValue } from '../../errors.js';
import type { Tool } from '../../nouns.js';
import { exactMembers, exactText, objectText } from './exact-arguments.js';
import { propertiesOf } from './schema-properties.js';
import { blockOpening, blocksOf, type CallAt, callsInBlocks } from './tagged-blocks.js';
import type { ToolFormat, WrittenCall } from './tool-format.js';

const FUNCTION = /<function=([^>\n]+)>/y;
/** The format escapes nothing. A tag inside a value differs from the one that ends it by the text that follows. */
const PARAMETER =
  /\s*<parameter=([^>\n]+)>\n?([\s\S]*?)\n?<\/parameter>(?=\s*(?:<parameter=|<\/function>\s*<\/tool_call>\s*(?:<tool_call>|$)))/y;
const END = /\s*<\/function>/y;

/**
 * `<tool_call><function=name><parameter=name>value</parameter>...</function></tool_call>`. A value is a text if the
 * schema says so, else JSON. If the schema has no type, it is read as JSON if it is valid JSON.
 */
export const qwenCoder: ToolFormat = {
  families: 'Qwen3-Coder',
  isOf: (template) => template.includes('<function='),
  read: (text, tools) => callsInBlocks(text, callAt(tools)),
  write: (response) => blocksOf(response, blockOfCall),
  opening: (name) => blockOpening(name === undefined ? '<function=' : `<function=${name}>\n`),
};

function callAt(tools: readonly Tool[]): CallAt {
  return (text, start) => {
    FUNCTION.lastIndex = start;
    const name = FUNCTION.exec(text)?.[1];
    const tool = tools.find((each) => each.name === name);
    if (name === undefined || tool === undefined) return undefined;
    const properties = propertiesOf(tool.parameters);
    const values = new Map<string, string>();
    for (let at = FUNCTION.lastIndex; ; at = PARAMETER.lastIndex) {
      END.lastIndex = at;
      if (END.test(text)) return { call: { name, arguments: objectText(values) }, end: END.lastIndex };
      PARAMETER.lastIndex = at;
      const [, key = '', written = ''] = PARAMETER.exec(text) ?? [];
      const value = parameterValue(written, ownValue(properties, key));
      if (key === '' || values.has(key) || value === undefined) return undefined;
      values.set(key, value);
    }
  };
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
