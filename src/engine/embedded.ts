/** Door of `engine`: backends at work in Node: the embedded engine, its kernels, endpoints, sampling servers. */
export { embedded } from './embedded/embedded-declaration.js';
export { loadPolicy, loadTokenizer } from './embedded/load-policy.js';
export { LoadedPolicy } from './embedded/loaded-policy.js';
export { policyFootprint } from './embedded/memory/footprint.js';
export { startEmbedded } from './embedded/start-embedded.js';
export { openEndpoint } from './endpoint/endpoint-client.js';
export { SampledBackend, sampledCapabilities } from './samplers/sampled-backend.js';
export { inspectNative } from './tensor/native/load-kernels.js';
export { selectKernels } from './tensor/select.js';
export { type GpuReport, inspectGpu } from './tensor/webgpu/inspect-gpu.js';
