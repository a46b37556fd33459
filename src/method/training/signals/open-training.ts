import type { Checkpoint } from '../../store/checkpoint-files.js';
import type { OpenRun, TrainingRun } from '../run/run-state.js';
import { openCritics } from './critic-files.js';
import { criticValues } from './critic-values.js';
import { openReferences, type ReferenceStore } from './reference-files.js';
import { trainingRun } from './training-run.js';

/**
 * Opens the references and the critics of a run's policies.
 * @param store The directory of warm-started references. Without it they are not stored
 * @param checkpoint The checkpoint from which the run resumes
 * @throws CheckpointError, RecipeError as `openReferences` and `openCritics`
 */
export async function openTraining(
  run: OpenRun,
  { store, checkpoint }: { readonly store?: ReferenceStore | undefined; readonly checkpoint?: Checkpoint | undefined },
): Promise<TrainingRun> {
  const references = await openReferences(run, store);
  const usesCritics = trainingRun(run).signals.includes(criticValues);
  const critics = usesCritics ? await openCritics(run, checkpoint) : new Map();
  return trainingRun(run, { references, critics });
}
