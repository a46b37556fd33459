/** Door of `base`: the facilities of Node: files, threads, the cache directory, archives, web requests. */
export { currentScope, runInScope, type Scope } from './platform/async-scopes.js';
export { cacheDirectory, type Environment, removeStale } from './platform/cache-directory.js';
export { commandText } from './platform/command-text.js';
export { type EntryPlace, type FileEntry, JsonSplitter, jsonRows, strictValue } from './platform/formats/json-rows.js';
export { readArchive, writeArchive } from './platform/formats/tar-archive.js';
export { codeOf, flushDirectory, moveFile, nodeFiles, TEMPORARY, temporaryName } from './platform/node-files.js';
export { nodeHost } from './platform/node-host.js';
export { packageVersion } from './platform/package-version.js';
export { accessBy, guardOf } from './platform/servers/guards.js';
export { type GuardedApp, listen } from './platform/servers/listen.js';
export { chosenToken, isEqual, isLoopback, newToken } from './platform/servers/token.js';
export { startWorker } from './platform/start-worker.js';
export { importUserModule } from './platform/user-modules.js';
export { findVulkan, type VulkanParts } from './platform/vulkan-drivers.js';
export { bytesOf, type WebAnswer, webRequest } from './platform/web-request.js';
