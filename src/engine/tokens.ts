/** Door of `engine`: tokenizers, chat templates and formats of tool calls. */
export { bytesTokenizer } from './model/tokenizers/bytes.js';
export { choicesTokenizer } from './model/tokenizers/choice-names.js';
export { createTokenizer } from './model/tokenizers/create-tokenizer.js';
export { chatTemplateWith, settingsOf, templateOf } from './model/tokenizers/named-templates.js';
export { TextStream } from './model/tokenizers/text-stream.js';
export type { BytesSpec, SymbolsSpec } from './model/tokenizers/tokenizer-spec.js';
export { callsIn, isCallOf, type ToolFormatName, toolFormat, toolFormatNames } from './model/tool-formats/index.js';
export { endOfJson } from './model/tool-formats/json-object.js';
export { opensThinking, THINK, THOUGHT, withoutThinking } from './model/tool-formats/thinking.js';
export type { TextWithCalls } from './model/tool-formats/tool-format.js';
