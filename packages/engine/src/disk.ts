/** Sealed directories, content hashes and caches on disk. */
export { ChainedFile, type LogCursor, linesOf, UnfinishedLine } from './base/files/chained-file.js';
export {
  contentHash,
  damageOf,
  digestOf,
  type FileDigest,
  filesBelow,
  isNoOptimizer,
  jsonOf,
  requireWhole,
  SEAL,
  sealState,
  writeSealedDirectory,
} from './base/files/digests.js';
export { DirectoryCache } from './base/files/file-cache.js';
export { removeTemporary, writeDirectory } from './base/files/write-directory.js';
