import { callOfJson, jsonOfCall, jsonOpening } from './json-call.js';
import { endOfJson } from './json-object.js';
import { blockOpening, blocksOf, callsInBlocks } from './tagged-blocks.js';
import type { ToolFormat } from './tool-format.js';

/** `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number of times. */
export const hermes: ToolFormat = {
  families: 'Hermes 2 Pro and 3, Qwen2.5, Qwen3, QwQ, SmolLM3',
  isOf: (template) =>
    /<tool_call>(\\n|\s)*\{\\?"name\\?"|json object with function name and arguments within <tool_call>/.test(template),
  read: (text) => callsInBlocks(text, callAt),
  write: (response) => blocksOf(response, (call) => jsonOfCall(call, 'arguments')),
  opening: (name) => blockOpening(jsonOpening(name, 'arguments')),
};

function callAt(text: string, start: number) {
  const end = text.charAt(start) === '{' ? endOfJson(text, start) : undefined;
  const call = end === undefined ? undefined : callOfJson(text.slice(start, end), ['arguments']);
  return end === undefined || call === undefined ? undefined : { call, end };
}
