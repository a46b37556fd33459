/** The embedded engine itself, which needs nothing of Node: its backend, and the link to its thread. */
export { embeddedSchema } from './devices/embedded-schema.js';
export { EMBEDDED_CAPABILITIES, EmbeddedBackend } from './embedded/embedded-backend.js';
export { EmbeddedFrozen, EmbeddedPolicy } from './embedded/embedded-policy.js';
export { checkedSampling } from './embedded/generate-options.js';
export { holdsAdapter, locateBase } from './embedded/state-files.js';
export type { FromWorker, ToWorker } from './embedded/thread/engine-protocol.js';
export { EngineThread } from './embedded/thread/engine-thread.js';
export { hardwareOf, serveEngine } from './embedded/thread/serve-engine.js';
