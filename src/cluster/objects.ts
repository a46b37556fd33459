/** Door of `cluster`: copies of runs in folders and S3 buckets. */
export { openObjects } from './objects/open-objects.js';
export { copiesAreOf, hasCopy, RunCopy, takeCopy } from './objects/run-copies.js';
export { SealedCopies } from './objects/sealed-copies.js';
