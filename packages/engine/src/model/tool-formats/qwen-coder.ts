import { fitsJsonSchema, isObject, ownValue } from '../../errors.js';
import type { JsonSchema, Tool } from '../../nouns.js';
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
 * `<tool_call><function=name><parameter=name>value</parameter>...</function></tool_call>`. A value is JSON or a text,
 * as its schema allows. If the schema allows both, or does not name the parameter, JSON is tried first.
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
    const values = new Map<string, string>();
    for (let at = FUNCTION.lastIndex; ; at = PARAMETER.lastIndex) {
      END.lastIndex = at;
      if (END.test(text)) return { call: { name, arguments: objectText(values) }, end: END.lastIndex };
      PARAMETER.lastIndex = at;
      const [, key = '', written = ''] = PARAMETER.exec(text) ?? [];
      const value = parameterValue(written, key, tool);
      if (key === '' || values.has(key) || value === undefined) return undefined;
      values.set(key, value);
    }
  };
}

/** The first reading of a value that its schema allows: JSON, a word of Python, as templates write it, or a text. */
function parameterValue(text: string, name: string, { parameters }: Tool): string | undefined {
  const given = ownValue(propertiesOf(parameters), name);
  const literal = JSON.stringify(text);
  if (!isObject(given)) return exactText(text) ?? literal;
  if (given.type === 'string') return literal;
  const schema: JsonSchema = { $defs: parameters.$defs, definitions: parameters.definitions, ...given };
  const word = /^(true|false)$/i.test(text) ? text.toLowerCase() : text === 'None' ? 'null' : undefined;
  const readings = [exactText(text), word, literal].filter((each) => each !== undefined);
  return readings.find((each) => fitsJsonSchema(each, schema)) ?? readings[0];
}

function blockOfCall({ name, arguments: text }: WrittenCall): string {
  const parameters = Array.from(
    exactMembers(text) ?? [],
    ([key, json]) => `<parameter=${key}>\n${json.startsWith('"') ? JSON.parse(json) : json}\n</parameter>\n`,
  );
  return `<function=${name}>\n${parameters.join('')}</function>`;
}
