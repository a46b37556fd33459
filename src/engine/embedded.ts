/** Door of `engine`: backends at work: the embedded engine and its thread, endpoints, sampling servers. */
export { EmbeddedBackend } from './embedded/embedded-backend.js';
export { embedded } from './embedded/embedded-declaration.js';
export { loadPolicy, loadTokenizer } from './embedded/load-policy.js';
export { LoadedPolicy } from './embedded/loaded-policy.js';
export { policyFootprint } from './embedded/memory/footprint.js';
export type { FromWorker, ToWorker } from './embedded/thread/engine-protocol.js';
export { EngineThread } from './embedded/thread/engine-thread.js';
export { hardwareOf, serveEngine } from './embedded/thread/serve-engine.js';
export { openEndpoint } from './endpoint/endpoint-client.js';
export { SampledBackend, sampledCapabilities } from './samplers/sampled-backend.js';
