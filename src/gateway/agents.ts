/** Door of `gateway`: models that are agents while an episode is played, and nothing that a program does not need then. */
export { boundFetch } from './agents/openai.js';
export { type AnyLanguageModel, type TrainableOptions, trainable } from './agents/trainable.js';
