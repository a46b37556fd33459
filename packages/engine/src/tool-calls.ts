/** The formats in which models write calls of tools, and their thinking. */
export { callsIn, isCallOf, type ToolFormatName, toolFormat, toolFormatNames } from './model/tool-formats/index.js';
export { endOfJson } from './model/tool-formats/json-object.js';
export {
  endsOfThinking,
  firstMark,
  opensThinking,
  THINKING,
  thinkingBegun,
  withoutThinking,
} from './model/tool-formats/thinking.js';
export type { TextWithCalls } from './model/tool-formats/tool-format.js';
