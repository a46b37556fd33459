/** References: the models that policies are held near, and the log-probs that turns have under them. */
import { join } from 'node:path';
import { backendIdentity } from '../../backends/registry.js';
import type { ModelHandle } from '../../contract/handles.js';
import type { WeightsSpec } from '../../contract/weights-spec.js';
import type { Turn } from '../../core/episode.js';
import { RecipeError } from '../../core/errors.js';
import { backendOfModel, inPrecisionOf, type Recipe } from '../../recipe/recipe.js';
import { requireWhole, writeSealedDirectory } from '../../store/files/digests.js';
import { backendNamed, type OpenRun, policyNamed, type TrainingRun } from '../run-state.js';
import type { ChainsByPolicy } from '../step/chains-by-policy.js';
import { scoreTurns } from './training-samples.js';

/** Where warm-started references lie: a run that begins writes them, one that goes on reads them. */
export interface ReferenceStore {
  readonly directory: string;
  readonly mode: 'write' | 'read';
}

/** A reference that is a model beside the policies. */
interface Reference {
  /** The policies that are held near it; its directory is named like the first. */
  readonly policies: readonly [string, ...string[]];
  readonly weights: WeightsSpec;
  /** Whether it is a copy of the policy when reinforcement begins, which is kept with the run. */
  readonly copied: boolean;
}

/**
 * The policies that share a reference: those held near one checkpoint, and those held near first weights that are
 * alike, of one precision and on one backend each.
 */
export function policiesByReference(recipe: Recipe): [string, ...string[]][] {
  const begins = (policy: string) =>
    recipe.warmStart?.share === 'policy' ? policy : JSON.stringify(recipe.policies[policy]?.model);
  const groups = new Map<string, [string, ...string[]]>();
  for (const [policy, { kl, precision }] of Object.entries(recipe.policies)) {
    if (kl === undefined || kl.reference.type === 'policy') continue;
    const what = kl.reference.type === 'checkpoint' ? `at ${kl.reference.path}` : `like ${begins(policy)}`;
    const key = `${precision} ${backendIdentity(backendOfModel(recipe, policy))} ${what}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [policy]);
    else group.push(policy);
  }
  return [...groups.values()];
}

function referencesOf({ recipe, weights }: OpenRun): Reference[] {
  return policiesByReference(recipe).map((policies) => {
    const [first] = policies;
    const reference = recipe.policies[first]?.kl?.reference;
    if (reference?.type === 'checkpoint')
      return {
        policies,
        weights: inPrecisionOf(recipe, first, { type: 'directory', directory: reference.path }),
        copied: false,
      };
    return { policies, weights: weights[first] as WeightsSpec, copied: recipe.warmStart !== undefined };
  });
}

/**
 * Opens the models that policies are held near, by policy. First weights, an untrained adapter's among them, are made
 * again whenever a run goes on; those of a warm start are copied from the policies, and kept in the store where there
 * is one.
 * @throws CheckpointError when one cannot be read; RecipeError when it has another vocabulary than its policy
 */
export async function openReferences(run: OpenRun, store?: ReferenceStore): Promise<ReadonlyMap<string, ModelHandle>> {
  const references = new Map<string, ModelHandle>();
  for (const [policy, { kl }] of Object.entries(run.recipe.policies))
    if (kl?.reference.type === 'policy') references.set(policy, policyNamed(run, kl.reference.policy));
  for (const reference of referencesOf(run)) {
    const handle = await openReference(run, reference, store);
    for (const policy of reference.policies) references.set(policy, handle);
  }
  for (const [policy, reference] of references) {
    const [size, other] = [policyNamed(run, policy).tokenizer.vocabSize, reference.tokenizer.vocabSize];
    if (size !== other)
      throw new RecipeError(
        `has a vocabulary of ${other} tokens, the policy one of ${size}: expected the same tokenizer`,
        `policies.${policy}.kl.reference`,
      );
  }
  return references;
}

async function openReference(
  run: OpenRun,
  { policies: [first], weights, copied }: Reference,
  store: ReferenceStore | undefined,
): Promise<ModelHandle> {
  const { host } = run;
  const open = (spec: WeightsSpec) => backendNamed(run, first).open(spec, 'frozen', `${first}'s reference`);
  if (!copied) return open(weights);
  const policy = policyNamed(run, first);
  if (store?.mode === 'read') {
    const directory = join(store.directory, first);
    await requireWhole(host.files, directory);
    return open({ type: 'like', policy, directory });
  }
  const reference = await open({ type: 'like', policy });
  if (store === undefined) return reference;
  await host.files.makeDirectory(store.directory);
  await host.files.remove(join(store.directory, first)); // left by an attempt that did not come to a checkpoint
  await writeSealedDirectory(host.files, store.directory, first, (place) => reference.save(place));
  return reference;
}

/**
 * Log-probs of each turn's response [R] under what its policy is held near; turns of policies without a KL are missing.
 */
export async function referenceLogprobs(
  { references }: TrainingRun,
  chains: ChainsByPolicy,
): Promise<ReadonlyMap<Turn, Float32Array>> {
  const scored = await Promise.all(
    Array.from(chains, ([policy, ofPolicy]) => {
      const reference = references.get(policy);
      if (reference === undefined || ofPolicy.length === 0) return new Map<Turn, Float32Array>();
      return scoreTurns(ofPolicy, (samples) => reference.logprobs(samples));
    }),
  );
  return new Map(scored.flatMap((each) => [...each]));
}
