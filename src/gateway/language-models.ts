/** Door of `gateway`: models of AI SDK that answer for frozen agents. Needs no Node. */
export { completeWith } from './agents/complete-with.js';
export type { AnyLanguageModel } from './agents/trainable.js';
