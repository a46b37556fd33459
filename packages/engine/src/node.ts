/** Backends at work in Node: the embedded engine with its thread and kernels, endpoints, sampling servers. */
export { embedded } from './devices/embedded-declaration.js';
export { startEngine } from './devices/start-engine.js';
export { loadPolicy, loadTokenizer } from './embedded/load-policy.js';
export { LoadedPolicy } from './embedded/loaded-policy.js';
export { policyFootprint } from './embedded/memory/footprint.js';
export { openEndpoint } from './endpoint/endpoint-client.js';
export { openTextModel } from './endpoint/text-model.js';
export { SampledBackend, sampledCapabilities } from './samplers/sampled-backend.js';
export { inspectNative } from './tensor/native/load-kernels.js';
export { selectKernels } from './tensor/select.js';
export { deviceProblem, lookForTorch, type PythonReport, pythonProblem } from './torch/find-torch.js';
