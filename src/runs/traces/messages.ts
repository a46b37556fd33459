/** Messages of traces in the form of drmas, whichever of the usual forms they have. */
import { exactJson, isObject, NumberText, nestsTooDeep } from '@drmas/engine/errors';
import type { Message, ToolCall } from '@drmas/engine/nouns';
import { fieldOf, isEmpty, type JsonFields, jsonOf, wordOf } from './span-fields.js';
import type { UnreadReason } from './unread.js';

export type Report = (reason: UnreadReason) => void;

/** Why a text that begins as messages do is not read: it is no JSON (a limit may have cut it off), or too deep. */
export function whyUnread(value: unknown): 'cut' | 'deep' | undefined {
  if (typeof value !== 'string' || !/^\s*(?:\[\s*)*\{/.test(value) || typeof jsonOf(value) !== 'string')
    return undefined;
  return nestsTooDeep(value) ? 'deep' : 'cut';
}

/** Whether a list holds one conversation, as LangChain writes what its models read. */
const isNested = (value: readonly unknown[]): value is readonly [readonly unknown[]] =>
  value.length === 1 && Array.isArray(value[0]);

export const isMessage = (value: unknown) =>
  isObject(value) && (typeof value.role === 'string' || isObject(value.message));

/** The value of JSON. Messages may have been written as JSON of their JSON; another such text is a text. */
export function contentOf(attribute: unknown): unknown {
  const value = jsonOf(attribute);
  const inner = value === attribute ? value : jsonOf(value);
  const [first]: readonly unknown[] = Array.isArray(inner) ? inner : [inner];
  return isMessage(first) ? inner : value;
}

/** The most objects around the messages of an input, such as the body of a request in the arguments of a function. */
const MOST_AROUND = 20;

export function conversationOf(attribute: unknown, report: Report, around = 0): Message[] {
  const value = contentOf(attribute);
  const reason = around > MOST_AROUND ? 'deep' : whyUnread(attribute);
  if (reason !== undefined) report(reason);
  else if (typeof value === 'string') return value === '' ? [] : [{ role: 'user', content: value }];
  else if (Array.isArray(value)) return messagesOf(isNested(value) ? value[0] : value, report);
  else if (isObject(value)) {
    const { messages, input, prompt, contents, role, type } = value;
    const list = [messages, input, prompt, contents].find((each) => each !== undefined && each !== null);
    if (list === undefined && (role ?? type) !== undefined) return messagesOf([value], report);
    if (list === undefined) report('input');
    const config = isObject(value.config) ? value.config : {};
    const first = [value, config]
      .flatMap((fields) => [fields.system, fields.instructions, fieldOf(fields, 'systemInstruction')])
      .map((each) => (typeof each === 'string' ? each : instructionsOf(each, report)))
      .find(Boolean);
    const read = conversationOf(list, report, around + 1);
    return first === undefined ? read : [{ role: 'system', content: first }, ...read];
  }
  return [];
}

/** A system prompt: a text, or its parts, which may be written as JSON. A prompt may be other JSON. */
export function instructionsOf(attribute: unknown, report: Report): string {
  const value = jsonOf(attribute);
  const parts = isObject(value) && Array.isArray(value.parts) ? value.parts : value;
  if (typeof attribute === 'string' && !Array.isArray(parts)) return typeof value === 'string' ? value : attribute;
  return isEmpty(parts)
    ? ''
    : asList(parts)
        .map((part) => textIn(part, report))
        .join('\n');
}

export function messagesOf(list: readonly unknown[], report: Report): Message[] {
  const messages: Message[] = [];
  const callsOf = new Map<Message, ToolCall[]>();
  let speaker = '';
  for (const each of list) {
    const value = serialized(withRole(jsonOf(each)));
    if (!isObject(value)) {
      report('part');
      continue;
    }
    const last = messages.at(-1);
    const read = isItem(value) ? itemOf(value, report) : messageOf(value, report);
    // OpenAI's Responses: the text of an answer and its calls follow each other, as items or as messages of a tracer.
    const [first, ...more] = read;
    const named = isItem(value) ? '' : wordOf(value.name);
    const isOther = named !== '' && speaker !== '' && named !== speaker;
    speaker = named;
    const isCalls = first?.role === 'assistant' && first.content === '' && first.toolCalls;
    if (last?.role === 'assistant' && isCalls && !isOther) {
      const calls = callsOf.get(last) ?? [...(last.toolCalls ?? [])];
      calls.push(...isCalls);
      callsOf.set(last, calls);
      messages.push(...more);
    } else for (const message of read) messages.push(message);
  }
  return messages.map((message) => {
    const toolCalls = callsOf.get(message);
    return toolCalls === undefined ? message : { ...message, toolCalls };
  });
}

/** The message of a choice. The choice may have its role. */
const withRole = (value: unknown): unknown =>
  isObject(value) && isObject(value.message)
    ? { ...(value.role === undefined ? {} : { role: value.role }), ...value.message }
    : value;

/** A message of LangChain, which has several ways to write one. */
function serialized(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { data, kwargs, ...fields } = value;
  if (isObject(data) && typeof fields.type === 'string' && fields.content === undefined) return { ...fields, ...data };
  if (fields.lc === undefined || !isObject(kwargs)) return value;
  return { type: Array.isArray(fields.id) ? fields.id.at(-1) : undefined, ...kwargs };
}

const ITEMS = ['function_call', 'function_call_output', 'reasoning'];

/** Whether an entry of a conversation is an item of OpenAI's Responses that has no role. */
export const isItem = ({ type, role }: JsonFields) => role === undefined && ITEMS.includes(wordOf(type));

function itemOf(value: JsonFields, report: Report): Message[] {
  const part = partOf(value, report);
  if ('call' in part) return [{ role: 'assistant', content: '', toolCalls: [part.call] }];
  return 'result' in part ? [part.result] : [];
}

const ROLES: Readonly<Record<string, Message['role']>> = {
  ...{ system: 'system', developer: 'system', user: 'user', human: 'user' },
  ...{ assistant: 'assistant', model: 'assistant', ai: 'assistant', tool: 'tool', function: 'tool' },
};

export function roleOf({ role, type }: JsonFields): Message['role'] | undefined {
  const name = wordOf(role ?? type)
    .replace(/Message(?:Chunk)?$/, '')
    .toLowerCase();
  return Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
}

function messageOf(value: JsonFields, report: Report): Message[] {
  const role = roleOf(value);
  if (role === undefined) {
    report(value.role !== undefined ? 'role' : Object.keys(value).length > 0 ? 'part' : 'input');
    return [];
  }
  if (MEDIA_OF_MESSAGES.some((field) => !isEmpty(value[field]))) report('media');
  if (UNREAD_FIELDS.some((field) => !isEmpty(value[field]))) report('part');
  if (THOUGHTS_OF_MESSAGES.some((field) => !isEmpty(value[field]))) report('reasoning');
  const contents = CONTENTS.map((field) => value[field]);
  const given = contents.find((each) => !isEmpty(each)) ?? contents.find((each) => each !== undefined);
  const isPlain = (part: unknown) => !isObject(part) || (part.type ?? part.text ?? part.toolResult) === undefined;
  const isData =
    role === 'tool' && Array.isArray(given)
      ? given.length > 0 && given.every((part) => isPlain(part) && !isOfGemini(part))
      : isObject(given) && given.type === undefined && typeof given.text !== 'string';
  const parts = isData ? [{ text: exactJson(given) }] : asList(given).map((part) => partOf(part, report));
  const texts = parts.flatMap((part) => ('text' in part ? [part.text] : []));
  const results = parts.flatMap((part) => ('result' in part ? [part.result] : []));
  if (role === 'tool' && results.length === 0) {
    const named = typeof value.name === 'string' ? { name: value.name } : {};
    return [{ role, content: texts.join(''), ...idOf([value.tool_call_id, value.toolCallId, value.id]), ...named }];
  }
  const listed = listedCalls(value).map((call) => calledBy(call, report));
  const calls = withoutRepeated(callsIn(parts), callsIn(listed));
  const kinds = texts.map((text) => (parts.length > 1 ? partIn(text, calls) : undefined));
  if (kinds.includes('thought')) report('reasoning');
  const content = texts.filter((_, i) => kinds[i] === undefined).join('');
  const toolCalls = calls.map((call, i) => (call.id === '' ? { ...call, id: `call_${i}` } : call));
  if (given === undefined && toolCalls.length === 0) report(Object.keys(value).length > 1 ? 'part' : 'input');
  const isAlone = content === '' && toolCalls.length === 0 && results.length > 0;
  const message = { role, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
  // Results stand before what a user says to them, and after the calls of an assistant.
  if (isAlone) return results;
  return role === 'assistant' ? [message, ...results] : [...results, message];
}

/** Fields of a message with its content. The first that is not empty counts. */
const CONTENTS = ['parts', 'content', 'contents', 'text', 'refusal'];
/** Fields beside the content with what agents cannot read, of Ollama, AI SDK and OpenAI. */
const MEDIA_OF_MESSAGES = ['images', 'audio', 'attachments', 'experimental_attachments'];
/** Fields beside the content with the reasoning of DeepSeek, OpenRouter, Ollama and others. */
const THOUGHTS_OF_MESSAGES = ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking'];
/** Fields with calls that are not read: AI SDK's with their results, and LangChain's whose arguments are no JSON. */
const UNREAD_FIELDS = ['toolInvocations', 'invalid_tool_calls'];

/** The calls beside the content. Older versions of LangChain and OpenInference write them otherwise. */
function listedCalls(value: JsonFields): readonly unknown[] {
  const { additional_kwargs: kwargs, function_call_name: name } = value;
  const lists = [value, isObject(kwargs) ? kwargs : {}].map((fields) =>
    [fields.tool_calls, fields.toolCalls, fields.function_call].flatMap((calls) =>
      calls === undefined || calls === null ? [] : asList(jsonOf(calls)),
    ),
  );
  const named = typeof name === 'string' ? [{ name, arguments: value.function_call_arguments_json }] : [];
  return [...lists, named].find((list) => list.length > 0) ?? [];
}

const callsIn = (parts: readonly Part[]) => parts.flatMap((part) => ('call' in part ? [part.call] : []));

/** LangChain writes a call of Anthropic's models among the parts (streamed: without arguments), and among the calls. */
function withoutRepeated(inParts: readonly ToolCall[], listed: readonly ToolCall[]): ToolCall[] {
  const ids = new Set(listed.map(({ id }) => id));
  return [...inParts.filter(({ id }) => id === '' || !ids.has(id)), ...listed];
}

/** The first of several ids that is one. */
function idOf(ids: readonly unknown[]): { readonly toolCallId?: string } {
  const id = ids.map(wordOf).find((each) => each !== '');
  return id === undefined ? {} : { toolCallId: id };
}

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

type Part = { readonly text: string } | { readonly call: ToolCall } | { readonly result: Message };

const TEXTS = ['text', 'output_text', 'input_text', 'refusal'];
const CALLS = ['tool_call', 'tool-call', 'tool_use', 'function_call', 'function'];
const RESULTS = ['tool_call_response', 'tool-result', 'tool_result', 'function_call_output'];
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];
/** Parts that say nothing to a model. */
const SILENT = ['tool-approval-request', 'tool-approval-response', 'step-start', 'source', 'cache_point'];
const MEDIA = /^(?:input_|output_)?(?:image|audio|video|file|document|media|blob|uri)(?:[-_](?:url|data|id))?$/;
/** Fields of parts without a type, of Gemini and of Bedrock. Gemini's package for Python writes null for the others. */
const MEDIA_FIELDS = ['inlineData', 'fileData', 'image', 'document', 'video'];
const hasField = (part: JsonFields, names: readonly string[]) => names.some((name) => !isEmpty(fieldOf(part, name)));
const isOfGemini = (part: unknown) =>
  isObject(part) && hasField(part, [...MEDIA_FIELDS, 'functionResponse', 'message_content']);

function partOf(part: unknown, report: Report): Part {
  if (part === null || part === undefined) return { text: '' };
  if (typeof part === 'string') return { text: part };
  if (!isObject(part) || part instanceof NumberText) return { text: exactJson(part) };
  // OpenInference writes a call among the parts beside its type.
  if (isObject(part.message_content)) return partOf({ ...part.message_content, tool_call: part.tool_call }, report);
  const { type } = part;
  if (MEDIA.test(wordOf(type)) || (type === undefined && hasField(part, MEDIA_FIELDS))) {
    report('media');
    return { text: '' };
  }
  if (THOUGHTS.includes(wordOf(type)) || part.thought === true || hasField(part, ['reasoningContent'])) {
    report('reasoning');
    return { text: '' };
  }
  const result = resultOf(part, report);
  if (result !== undefined) return { result };
  if (CALLS.includes(wordOf(type)) || [fieldOf(part, 'functionCall'), part.toolUse, part.function].some(isObject))
    return calledBy(part, report);
  const content = part.text ?? part.content ?? part.refusal;
  if ((type === undefined || TEXTS.includes(wordOf(type))) && typeof content === 'string') return { text: content };
  if (!SILENT.includes(wordOf(type)) && part.cachePoint === undefined) report('part');
  return { text: '' };
}

/** The part that a text repeats: OpenLLMetry writes LangChain's parts of other types as texts of their JSON. */
function partIn(text: string, calls: readonly ToolCall[]): 'call' | 'thought' | undefined {
  const part = jsonOf(text, /^\s*\{/);
  if (!isObject(part)) return undefined;
  const { type, id, call_id: callId = id } = part;
  const own = wordOf(callId);
  if (CALLS.includes(wordOf(type)) && own !== '' && calls.some((call) => call.id === own)) return 'call';
  const isThought = THOUGHTS.includes(wordOf(type)) && (typeof part.thinking === 'string' || /^rs_/.test(wordOf(id)));
  return isThought ? 'thought' : undefined;
}

function calledBy(part: unknown, report: Report): Part {
  const call = callOf(part);
  if (call === undefined) report('part');
  return call === undefined ? { text: '' } : { call };
}

function callOf(part: unknown): ToolCall | undefined {
  const whole = isObject(part) && isObject(part.tool_call) ? part.tool_call : part;
  if (!isObject(whole)) return undefined;
  const called = [whole.function, fieldOf(whole, 'functionCall'), whole.toolUse].find(isObject) ?? whole;
  const name = called.toolName ?? called.name;
  if (typeof name !== 'string' || name === '') return undefined;
  const values = called.arguments ?? called.input ?? called.args ?? {};
  const ids = [whole.call_id, whole.id, whole.toolCallId, whole.tool_call_id, called.toolUseId, called.id];
  return { id: idOf(ids).toolCallId ?? '', name, arguments: argumentsText(values) };
}

/** The JSON of arguments, which some exporters have written as JSON of a text. */
function argumentsText(values: unknown): string {
  if (typeof values !== 'string') return exactJson(values);
  const inner = /^\s*"/.test(values) ? jsonOf(values) : values;
  return typeof inner === 'string' && inner.trim() !== '' ? inner : '{}';
}

function resultOf(part: JsonFields, report: Report): Message | undefined {
  const wrapped = [fieldOf(part, 'functionResponse'), part.toolResult].find(isObject);
  if (wrapped === undefined && !RESULTS.includes(wordOf(part.type))) return undefined;
  const whole = wrapped ?? part;
  const output = whole.response ?? whole.output ?? whole.result ?? whole.content;
  const ids = [whole.call_id, whole.id, whole.toolCallId, whole.tool_use_id, whole.toolUseId, whole.tool_call_id];
  const name = whole.toolName ?? whole.name;
  return {
    role: 'tool',
    content:
      wrapped !== undefined && wrapped === part.toolResult ? bedrockText(output, report) : resultText(output, report),
    ...idOf(ids),
    ...(typeof name === 'string' ? { name } : {}),
  };
}

function resultText(output: unknown, report: Report): string {
  if (output === undefined || output === null) return '';
  if (typeof output === 'string') return output;
  if (Array.isArray(output) && output.length > 0 && output.every((part) => isObject(part) && isTyped(part)))
    return output.map((part) => textIn(part, report)).join('');
  if (!isObject(output)) return exactJson(output);
  const { type, value, reason } = output;
  if (type === 'execution-denied') return typeof reason === 'string' ? reason : 'The call was denied.';
  if (type === 'content' && Array.isArray(value)) return value.map((part) => textIn(part, report)).join('');
  const isWrapped = VALUES.includes(wordOf(type)) || Object.keys(output).join() === 'value';
  if (isWrapped && value !== undefined) return typeof value === 'string' ? value : exactJson(value);
  return exactJson(output);
}

/** The types of AI SDK's results. A model reads their field `value`. */
const VALUES = ['text', 'json', 'error-text', 'error-json'];

/** The result of a tool in parts of Bedrock, which are texts or JSON. */
const bedrockText = (output: unknown, report: Report): string =>
  Array.isArray(output)
    ? output.map((part) => (isObject(part) && 'json' in part ? exactJson(part.json) : textIn(part, report))).join('')
    : resultText(output, report);

const isTyped = ({ type }: JsonFields) => TEXTS.includes(wordOf(type)) || MEDIA.test(wordOf(type));

function textIn(part: unknown, report: Report): string {
  const read = partOf(part, report);
  if (!('text' in read)) report('part');
  return 'text' in read ? read.text : '';
}
