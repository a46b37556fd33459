/** Tokenizers and chat templates. */
export { bytesTokenizer } from './model/tokenizers/bytes.js';
export { choicesTokenizer } from './model/tokenizers/choice-names.js';
export { createTokenizer } from './model/tokenizers/create-tokenizer.js';
export { chatTemplateWith, settingsOf, templateOf } from './model/tokenizers/named-templates.js';
export { TextStream } from './model/tokenizers/text-stream.js';
export { thoughtTokens } from './model/tokenizers/thought-tokens.js';
export type { BytesSpec, SymbolsSpec } from './model/tokenizers/tokenizer-spec.js';
