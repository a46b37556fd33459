import type { Generation, PlayableHandle } from '../contract/sampling.js';
import type { Utterance } from '../contract/text-backend.js';
import type { Turn } from '../core/episode.js';
import { ArgumentError } from '../core/errors.js';
import type { JsonSchema, Tool, ToolChoice } from '../core/message.js';
import { fitsJsonSchema } from '../core/validation/json-schema.js';
import { callsIn, isCallOf, type ToolFormatName } from '../model/tool-formats/index.js';
import { withoutThinking } from '../model/tool-formats/thinking.js';
import type { TextWithCalls } from '../model/tool-formats/tool-format.js';
import type { Agent } from '../teams/agent.js';
import { EpisodeFailure } from './episode-failure.js';
import { withoutStop } from './prompts/exact-ids.js';
import type { AgentSettings, EndpointSettings } from './rollout-context.js';

/** What a call asked for, by which its answer is read. */
export interface Question {
  /** The turn's id. */
  readonly id: string;
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly responseSchema?: JsonSchema;
  /** The ids at the prompt's end with which the response begins. */
  readonly opening: readonly number[];
}

/** An agent with what speaks for it. */
export interface Speaker {
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

/** The fields of a turn that the answer determines. */
export function readAnswer(speaker: Speaker, question: Question, answer: Generation | Utterance): Pick<Turn, Answered> {
  const { finishReason } = answer;
  const response = responseOf(speaker, question, answer);
  const { text } = response;
  const thought = 'text' in answer ? contentOf(answer) : withoutThinking(text);
  const { reasoning, rest } = thought;
  const read = callsOf(speaker, question, answer, rest);
  const calls = read?.calls ?? [];
  const content = read?.content ?? rest;
  const { responseSchema: schema } = question;
  const unfit = read === undefined || (schema !== undefined && !fitsJsonSchema(content, schema));
  const value = unfit || calls.length > 0 ? undefined : parsed(speaker, text);
  const valid = calls.length > 0 || value !== undefined;
  return {
    ...response,
    finishReason,
    ...(content === text ? {} : { content }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(calls.length === 0 ? {} : { toolCalls: calls.map((call, n) => ({ id: `call_${question.id}_${n}`, ...call })) }),
    value,
    valid,
    penalty: valid ? 0 : speaker.settings.invalidPenalty,
  };
}

const contentOf = ({ text, reasoning }: Utterance) =>
  reasoning === undefined ? withoutThinking(text) : { reasoning, rest: text };

/** The content and calls of an answer; `undefined` where it should have called a tool otherwise than it did. */
function callsOf(
  { agent, policy }: Speaker,
  { tools = [], toolChoice = 'auto' }: Question,
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
  const written = calls.map(({ name, arguments: text }) => ({ name, arguments: text }));
  return written.every((call) => isCallOf(call, tools)) ? { content, calls: written } : undefined;
}

function formatOf({ tools }: Agent): ToolFormatName {
  if (tools === undefined) throw new ArgumentError('an agent without a format was offered tools');
  return tools;
}

function parsed({ name, agent }: Speaker, text: string): unknown {
  try {
    return agent.parse(text);
  } catch (error) {
    throw EpisodeFailure.of('error', error, name);
  }
}

/** Ids, log-probs and text, or an endpoint's text and counts. */
function responseOf(
  { policy }: Speaker,
  { opening }: Question,
  answer: Generation | Utterance,
): Pick<Turn, 'policyVersion' | 'response' | 'logprobs' | 'text' | 'endpoint'> {
  if ('text' in answer) {
    const { text, promptTokens, responseTokens } = answer;
    const endpoint = {
      ...(promptTokens === undefined ? {} : { promptTokens }),
      ...(responseTokens === undefined ? {} : { responseTokens }),
    };
    return { policyVersion: 0, response: [], logprobs: [], text, endpoint };
  }
  if (!('tokenizer' in policy)) throw new ArgumentError('token ids came from where none are sampled');
  const { tokens, logprobs, finishReason, policyVersion } = answer;
  const text = policy.tokenizer.decode([...opening, ...withoutStop(tokens, finishReason, policy.tokenizer)]);
  return { policyVersion, response: tokens, logprobs, text };
}
