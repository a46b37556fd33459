import type { Generation, PlayableHandle, Utterance } from '@drmas/engine/contract';
import { ArgumentError, fitsJsonSchema, given, isObject } from '@drmas/engine/errors';
import { argumentsText, type JsonSchema, type Tool, type ToolChoice, type Turn } from '@drmas/engine/nouns';
import {
  callsIn,
  endsOfThinking,
  firstMark,
  isCallOf,
  opensThinking,
  type TextWithCalls,
  THINKING,
  type ToolFormatName,
  withoutThinking,
} from '@drmas/engine/tool-calls';
import type { Agent } from '../team/agent.js';
import type { Penalised } from '../team/parsers.js';
import { EpisodeFailure } from './episode-failure.js';
import { withoutStop } from './prompts/exact-ids.js';
import type { AgentSettings, EndpointSettings } from './rollout-context.js';

export interface Question {
  readonly id: string;
  readonly request: Pick<Turn, 'prompt' | 'tools'>;
  /** The ids at the prompt's end that already belong to the response. Empty unless a tool call is required. */
  readonly opening: readonly number[];
  readonly toolChoice: ToolChoice | undefined;
  readonly responseSchema: JsonSchema | undefined;
}

export interface AgentSpeaker {
  readonly name: string;
  readonly agent: Agent;
  readonly settings: AgentSettings;
  readonly policy: PlayableHandle | EndpointSettings;
}

type Answered =
  | 'policyVersion'
  | 'response'
  | 'logprobs'
  | 'text'
  | 'endpoint'
  | 'finishReason'
  | 'content'
  | 'reasoning'
  | 'toolCalls'
  | 'value'
  | 'valid'
  | 'penalty';

/** The fields of a turn that the answer determines, and the error of the agent's parser if it threw. */
export function readAnswer(
  speaker: AgentSpeaker,
  question: Question,
  answer: Generation | Utterance,
): { readonly answered: Pick<Turn, Answered>; readonly thrown?: EpisodeFailure } {
  const { finishReason } = answer;
  const response = responseOf(speaker, question, answer);
  const { text } = response;
  const opened = !('text' in answer) && isThinking(speaker, question);
  const thought = 'text' in answer ? contentOf(answer) : withoutThinking(text, opened);
  const { reasoning, rest } = thought;
  const read = callsOf(speaker, question, answer, rest);
  const calls = read?.calls ?? [];
  const content = read?.content ?? rest;
  const { responseSchema: schema } = question;
  const unfit = read === undefined || (schema !== undefined && !fitsJsonSchema(content, schema));
  // Parsers know thinking by its tags.
  const isOpen = opened && firstMark(text, endsOfThinking(text)) === undefined;
  const written = isOpen ? THINKING[0][0] + text : text;
  const { value, penalised, thrown }: Parsed = unfit || calls.length > 0 ? none : parsed(speaker, written);
  const valid = calls.length > 0 || (value !== undefined && !penalised);
  const answered = {
    ...response,
    finishReason,
    ...(content === text ? {} : { content }),
    ...given({ reasoning }),
    ...(calls.length === 0 ? {} : { toolCalls: calls.map((call, n) => ({ id: `call_${question.id}_${n}`, ...call })) }),
    value,
    valid,
    penalty: valid ? 0 : speaker.settings.invalidPenalty,
  };
  return thrown === undefined ? { answered } : { answered, thrown };
}

const isThinking = ({ policy }: AgentSpeaker, { request: { prompt }, opening }: Question): boolean =>
  'tokenizer' in policy && opensThinking(policy.tokenizer, prompt, prompt.length - opening.length);

const contentOf = ({ text, reasoning }: Utterance) =>
  reasoning === undefined ? withoutThinking(text) : { reasoning, rest: text };

/** The content and calls of an answer; `undefined` if it breaks the call's tool choice. */
function callsOf(
  { agent, policy }: AgentSpeaker,
  { request: { tools = [] }, toolChoice = 'auto' }: Question,
  answer: Generation | Utterance,
  text: string,
): TextWithCalls | undefined {
  if (tools.length === 0 || toolChoice === 'none') return { content: text, calls: [] };
  const read = 'endpoint' in policy ? callsOfServer(answer, text, tools) : callsIn(text, formatOf(agent), tools);
  const mustCall = toolChoice !== 'auto';
  return read === undefined || (mustCall && read.calls.length === 0) ? undefined : read;
}

function callsOfServer(answer: Generation | Utterance, content: string, tools: readonly Tool[]) {
  const calls = ('text' in answer ? answer.toolCalls : undefined) ?? [];
  const written = calls.map(({ name, arguments: text }) => ({ name, arguments: argumentsText(text) }));
  return written.every((call) => isCallOf(call, tools)) ? { content, calls: written } : undefined;
}

function formatOf({ tools }: Agent): ToolFormatName {
  if (tools === undefined) throw new ArgumentError('an agent without a format was offered tools');
  return tools;
}

interface Parsed {
  readonly value: unknown;
  readonly penalised: boolean;
  readonly thrown?: EpisodeFailure;
}

const none: Parsed = { value: undefined, penalised: false };

function parsed({ name, agent }: AgentSpeaker, text: string): Parsed {
  try {
    const value: unknown = agent.parse(text);
    if (isObject(value) && typeof value.then === 'function') {
      Promise.resolve(value).catch(() => {}); // nothing awaits it
      throw new ArgumentError('its parser returned a promise: a parser must not be async; `await` in `play`');
    }
    if (isPenalised(value)) return isNoValue(value.value) ? none : value;
    return isNoValue(value) || value === null ? none : { value, penalised: false };
  } catch (error) {
    return { ...none, thrown: EpisodeFailure.of('error', error, name) };
  }
}

/** Whether a parser found no value: Number(text) of a text that is no number, new Date(text) of one that is no date. */
const isNoValue = (value: unknown): boolean =>
  value === undefined || Number.isNaN(value instanceof Date ? value.getTime() : value);

/** A value with the word whether it is penalised, which may be alone: then there is no value. */
const isPenalised = (value: unknown): value is Penalised<unknown> =>
  isObject(value) && typeof value.penalised === 'boolean' && ('value' in value || Object.keys(value).length === 1);

/** Ids, log-probs and text, or an endpoint's text and counts. */
function responseOf(
  { policy }: AgentSpeaker,
  { opening }: Question,
  answer: Generation | Utterance,
): Pick<Turn, 'policyVersion' | 'response' | 'logprobs' | 'text' | 'endpoint'> {
  if ('text' in answer) {
    const { text, promptTokens, responseTokens, providerData } = answer;
    const endpoint = given({ promptTokens, responseTokens, providerData });
    return { policyVersion: 0, response: [], logprobs: [], text, endpoint };
  }
  if (!('tokenizer' in policy)) throw new ArgumentError('an endpoint returned token ids, which only policies sample');
  const { tokens, logprobs, finishReason, policyVersion } = answer;
  const text = policy.tokenizer.decode([...opening, ...withoutStop(tokens, finishReason, policy.tokenizer)]);
  return { policyVersion, response: tokens, logprobs, text };
}
