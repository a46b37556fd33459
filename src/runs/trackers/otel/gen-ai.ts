/** Turns and messages by the GenAI conventions of OpenTelemetry (semantic conventions 1.41, in development). */
import type { Attributes } from '@opentelemetry/api';
import type { AnsweredTurn } from '../../../base/host.js';
import type { Message } from '../../../base/nouns.js';
import { responseTokens } from '../../../base/nouns.js';

/** The provider of a turn: drmas for the models of the run, or an endpoint of the recipe. */
export const providerOf = ({ endpoint }: AnsweredTurn) => (endpoint === undefined ? 'drmas' : 'drmas.endpoint');

export const inputTokens = ({ prompt, endpoint }: AnsweredTurn): number => endpoint?.promptTokens ?? prompt.length;

/** A turn as a model's answer to a chat. */
export function chatAttributes(turn: AnsweredTurn, texts: boolean): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerOf(turn),
    'gen_ai.request.model': turn.policy,
    'gen_ai.request.temperature': turn.temperature,
    'gen_ai.response.finish_reasons': [turn.finishReason],
    ...(turn.id === undefined ? {} : { 'gen_ai.response.id': turn.id }),
    'gen_ai.usage.input_tokens': inputTokens(turn),
    'gen_ai.usage.output_tokens': responseTokens(turn),
    'gen_ai.agent.name': turn.agent,
    'drmas.policy.version': turn.policyVersion,
    'drmas.turn': turn.turn,
    'drmas.valid': turn.valid,
    'drmas.penalty': turn.penalty,
    ...(texts ? contents(turn) : {}),
  };
}

/** Prompts and responses as JSON, the form of the conventions for attributes that cannot be structured. */
function contents(turn: AnsweredTurn): Attributes {
  const { content = turn.text, reasoning, toolCalls = [], finishReason } = turn;
  const thought = reasoning === undefined ? [] : [{ type: 'reasoning', content: reasoning }];
  const { parts } = messageOf({ role: 'assistant', content, toolCalls });
  const written = [{ role: 'assistant', parts: [...thought, ...parts], finish_reason: finishReason }];
  const instructions = turn.messages.filter(({ role }) => role === 'system').map(({ content: text }) => textPart(text));
  const read = turn.messages.filter(({ role }) => role !== 'system').map(messageOf);
  return {
    ...(instructions.length === 0 ? {} : { 'gen_ai.system_instructions': JSON.stringify(instructions) }),
    'gen_ai.input.messages': JSON.stringify(read),
    'gen_ai.output.messages': JSON.stringify(written),
  };
}

const textPart = (content: string) => ({ type: 'text', content });

function messageOf({ role, content, toolCalls = [], toolCallId }: Message) {
  if (role === 'tool') return { role, parts: [{ type: 'tool_call_response', id: toolCallId, response: content }] };
  const calls = toolCalls.map((call) => ({
    type: 'tool_call',
    id: call.id,
    name: call.name,
    arguments: call.arguments,
  }));
  return { role, parts: [...(content === '' && calls.length > 0 ? [] : [textPart(content)]), ...calls] };
}
