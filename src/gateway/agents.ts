/** Door of `gateway`: models that are agents while an episode is played. It reaches little: production imports it. */
export { boundFetch } from './agents/openai.js';
export { type AnyLanguageModel, type TrainableOptions, trainable } from './agents/trainable.js';
