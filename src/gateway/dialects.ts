/** Door of `gateway`: the HTTP dialects that clients of models speak. */
export { wholeAnswer } from './dialects/answer-parts.js';
export type { ModelAnswer, ModelDelta, ModelRequest } from './dialects/dialect.js';
export { modelApp, modelPolicy } from './dialects/model-app.js';
export { beyondSampling, onceEach } from './dialects/request-fields.js';
