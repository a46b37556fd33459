/** Opens the references and critics of policies, and stores the warm-started references. */

import type { ModelHandle, WeightsSpec } from '@drmas/engine/contract';
import { requireWhole, writeSealedDirectory } from '@drmas/engine/disk';
import { RecipeError } from '@drmas/engine/errors';
import { type Files, joinPath } from '@drmas/engine/host';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import type { TrainedModel } from '../run/learner.js';
import type { OpenRun, TrainingRun } from '../run/run-state.js';
import { criticValues, openCritics } from './critic-values.js';
import { trainingRun } from './training-run.js';

/** The directory of warm-started references: a new run writes them, a resumed run reads them. */
export interface ReferenceStore {
  readonly directory: string;
  readonly mode: 'write' | 'read';
}

/**
 * Groups the policies that share a reference: policies with the same reference checkpoint, or with equal first weights.
 * All policies of a group have one precision and one backend.
 * @param warmStartShare Whether policies learn from demonstrations first, and have a common base
 * @returns Groups of policies. The reference's directory has the name of the first policy of its group
 */
export function policiesByReference<Held extends Pick<TrainedModel, 'name' | 'settings' | 'backendKey'>>(
  warmStartShare: OpenRun['warmStartShare'],
  trained: readonly Held[],
): (readonly [Held, ...Held[]])[] {
  const groups = new Map<string, [Held, ...Held[]]>();
  for (const policy of trained) {
    const { kl, precision, model, agentAdapters } = policy.settings ?? {};
    if (kl === undefined || kl.reference.type === 'policy') continue;
    const isAlone = warmStartShare === 'policy' || agentAdapters !== undefined;
    const beginning = isAlone ? policy.name : JSON.stringify(model);
    const near = kl.reference.type === 'checkpoint' ? `at ${kl.reference.path}` : `like ${beginning}`;
    const key = `${precision} ${policy.backendKey} ${near}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [policy]);
    else group.push(policy);
  }
  return [...groups.values()];
}

export function storedReferences(
  warmStartShare: OpenRun['warmStartShare'],
  trained: readonly Pick<TrainedModel, 'name' | 'settings' | 'backendKey'>[],
): string[] {
  if (warmStartShare === undefined) return [];
  return policiesByReference(warmStartShare, trained).flatMap(([{ name, settings }]) =>
    settings?.kl?.reference.type === 'checkpoint' ? [] : [name],
  );
}

/**
 * The directory of a policy's warm-started reference. A run that resumes with a KL for other policies than before finds
 * it under the name of a policy that began with equal weights.
 * @param directory The directory of all references
 */
export async function referencePlace(
  files: Pick<Files, 'exists'>,
  directory: string,
  {
    warmStartShare,
    trained,
  }: Pick<OpenRun, 'warmStartShare'> & {
    readonly trained: readonly Pick<TrainedModel, 'name' | 'settings'>[];
  },
  name: string,
): Promise<string> {
  const beginningOf = ({ name, settings }: Pick<TrainedModel, 'name' | 'settings'>) =>
    warmStartShare === 'base' && settings?.agentAdapters === undefined ? JSON.stringify(settings?.model) : name;
  const own = trained.filter((policy) => policy.name === name).map(beginningOf);
  const alike = trained.filter((policy) => own.includes(beginningOf(policy))).map((policy) => policy.name);
  for (const each of [name, ...alike]) {
    const place = joinPath(directory, each);
    if (await files.exists(place)) return place;
  }
  return joinPath(directory, name);
}

/**
 * Opens the references by policy. If the reference is the first weights (also of an untrained adapter), a resumed run
 * makes them again. After a warm start the references are copies of the policies. The store keeps these copies, if
 * there is a store.
 * @throws CheckpointError if a reference cannot be read; RecipeError if its vocabulary differs from its policy's
 */
async function openReferences(
  run: Pick<OpenRun, 'warmStartShare' | 'trained' | 'host'>,
  store?: ReferenceStore,
): Promise<ReadonlyMap<string, ModelHandle>> {
  const { warmStartShare, trained } = run;
  const references = new Map<string, ModelHandle>();
  for (const { name, settings } of trained) {
    const reference = settings?.kl?.reference;
    if (reference?.type !== 'policy') continue;
    const other = trained.find((policy) => policy.name === reference.policy);
    if (other !== undefined) references.set(name, other.handle);
  }
  for (const policies of policiesByReference(warmStartShare, trained)) {
    const handle = await openReference(run, policies[0], store);
    for (const { name } of policies) references.set(name, handle);
  }
  for (const { name, handle } of trained) {
    const size = handle.tokenizer.vocabSize;
    const other = references.get(name)?.tokenizer.vocabSize ?? size;
    if (size !== other)
      throw new RecipeError(
        `has a vocabulary of ${other} tokens, the policy one of ${size}: expected the same tokenizer`,
        `policies.${name}.kl.reference`,
      );
  }
  return references;
}

async function openReference(
  { warmStartShare, trained, host }: Pick<OpenRun, 'warmStartShare' | 'trained' | 'host'>,
  { name, handle: policy, backend, weights, settings }: TrainedModel,
  store: ReferenceStore | undefined,
): Promise<ModelHandle> {
  const open = (spec: WeightsSpec) => backend.open(spec, 'frozen', `${name}'s reference`);
  const reference = settings?.kl?.reference;
  if (reference?.type === 'checkpoint') {
    const { precision } = settings ?? {};
    const spec = { type: 'directory', directory: reference.path } as const;
    return open(precision === undefined ? spec : { ...spec, precision });
  }
  if (warmStartShare === undefined) return open(weights);
  if (store?.mode === 'read') {
    const directory = await referencePlace(host.files, store.directory, { warmStartShare, trained }, name);
    await requireWhole(host.files, directory);
    return open({ type: 'like', policy, directory });
  }
  const copy = await open({ type: 'like', policy });
  if (store === undefined) return copy;
  await host.files.makeDirectory(store.directory);
  await host.files.remove(joinPath(store.directory, name)); // left by an attempt that did not reach a checkpoint
  await writeSealedDirectory(host.files, store.directory, name, (directory) => copy.save(directory));
  return copy;
}

/**
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
