/** Door of `engine`: backends: the engine behind a link, endpoints, sampling servers, and how to declare one. */
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
export {
  type BackendDeclaration,
  type BackendPlugin,
  defineBackend,
  EXPORT_FORMATS,
  type ExportFormat,
  type ExportRequest,
  type Footprint,
  type MemoryPlan,
  type OpenOptions,
  type PlannedPolicy,
  type PreparedExport,
  type SizedModel,
} from './backends/backend-declaration.js';
export { forwardBackward } from './backends/forward-backward.js';

export { serverKey, serverUrl } from './backends/server-access.js';
export { embeddedSchema } from './devices/embedded-schema.js';
export { EMBEDDED_CAPABILITIES, EmbeddedBackend } from './embedded/embedded-backend.js';
export { EmbeddedFrozen, EmbeddedPolicy } from './embedded/embedded-policy.js';
export { checkedSampling } from './embedded/generate-options.js';
export { holdsAdapter, locateBase } from './embedded/state-files.js';
export type { FromWorker, ToWorker } from './embedded/thread/engine-protocol.js';
export { EngineThread } from './embedded/thread/engine-thread.js';
export { hardwareOf, serveEngine } from './embedded/thread/serve-engine.js';
export { type EndpointOptions, type EndpointSpec, endpointSchema } from './endpoint/endpoint-spec.js';
export {
  type CompleteText,
  type TextModelOptions,
  type TextModelSpec,
  type TextReply,
  textModelSchema,
} from './endpoint/text-model.js';
export {
  SAMPLER_KEY,
  type SamplerInput,
  type SamplerSpec,
  samplerSchema,
  sglang,
  vllm,
} from './samplers/sampler-spec.js';
