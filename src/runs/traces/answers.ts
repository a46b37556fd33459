/** The answers of models in traces, and why they ended. */
import { exactJson, isObject, NumberText } from '@drmas/engine/errors';
import type { Message, ToolCall } from '@drmas/engine/nouns';
import { contentOf, isItem, isMessage, messagesOf, type Report, roleOf, whyUnread } from './messages.js';
import { jsonOf, wordOf } from './span-fields.js';
import type { UnreadReason } from './unread.js';

export function answerOf(attribute: unknown, report: Report): Message | undefined {
  const value = contentOf(attribute);
  const reason = whyUnread(attribute);
  if (reason !== undefined) report(reason);
  if (reason !== undefined || value === undefined || value === null || value === 'null') return undefined;
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

/** Reports the end of the first answer in the reply of an interface. A text is no reply. */
export function reportEndOfReply(attribute: unknown, report: Report): void {
  const reply = jsonOf(attribute);
  if (!isObject(reply)) return;
  const answers = [reply.choices, reply.candidates, reply.generations].find(Array.isArray);
  reportEnd(answers === undefined ? reply : answers.flat()[0], report);
  if (Array.isArray(reply.output)) reportEnd(reply.status, report);
}

/** The messages in an output: a text, a message, a list of choices, or the reply of an interface with one of these. */
function answersIn(attribute: unknown, value: unknown): readonly unknown[] {
  const plain = (content: unknown) => [{ role: 'assistant', content }];
  const written = () => plain(typeof attribute === 'string' ? attribute : exactJson(value));
  if (Array.isArray(value)) {
    const list = value.map((each) => (typeof each !== 'string' || isMessage(jsonOf(each)) ? jsonOf(each) : each));
    if (list.length > 0 && list.every(isData)) return written();
    if (list.some(isBlock)) return plain(list);
    return list.map((each) => (typeof each === 'string' ? plain(each)[0] : each));
  }
  if (!isObject(value) || value instanceof NumberText) return plain(typeof value === 'string' ? value : attribute);
  if (Array.isArray(value.generations)) return value.generations.flat().map(generationOf);
  for (const list of [value.choices, value.output, value.messages])
    if (Array.isArray(list) && list.some(isObject))
      return list.map((each) => (isCompletion(each) ? generationOf(each) : each));
  if (Array.isArray(value.candidates))
    return value.candidates.map((each) => (isObject(each) ? { ...each, message: each.content } : each));
  // A reply of Google's ADK.
  if (isObject(value.content) && Array.isArray(value.content.parts)) return [{ ...value, message: value.content }];
  // A reply of Bedrock.
  if (isObject(value.output) && isObject(value.output.message)) return [{ ...value, message: value.output.message }];
  if (
    isObject(value.message) ||
    (value.role !== undefined && (roleOf(value) !== undefined || hasContent(value))) ||
    isItem(value)
  )
    return [value];
  return hasContent(value) && Object.keys(value).every((name) => REPLY.has(name))
    ? [{ role: 'assistant', ...value }]
    : written(); // another object is structured output
}

const BLOCKS = ['text', 'tool_use', 'thinking', 'redacted_thinking', 'tool-call', 'output_text'];

/** A part of an answer whose message is not written, as Anthropic's clients return it. */
const isBlock = (value: unknown) => isObject(value) && value.role === undefined && BLOCKS.includes(wordOf(value.type));

/** Whether an entry of a list is structured output: it has no field of a message or a choice. */
const isData = (value: unknown) =>
  isObject(value) &&
  !hasContent(value) &&
  ['role', 'type', 'message', 'delta', 'lc', 'choices'].every((name) => value[name] === undefined);

const hasContent = (value: Readonly<Record<string, unknown>>) =>
  ['content', 'parts', 'tool_calls', 'toolCalls', 'text', 'refusal'].some((name) => value[name] !== undefined);

/** The fields of an answer without a role, in replies of interfaces; an object with others is structured output. */
const REPLY = new Set([
  ...['content', 'parts', 'text', 'tool_calls', 'toolCalls', 'toolResults', 'refusal', 'reasoning', 'reasoningText'],
  ...['id', 'name', 'type', 'model', 'object', 'index', 'status', 'usage', 'totalUsage', 'logprobs', 'annotations'],
  ...['finish_reason', 'finishReason', 'rawFinishReason', 'stop_reason', 'stopReason', 'stop_sequence', 'done_reason'],
  ...['additional_kwargs', 'response_metadata', 'usage_metadata', 'invalid_tool_calls', 'example', 'generation_info'],
  ...['warnings', 'request', 'response', 'steps', 'files', 'sources', 'providerMetadata', 'metadata', 'isContinued'],
]);

/** A choice of OpenAI's text completions. */
const isCompletion = (each: unknown) =>
  isObject(each) && each.index !== undefined && each.message === undefined && typeof each.text === 'string';

/** One of the answers that LangChain writes: a message, or a text. */
const generationOf = (each: unknown) =>
  isObject(each)
    ? { ...each, index: 0, message: isObject(each.message) ? each.message : { role: 'assistant', content: each.text } }
    : each;

const isChoice = (value: unknown) =>
  isObject(value) && ['index', 'finish_reason', 'finishReason'].some((name) => value[name] !== undefined);

/** Joins an answer that several messages hold: OpenAI's Responses write a text, then calls. */
function joined(messages: readonly Message[]): Message[] {
  const answers: { readonly first: Message; content: string; readonly calls: ToolCall[] }[] = [];
  for (const message of messages) {
    const { role, content, toolCalls = [] } = message;
    const last = answers.at(-1);
    const isEmpty = last?.content === '' && last.calls.length === 0;
    if (last !== undefined && last.first.role === role && (isEmpty || content === '')) {
      last.content += content;
      for (const call of toolCalls) last.calls.push(call);
    } else answers.push({ first: message, content, calls: [...toolCalls] });
  }
  return answers.map(({ first, content, calls }) => {
    return { ...first, content, ...(calls.length === 0 ? {} : { toolCalls: calls }) };
  });
}
