/** The tools that traces list, in the form of drmas. */
import { isObject } from '@drmas/engine/errors';
import type { Tool } from '@drmas/engine/nouns';
import { type Report, whyUnread } from './messages.js';
import { fieldOf, isEmpty, type JsonFields, jsonOf, listOf } from './span-fields.js';

/** The tools among the fields of a request: of OpenAI, older and newer, of Bedrock, Gemini, Pydantic AI. */
export function toolsIn(request: unknown): unknown {
  if (!isObject(request)) return undefined;
  const within = [fieldOf(request, 'toolConfig'), request.config].filter(isObject).map(({ tools }) => tools);
  const ofPydantic = [...listOf(request.function_tools), ...listOf(request.output_tools)];
  return [request.tools, request.functions, ...within, ofPydantic].find((tools) => !isEmpty(tools));
}

/** The tools of an attribute: a list, a table of them by name, or one. */
export function toolsOf(attribute: unknown, report: Report): Tool[] | undefined {
  const value = jsonOf(attribute);
  const reason = whyUnread(value);
  if (reason !== undefined) report(reason);
  if (isEmpty(value) || reason !== undefined) return undefined;
  const tools = listed(value).flatMap((each) => toolOf(jsonOf(each), report));
  return tools.length === 0 ? undefined : tools;
}

function listed(value: unknown): readonly unknown[] {
  const fields =
    isObject(value) && ['name', 'function', 'toolSpec', 'tool'].every((name) => !(name in value)) ? value : {};
  const table = Object.entries(fields).flatMap(([name, tool]) => (isObject(tool) ? [{ name, ...tool }] : []));
  if (table.length > 0) return table;
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.flatMap((each) => {
    const declared = isObject(each) ? fieldOf(each, 'functionDeclarations') : undefined;
    return Array.isArray(declared) ? declared : [each];
  });
}

/** Types of tools that a program runs itself; others are built into a provider and have no schema. */
const OWN = ['function', 'custom', 'dynamic'];

function toolOf(each: unknown, report: Report): Tool[] {
  const schemaText = isObject(each) && isObject(each.tool) ? each.tool.json_schema : undefined;
  const whole = jsonOf(schemaText ?? each);
  const tool = isObject(whole) ? ([whole.function, whole.toolSpec].find(isObject) ?? whole) : {};
  const isBuiltIn = isObject(whole) && typeof whole.type === 'string' && !OWN.includes(whole.type);
  const schema = schemaOf(tool) ?? (isBuiltIn ? undefined : { type: 'object', properties: {} });
  if (typeof tool.name !== 'string' || !isObject(schema)) {
    report('tool');
    return [];
  }
  const { $schema: _, ...parameters } = schema;
  const described = typeof tool.description === 'string' ? { description: tool.description } : {};
  return [{ name: tool.name, ...described, parameters }];
}

/** The schema of a tool. Bedrock and AI SDK write it in an object of its own. */
function schemaOf(tool: JsonFields): unknown {
  const schema = jsonOf(
    tool.parameters ?? tool.parameters_json_schema ?? fieldOf(tool, 'inputSchema') ?? tool.arguments,
  );
  if (!isObject(schema) || schema.type !== undefined) return schema ?? undefined;
  return [schema.json, schema.jsonSchema].find(isObject) ?? schema;
}
