/** Messages and tools in the form of OpenAI's chat completions. */
import type { OpenAI } from 'openai';
import type { Message } from '../../base/nouns.js';
import type { TextRequest } from '../contract/text-backend.js';

type WireMessage = OpenAI.ChatCompletionMessageParam;

export function wireMessage({ role, content, toolCalls = [], toolCallId = '' }: Message): WireMessage {
  if (role === 'tool') return { role, content, tool_call_id: toolCallId };
  if (role !== 'assistant' || toolCalls.length === 0) return { role, content };
  const calls = toolCalls.map(({ id, ...call }) => ({ id, type: 'function' as const, function: call }));
  return { role, content: content === '' ? null : content, tool_calls: calls };
}

/** The fields of a request that offer tools; none without tools. */
export function toolFields({ tools = [], toolChoice }: Pick<TextRequest, 'tools' | 'toolChoice'>) {
  if (tools.length === 0) return {};
  const choice = typeof toolChoice === 'object' ? { type: 'function', function: toolChoice } : toolChoice;
  return {
    tools: tools.map((tool) => ({ type: 'function', function: tool })),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
}
