/** The models that policies are held near: what they are, where the backend holds them, what they say of turns. */
import { join } from 'node:path';
import type { PolicySpec } from '../../contract/weights.js';
import type { Turn } from '../../core/episode.js';
import { RecipeError } from '../../core/errors.js';
import type { Recipe } from '../../recipe/recipe.js';
import { writeDirectory } from '../../store/write-directory.js';
import type { OpenRun } from '../run-state.js';
import type { TurnsByPolicy } from '../step/turns-by-policy.js';
import { scoreTurns } from './training-samples.js';

/** The directory in which a run keeps references that cannot be made again: warm-started weights. */
export const REFERENCES = 'references';

/** Where warm-started references lie: a run that begins writes them, one that goes on reads them. */
export interface ReferenceStore {
  readonly directory: string;
  readonly mode: 'write' | 'read';
}

/** A reference as the backend knows it. Policies have no spaces in their names, so it cannot be mistaken for one. */
interface Reference {
  readonly name: string;
  /** The first policy that is held near it. */
  readonly policy: string;
  readonly spec: PolicySpec;
  /** Copied from the policy when reinforcement begins, and kept with the run. */
  readonly copied: boolean;
}

/** The name in the backend of what a policy is held near: a reference, or another policy; undefined without a KL. */
export function referenceOf(recipe: Recipe, policy: string): string | undefined {
  const reference = recipe.policies[policy]?.kl?.reference;
  if (reference === undefined) return undefined;
  if (reference.type === 'policy') return reference.policy;
  if (reference.type === 'checkpoint') return `reference ${reference.path}`;
  // Policies that begin alike share one.
  const begins = (name: string) =>
    recipe.warmStart?.share === 'policy' ? name : JSON.stringify(recipe.policies[name]?.model);
  const alike = Object.keys(recipe.policies).find(
    (name) => recipe.policies[name]?.kl?.reference.type === 'initial' && begins(name) === begins(policy),
  );
  return `reference of ${alike ?? policy}`;
}

function referencesOf({ recipe, models }: OpenRun): Reference[] {
  const references = new Map<string, Reference>();
  for (const [policy, { kl }] of Object.entries(recipe.policies)) {
    const name = referenceOf(recipe, policy);
    if (name === undefined || kl === undefined || kl.reference.type === 'policy' || references.has(name)) continue;
    const given = kl.reference.type === 'checkpoint';
    const spec: PolicySpec =
      kl.reference.type === 'checkpoint'
        ? { type: 'directory', directory: kl.reference.path }
        : (models[policy]?.spec as PolicySpec);
    const copied = !given && recipe.warmStart !== undefined;
    const asItIs = !copied && spec.type === 'directory';
    references.set(name, { name, policy, spec: asItIs ? { type: 'frozen', base: spec } : spec, copied });
  }
  return [...references.values()];
}

/**
 * Creates the recipe's references in the backend, frozen. First weights, an untrained adapter's among them, are made again
 * whenever a run goes on; those of a warm start are copied from the policies, and kept in the store where there is one.
 * @throws CheckpointError when one cannot be read; RecipeError when it has another vocabulary than its policy
 */
export async function openReferences(run: OpenRun, store?: ReferenceStore): Promise<void> {
  const { recipe, backend, models } = run;
  const { files } = run.host;
  const sizes = new Map(Object.entries(models).map(([name, { info }]) => [name, info.tokenizer.vocabSize]));
  for (const { name, policy, spec, copied } of referencesOf(run)) {
    sizes.set(name, (await backend.createPolicy(name, spec)).tokenizer.vocabSize);
    if (!copied) continue;
    if (store?.mode === 'read') {
      await backend.load(name, join(store.directory, policy), { optimizer: false });
      continue;
    }
    await backend.copyWeights(policy, name);
    if (store === undefined) continue;
    await files.makeDirectory(store.directory);
    await files.remove(join(store.directory, policy)); // left by an attempt that did not come to a checkpoint
    await writeDirectory(files, store.directory, policy, (place) => backend.save(name, place, { optimizer: false }));
  }
  for (const policy of Object.keys(recipe.policies)) {
    const [size, other] = [sizes.get(policy), sizes.get(referenceOf(recipe, policy) ?? policy)];
    if (size !== other)
      throw new RecipeError(
        `has a vocabulary of ${other} tokens, the policy one of ${size}: expected the same tokenizer`,
        `policies.${policy}.kl.reference`,
      );
  }
}

/** Log-probs of each turn's response [R] under what its policy is held near; turns of policies without a KL are missing. */
export async function referenceLogprobs(
  { recipe, backend }: OpenRun,
  turns: TurnsByPolicy,
): Promise<ReadonlyMap<Turn, Float32Array>> {
  const scored = await Promise.all(
    Array.from(turns, ([policy, ofPolicy]) => {
      const reference = referenceOf(recipe, policy);
      if (reference === undefined || ofPolicy.length === 0) return new Map<Turn, Float32Array>();
      return scoreTurns(ofPolicy, (samples) => backend.forward(reference, samples));
    }),
  );
  return new Map(scored.flatMap((each) => [...each]));
}
