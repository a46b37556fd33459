/** Messages, answers and tools of traces in the form of drmas, whichever of the usual forms they have. */
import { exactJson, isObject, NumberText } from '@drmas/engine/errors';
import type { Message, Tool, ToolCall } from '@drmas/engine/nouns';
import { jsonOf } from './span-fields.js';
import type { UnreadReason } from './unread.js';

type JsonFields = Readonly<Record<string, unknown>>;
export type Report = (reason: UnreadReason) => void;

/** A text that begins as messages do and is no JSON, such as one that a limit of the tracer cut off. */
const isBroken = (value: unknown) =>
  typeof value === 'string' && /^\s*(?:\[\s*)?\{/.test(value) && typeof jsonOf(value) === 'string';

/** Whether a list holds one conversation, as LangChain writes what its models read. */
const isNested = (value: readonly unknown[]): value is readonly [readonly unknown[]] =>
  value.length === 1 && Array.isArray(value[0]);

const isMessage = (value: unknown) => isObject(value) && (typeof value.role === 'string' || isObject(value.message));

/** The value of JSON. Messages may have been written as JSON of their JSON; another such text is a text. */
function contentOf(attribute: unknown): unknown {
  const value = jsonOf(attribute);
  const inner = value === attribute ? value : jsonOf(value);
  const [first]: readonly unknown[] = Array.isArray(inner) ? inner : [inner];
  return isMessage(first) ? inner : value;
}

export function conversationOf(attribute: unknown, report: Report): Message[] {
  const value = contentOf(attribute);
  if (isBroken(attribute)) report('cut');
  else if (typeof value === 'string') return value === '' ? [] : [{ role: 'user', content: value }];
  else if (Array.isArray(value)) return messagesOf(isNested(value) ? value[0] : value, report);
  else if (isObject(value)) {
    const { messages, input, prompt, contents, system, instructions, systemInstruction } = value;
    const list = [messages, input, prompt, contents].find((each) => each !== undefined && each !== null);
    if (list === undefined) return messagesOf([value], report);
    const first = [system, instructions, systemInstruction].map((each) => instructionsOf(each)).find(Boolean);
    const read = conversationOf(list, report);
    return first === undefined ? read : [{ role: 'system', content: first }, ...read];
  }
  return [];
}

export function answerOf(attribute: unknown, report: Report): Message | undefined {
  const value = contentOf(attribute);
  if (isBroken(attribute)) report('cut');
  if (isBroken(attribute) || value === undefined || value === null || value === 'null') return undefined;
  const answers = answersIn(attribute, value);
  const isOfChoices = answers.some(isChoice);
  reportEnd(answers[0], report);
  // A reply of OpenAI's Responses names its end beside its items.
  if (isObject(value) && Array.isArray(value.output)) reportEnd(value.status, report);
  const [answer, ...more] = joined(messagesOf(isOfChoices ? answers.slice(0, 1) : answers, report));
  if (more.length > 0 || (isOfChoices && answers.length > 1)) report('choice');
  return answer?.role === 'assistant' && (answer.content !== '' || answer.toolCalls !== undefined) ? answer : undefined;
}

/** Why an answer ended that its model had not ended. */
const ENDS: readonly (readonly [UnreadReason, RegExp])[] = [
  ['unfinished', /length|^max|_limit|exceeded|incomplete|truncated|pause_turn/i],
  [
    'filtered',
    /filter|safety|error|fail|refus|recitation|blocklist|prohibited|spii|language|malformed|unexpected|too_many|guardrail|cancel|abort/i,
  ],
];

const END_FIELDS = ['finish_reason', 'finishReason', 'stop_reason', 'stopReason', 'done_reason'];
const AROUND_ENDS = ['response_metadata', 'generation_info', 'message', 'kwargs'];

/** Reports if an answer, or the first of a list of reasons, says that the model had not ended it. */
export function reportEnd(value: unknown, report: Report): void {
  const given = jsonOf(value);
  const read = Array.isArray(given) ? given[0] : given;
  if (typeof read === 'string') for (const [reason, pattern] of ENDS) if (pattern.test(read)) report(reason);
  if (!isObject(read)) return;
  for (const name of END_FIELDS) reportEnd(read[name], report);
  for (const name of AROUND_ENDS) if (isObject(read[name])) reportEnd(read[name], report);
}

/** The messages in an output: a text, a message, a list of choices, or the reply of an interface with one of these. */
function answersIn(attribute: unknown, value: unknown): readonly unknown[] {
  const plain = (content: unknown) => [{ role: 'assistant', content }];
  if (Array.isArray(value))
    return value.map((each) => (typeof each !== 'string' || isMessage(jsonOf(each)) ? jsonOf(each) : plain(each)[0]));
  if (!isObject(value) || value instanceof NumberText) return plain(typeof value === 'string' ? value : attribute);
  if (Array.isArray(value.generations)) return value.generations.flat().map(generationOf);
  for (const list of [value.choices, value.output, value.messages]) if (Array.isArray(list)) return list;
  if (Array.isArray(value.candidates))
    return value.candidates.map((each) => (isObject(each) ? { ...each, message: each.content } : each));
  if (isObject(value.message) || value.role !== undefined || isItem(value)) return [value];
  const hasContent = ['content', 'parts', 'tool_calls', 'toolCalls', 'text'].some((name) => value[name] !== undefined);
  // Another object is structured output.
  return hasContent
    ? [{ role: 'assistant', ...value }]
    : plain(typeof attribute === 'string' ? attribute : exactJson(value));
}

/** One of the answers that LangChain writes: a message, or a text. */
const generationOf = (each: unknown) =>
  isObject(each)
    ? { ...each, index: 0, message: isObject(each.message) ? each.message : { role: 'assistant', content: each.text } }
    : each;

const isChoice = (value: unknown) =>
  isObject(value) && ['index', 'finish_reason', 'finishReason'].some((name) => value[name] !== undefined);

/** Answers of which one is in several messages, as OpenAI's Responses have them: a text, then calls. */
function joined(messages: readonly Message[]): Message[] {
  const answers: Message[] = [];
  for (const message of messages) {
    const last = answers.at(-1);
    const isEmpty = last !== undefined && last.content === '' && last.toolCalls === undefined;
    if (last !== undefined && last.role === message.role && (isEmpty || message.content === '')) {
      const toolCalls = [...(last.toolCalls ?? []), ...(message.toolCalls ?? [])];
      const content = `${last.content}${message.content}`;
      answers[answers.length - 1] = { ...last, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
    } else answers.push(message);
  }
  return answers;
}

/** A system prompt: a text, or its parts. */
export function instructionsOf(attribute: unknown): string {
  const value = jsonOf(attribute);
  if (typeof value === 'string') return value;
  const parts = isObject(value) && Array.isArray(value.parts) ? value.parts : value;
  return (Array.isArray(parts) ? parts : [])
    .map((part) => (isObject(part) ? String(part.content ?? part.text ?? '') : String(part)))
    .join('\n');
}

function messagesOf(list: readonly unknown[], report: Report): Message[] {
  const messages: Message[] = [];
  for (const each of list) {
    const value = serialized(withRole(jsonOf(each)));
    if (!isObject(value)) {
      report('part');
      continue;
    }
    const last = messages.at(-1);
    const read = isItem(value) ? itemOf(value, report) : messageOf(value, report);
    const [{ toolCalls = [] } = {}] = read;
    // Items of OpenAI's Responses: the calls of one answer follow each other.
    if (value.type === 'function_call' && last?.role === 'assistant')
      messages[messages.length - 1] = { ...last, toolCalls: [...(last.toolCalls ?? []), ...toolCalls] };
    else messages.push(...read);
  }
  return messages;
}

/** The message of a choice. The choice may have its role. */
const withRole = (value: unknown): unknown =>
  isObject(value) && isObject(value.message)
    ? { ...(value.role === undefined ? {} : { role: value.role }), ...value.message }
    : value;

function serialized(value: unknown): unknown {
  if (!isObject(value) || value.lc === undefined || !isObject(value.kwargs)) return value;
  return { type: Array.isArray(value.id) ? value.id.at(-1) : undefined, ...value.kwargs };
}

const ITEMS = ['function_call', 'function_call_output', 'reasoning'];

/** Whether an entry of a conversation is an item of OpenAI's Responses that has no role. */
const isItem = ({ type, role }: JsonFields) => role === undefined && ITEMS.includes(String(type));

function itemOf(value: JsonFields, report: Report): Message[] {
  const part = partOf(value, report);
  if ('call' in part) return [{ role: 'assistant', content: '', toolCalls: [part.call] }];
  return 'result' in part ? [part.result] : [];
}

const ROLES: Readonly<Record<string, Message['role']>> = {
  ...{ system: 'system', developer: 'system', user: 'user', human: 'user' },
  ...{ assistant: 'assistant', model: 'assistant', ai: 'assistant', tool: 'tool', function: 'tool' },
};

function messageOf(value: JsonFields, report: Report): Message[] {
  const name = String(value.role ?? value.type ?? '')
    .replace(/Message(?:Chunk)?$/, '')
    .toLowerCase();
  const role = Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
  if (role === undefined) {
    report(value.role !== undefined ? 'role' : value.type !== undefined ? 'part' : 'input');
    return [];
  }
  const given = value.parts ?? value.content ?? value.contents ?? value.text;
  const isData = isObject(given) && given.type === undefined && typeof given.text !== 'string';
  const parts = isData ? [{ text: exactJson(given) }] : listOf(given).map((part) => partOf(part, report));
  const content = parts.map((part) => ('text' in part ? part.text : '')).join('');
  const results = parts.flatMap((part) => ('result' in part ? [part.result] : []));
  if (role === 'tool' && results.length === 0) {
    const id = value.tool_call_id ?? value.toolCallId ?? value.id;
    const named = typeof value.name === 'string' ? { name: value.name } : {};
    return [{ role, content, ...(typeof id === 'string' ? { toolCallId: id } : {}), ...named }];
  }
  const listed = [value.tool_calls, value.toolCalls, value.function_call].flatMap((calls) =>
    calls === undefined || calls === null ? [] : listOf(jsonOf(calls)),
  );
  const calls = [...parts, ...listed.map((call) => calledBy(call, report))].flatMap((part) =>
    'call' in part ? [part.call] : [],
  );
  const toolCalls = withoutRepeated(calls).map((call, i) => (call.id === '' ? { ...call, id: `call_${i}` } : call));
  const isAlone = content === '' && toolCalls.length === 0 && results.length > 0;
  const message = { role, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) };
  // Results stand before what a user says to them, and after the calls of an assistant.
  if (isAlone) return results;
  return role === 'assistant' ? [message, ...results] : [...results, message];
}

/** LangChain writes a call of Anthropic's models among the parts and among the calls. */
const withoutRepeated = (calls: readonly ToolCall[]) =>
  calls.filter(({ id }, i) => id === '' || calls.findIndex((other) => other.id === id) === i);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

type Part = { readonly text: string } | { readonly call: ToolCall } | { readonly result: Message };

const TEXTS = ['text', 'output_text', 'input_text', 'refusal'];
const CALLS = ['tool_call', 'tool-call', 'tool_use', 'function_call', 'function'];
const RESULTS = ['tool_call_response', 'tool-result', 'tool_result', 'function_call_output'];
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];
/** Parts that say nothing to a model. */
const SILENT = ['tool-approval-request', 'tool-approval-response', 'step-start', 'source', 'cache_point'];
const MEDIA = /^(?:input_|output_)?(?:image|audio|video|file|document|media|blob|uri)(?:[-_](?:url|data|id))?$/;
/** Fields of parts without a type, of Gemini and of Bedrock. */
const MEDIA_FIELDS = ['inlineData', 'inline_data', 'fileData', 'file_data', 'image', 'document', 'video'];

function partOf(part: unknown, report: Report): Part {
  if (part === null || part === undefined) return { text: '' };
  if (typeof part === 'string') return { text: part };
  if (!isObject(part) || part instanceof NumberText) return { text: exactJson(part) };
  if (isObject(part.message_content)) return partOf(part.message_content, report);
  const { type } = part;
  if (MEDIA.test(String(type)) || (type === undefined && MEDIA_FIELDS.some((name) => part[name] !== undefined))) {
    report('media');
    return { text: '' };
  }
  if (THOUGHTS.includes(String(type)) || part.thought === true || part.reasoningContent !== undefined) {
    report('reasoning');
    return { text: '' };
  }
  const result = resultOf(part, report);
  if (result !== undefined) return { result };
  if (CALLS.includes(String(type)) || isObject(part.functionCall ?? part.toolUse ?? part.function))
    return calledBy(part, report);
  const content = part.text ?? part.content ?? part.refusal;
  if ((type === undefined || TEXTS.includes(String(type))) && typeof content === 'string') return { text: content };
  if (!SILENT.includes(String(type))) report('part');
  return { text: '' };
}

function calledBy(part: unknown, report: Report): Part {
  const call = callOf(part);
  if (call === undefined) report('part');
  return call === undefined ? { text: '' } : { call };
}

function callOf(part: unknown): ToolCall | undefined {
  const whole = isObject(part) && isObject(part.tool_call) ? part.tool_call : part;
  if (!isObject(whole)) return undefined;
  const called = [whole.function, whole.functionCall, whole.toolUse].find(isObject) ?? whole;
  const name = called.toolName ?? called.name;
  if (typeof name !== 'string' || name === '') return undefined;
  const values = called.arguments ?? called.input ?? called.args ?? {};
  const ids = [whole.call_id, whole.id, whole.toolCallId, whole.tool_call_id, called.toolUseId, called.id];
  const id = ids.find((each) => each !== undefined && each !== null && each !== '') ?? '';
  return { id: String(id), name, arguments: argumentsText(values) };
}

/** The JSON of arguments, which some exporters have written as JSON of a text. */
function argumentsText(values: unknown): string {
  if (typeof values !== 'string') return exactJson(values);
  const inner = /^\s*"/.test(values) ? jsonOf(values) : values;
  return typeof inner === 'string' && inner.trim() !== '' ? inner : '{}';
}

function resultOf(part: JsonFields, report: Report): Message | undefined {
  const wrapped = [part.functionResponse, part.toolResult].find(isObject);
  if (wrapped === undefined && !RESULTS.includes(String(part.type))) return undefined;
  const whole = wrapped ?? part;
  const output = whole.response ?? whole.output ?? whole.result ?? whole.content;
  const ids = [whole.call_id, whole.id, whole.toolCallId, whole.tool_use_id, whole.toolUseId, whole.tool_call_id];
  const id = ids.find((each) => typeof each === 'string' && each !== '');
  const name = whole.toolName ?? whole.name;
  return {
    role: 'tool',
    content: resultText(output, report),
    ...(typeof id === 'string' ? { toolCallId: id } : {}),
    ...(typeof name === 'string' ? { name } : {}),
  };
}

function resultText(output: unknown, report: Report): string {
  if (typeof output === 'string') return output;
  if (Array.isArray(output) && output.length > 0 && output.every((part) => isObject(part) && isTyped(part)))
    return output.map((part) => textIn(part, report)).join('');
  if (!isObject(output)) return exactJson(output ?? '');
  const { type, value, reason } = output;
  if (type === 'execution-denied') return typeof reason === 'string' ? reason : 'The call was denied.';
  if (type === 'content' && Array.isArray(value)) return value.map((part) => textIn(part, report)).join('');
  if (value !== undefined) return typeof value === 'string' ? value : exactJson(value);
  return exactJson(output);
}

const isTyped = ({ type }: JsonFields) => TEXTS.includes(String(type)) || MEDIA.test(String(type));

function textIn(part: unknown, report: Report): string {
  const read = partOf(part, report);
  if (!('text' in read)) report('part');
  return 'text' in read ? read.text : '';
}

/** The tools of an attribute, as OpenTelemetry, AI SDK, OpenAI, OpenLLMetry and OpenInference write them. */
export function toolsOf(attribute: unknown, report: Report): Tool[] | undefined {
  const value = jsonOf(attribute);
  const tools = (Array.isArray(value) ? value : []).flatMap((written): Tool[] => {
    const each = jsonOf(written);
    const schemaText = isObject(each) && isObject(each.tool) ? each.tool.json_schema : undefined;
    const whole = jsonOf(schemaText ?? each);
    const tool = isObject(whole) && isObject(whole.function) ? whole.function : whole;
    const schema = isObject(tool)
      ? jsonOf(
          tool.parameters ??
            tool.inputSchema ??
            tool.input_schema ??
            tool.arguments ?? { type: 'object', properties: {} },
        )
      : undefined;
    if (!isObject(tool) || typeof tool.name !== 'string' || !isObject(schema)) {
      report('tool');
      return [];
    }
    const { $schema: _, ...parameters } = schema;
    const described = typeof tool.description === 'string' ? { description: tool.description } : {};
    return [{ name: tool.name, ...described, parameters }];
  });
  return tools.length === 0 ? undefined : tools;
}
