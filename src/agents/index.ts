/** What `import ... from 'drmas/agents'` offers: agents in the place of models of programs written elsewhere. */
export { boundFetch } from './openai.js';
export { type AnyLanguageModel, type TrainableOptions, trainable } from './trainable.js';
