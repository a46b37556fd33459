import { callOfJson, jsonOfCall, jsonOpening } from './json-call.js';
import { blockOpening, blocksOf, callsInBlocks } from './tagged-blocks.js';
import type { ToolFormat } from './tool-format.js';

/** `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, any number of times. */
export const hermes: ToolFormat = {
  families: 'Hermes 2 Pro and 3, Qwen2.5, Qwen3, QwQ',
  isOf: (template) => /<tool_call>(\\n|\s)*\{\\?"name\\?"/.test(template),
  read: (text) => callsInBlocks(text, (block) => callOfJson(block, ['arguments'])),
  write: (response) => blocksOf(response, (call) => jsonOfCall(call, 'arguments')),
  opening: (name) => blockOpening(jsonOpening(name, 'arguments')),
};
