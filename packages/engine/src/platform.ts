/** The facilities of Node: files, threads, the cache directory, archives, web requests. */
export { currentScope, runInScope, type Scope } from './base/platform/async-scopes.js';
export {
  cacheDirectory,
  configDirectory,
  type Environment,
  homeDirectory,
  removeStale,
} from './base/platform/cache-directory.js';
export { commandText } from './base/platform/command-text.js';
export {
  type EntryPlace,
  type FileEntry,
  JsonSplitter,
  jsonRows,
  strictValue,
} from './base/platform/formats/json-rows.js';
export { readArchive, writeArchive } from './base/platform/formats/tar-archive.js';
export {
  codeOf,
  flushDirectory,
  flushOpen,
  moveFile,
  nodeFiles,
  pathFault,
  TEMPORARY,
  temporaryName,
} from './base/platform/node-files.js';
export { kernelThreads, nodeHost } from './base/platform/node-host.js';
export { packageVersion } from './base/platform/package-version.js';
export { patientFetch, soundFetch, tlsFault } from './base/platform/patient-fetch.js';
export { accessBy, allowedHost, type Guard, guardOf } from './base/platform/servers/guards.js';
export { type GuardedApp, listen } from './base/platform/servers/listen.js';
export { chosenToken, isEqual, isLoopback, newToken } from './base/platform/servers/token.js';
export { startWorker } from './base/platform/start-worker.js';
export { importUserModule, requireLoadablePath } from './base/platform/user-modules.js';
export { findVulkan, type VulkanParts } from './base/platform/vulkan-drivers.js';
export {
  askedWait,
  bytesOf,
  isPassing,
  retryAfterMs,
  type WebAnswer,
  webRequest,
  withAskedWait,
} from './base/platform/web-request.js';
