/** Messages and tools of traces in the form of drmas, whichever of the usual forms they have. */
import { isObject } from '../../base/errors.js';
import type { Message, Tool, ToolCall } from '../../base/nouns.js';
import { jsonOf } from './spans.js';

/** The messages of an attribute: OpenTelemetry's parts, AI SDK's content, or OpenAI's chat. Empty if there are none. */
export function messagesOf(attribute: unknown): Message[] {
  const value = jsonOf(attribute);
  if (typeof value === 'string') return [{ role: 'user', content: value }];
  if (isObject(value) && Array.isArray(value.messages)) return messagesOf(value.messages);
  if (isObject(value) && Array.isArray(value.choices))
    return value.choices
      .filter(isObject)
      .slice(0, 1)
      .flatMap(({ message }) => messagesOf([message]));
  const list = Array.isArray(value) ? value : [value];
  return list.filter(isObject).flatMap(({ message, ...each }) => messageOf(isObject(message) ? message : each));
}

function messageOf(value: Readonly<Record<string, unknown>>): Message[] {
  const role = roleOf(value.role);
  if (role === undefined) return [];
  const parts = partsOf(value.parts ?? value.content);
  const results = parts.flatMap(resultOf);
  if (results.length > 0) return results;
  const content = parts.map(textOf).join('');
  if (role === 'tool') {
    const id = value.tool_call_id ?? value.toolCallId ?? value.id;
    const name = typeof value.name === 'string' ? { name: value.name } : {};
    return [{ role, content, ...(typeof id === 'string' ? { toolCallId: id } : {}), ...name }];
  }
  const listed = [value.tool_calls, value.toolCalls].find(Array.isArray) ?? [];
  const toolCalls = [...parts, ...listed].flatMap((part, i) => callOf(part, i));
  return [{ role, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) }];
}

const roleOf = (role: unknown): Message['role'] | undefined =>
  role === 'developer' ? 'system' : (['system', 'user', 'assistant', 'tool'] as const).find((each) => each === role);

const partsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

/** The text of a part; empty for reasoning, calls and media. */
function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  if (!isObject(part) || (part.type !== undefined && part.type !== 'text' && part.type !== 'output_text')) return '';
  return String(part.text ?? part.content ?? '');
}

function callOf(part: unknown, index: number): ToolCall[] {
  if (!isObject(part)) return [];
  const called = isObject(part.function) ? part.function : part;
  const name = called.toolName ?? called.name;
  const isCall =
    called !== part || part.type === 'tool_call' || part.type === 'tool-call' || part.toolName !== undefined;
  if (!isCall || typeof name !== 'string') return [];
  const values = called.arguments ?? called.input ?? called.args ?? {};
  const id = part.id ?? part.toolCallId ?? `call_${index}`;
  return [{ id: String(id), name, arguments: typeof values === 'string' ? values : JSON.stringify(values) }];
}

/** The result of a tool as a message. */
function resultOf(part: unknown): Message[] {
  if (!isObject(part) || (part.type !== 'tool_call_response' && part.type !== 'tool-result')) return [];
  const output = part.response ?? part.output ?? part.result;
  const content = isObject(output) && output.value !== undefined ? output.value : output;
  const [id, name] = [part.id ?? part.toolCallId, part.toolName ?? part.name];
  return [
    {
      role: 'tool',
      content: typeof content === 'string' ? content : JSON.stringify(content ?? ''),
      ...(typeof id === 'string' ? { toolCallId: id } : {}),
      ...(typeof name === 'string' ? { name } : {}),
    },
  ];
}

/** The tools of an attribute, as OpenTelemetry, AI SDK and OpenAI write them; undefined if there are none. */
export function toolsOf(attribute: unknown): Tool[] | undefined {
  const value = jsonOf(attribute);
  const tools = (Array.isArray(value) ? value : []).map(jsonOf).flatMap((each): Tool[] => {
    const tool = isObject(each) && isObject(each.function) ? each.function : each;
    if (!isObject(tool) || typeof tool.name !== 'string') return [];
    const schema = tool.parameters ?? tool.inputSchema ?? tool.input_schema ?? { type: 'object', properties: {} };
    if (!isObject(schema)) return [];
    const { $schema: _, ...parameters } = schema;
    const described = typeof tool.description === 'string' ? { description: tool.description } : {};
    return [{ name: tool.name, ...described, parameters }];
  });
  return tools.length === 0 ? undefined : tools;
}
