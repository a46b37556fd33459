/** Door of `method`: the state of a run on disk: checkpoints, references, warm starts. */
export { commitsOf, loadCheckpoint, saveCheckpoint, warmStartOf } from './training/checkpoint.js';
export { openTraining, referencePlace, storedReferences } from './training/signals/open-training.js';
export { keptWarmStart, type WarmStartLog, warmStart } from './training/warm-start/warm-start.js';
