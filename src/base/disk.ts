/** Door of `base`: sealed directories, content hashes and caches on disk. */
export { ChainedFile, type LogCursor, linesOf, UnfinishedLine } from './files/chained-file.js';
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
} from './files/digests.js';
export { DirectoryCache } from './files/file-cache.js';
export { removeTemporary, writeDirectory } from './files/write-directory.js';
