/** Models behind endpoints and sampling servers: their settings, and checks of their answers. */
export {
  type AgentModel,
  answer,
  promptOf,
  samplingOf,
  seedOf,
  temperatureOf,
} from './backends/agent-reply.js';
export {
  type AnswerSource,
  checkedAnswer,
  idFault,
  logprobFault,
  type SequenceLimits,
} from './backends/answered-tokens.js';
export { serverKey } from './backends/server-access.js';
export type { EndpointOptions } from './endpoint/endpoint-options.js';
export { type EndpointSpec, endpointSchema } from './endpoint/endpoint-spec.js';
export {
  type CompleteText,
  type TextModelOptions,
  type TextModelSpec,
  type TextReply,
  textModelSchema,
} from './endpoint/text-model.js';
export type { SamplerInput } from './samplers/sampler-input.js';
export {
  SAMPLER_KEY,
  type SamplerSpec,
  samplerSchema,
  sglang,
  vllm,
} from './samplers/sampler-spec.js';
