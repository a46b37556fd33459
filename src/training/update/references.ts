/** The models that policies are held near: what they are, where the backend holds them, what they say of turns. */
import { join } from 'node:path';
import type { PolicySpec } from '../../contract/weights.js';
import type { Turn } from '../../core/episode.js';
import { RecipeError } from '../../core/errors.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { RunDirectory } from '../../store/run-directory.js';
import { writeDirectory } from '../../store/write-directory.js';
import type { OpenedPolicies, Stage } from '../session.js';
import { scoreTurns } from './training-samples.js';

/** Where a run keeps references that cannot be made again: warm-started weights. */
const DIRECTORY = 'references';

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

function referencesOf(recipe: Recipe, specs: OpenedPolicies['specs']): Reference[] {
  const found = new Map<string, Reference>();
  for (const [policy, { kl }] of Object.entries(recipe.policies)) {
    const name = referenceOf(recipe, policy);
    if (name === undefined || kl === undefined || kl.reference.type === 'policy' || found.has(name)) continue;
    const given = kl.reference.type === 'checkpoint';
    const spec: PolicySpec =
      kl.reference.type === 'checkpoint'
        ? { type: 'directory', directory: kl.reference.path }
        : (specs[policy] as PolicySpec);
    const copied = !given && recipe.warmStart !== undefined;
    const asItIs = !copied && spec.type === 'directory';
    found.set(name, { name, policy, spec: asItIs ? { type: 'frozen', base: spec } : spec, copied });
  }
  return [...found.values()];
}

/**
 * Creates the recipe's references in the backend, frozen. First weights, an untrained adapter's among them, are made again
 * whenever a run goes on; those of a warm start are copied from the policies, and kept with the run.
 * @param resumed Whether the run goes on from a checkpoint
 * @throws CheckpointError when one cannot be read; RecipeError when it has another vocabulary than its policy
 */
export async function openReferences(
  { recipe, backend, files, policies, specs }: Stage & OpenedPolicies,
  run: Pick<RunDirectory, 'path'>,
  { resumed }: { readonly resumed: boolean },
): Promise<void> {
  const sizes = new Map(Object.entries(policies).map(([name, { tokenizer }]) => [name, tokenizer.vocabSize]));
  for (const { name, policy, spec, copied } of referencesOf(recipe, specs)) {
    sizes.set(name, (await backend.createPolicy(name, spec)).tokenizer.vocabSize);
    if (!copied) continue;
    const parent = join(run.path, DIRECTORY);
    if (!resumed) {
      await backend.copyWeights(policy, name);
      await files.makeDirectory(parent);
      await files.remove(join(parent, policy)); // of an attempt that did not come to a checkpoint
      await writeDirectory(files, parent, policy, (directory) => backend.save(name, directory, { optimizer: false }));
    } else await backend.load(name, join(parent, policy), { optimizer: false });
  }
  for (const policy of Object.keys(recipe.policies)) {
    const [own, other] = [sizes.get(policy), sizes.get(referenceOf(recipe, policy) ?? policy)];
    if (own !== other)
      throw new RecipeError(
        `has a vocabulary of ${other} tokens, the policy one of ${own}: expected the same tokenizer`,
        `policies.${policy}.kl.reference`,
      );
  }
}

/** Log-probs of each turn's response [R] under what its policy is held near; turns of policies without a KL are missing. */
export async function referenceLogprobs(
  { recipe, backend }: Pick<Stage, 'recipe' | 'backend'>,
  turns: readonly Turn[],
): Promise<Map<Turn, Float32Array>> {
  const scored = await Promise.all(
    Object.keys(recipe.policies).map((policy) => {
      const reference = referenceOf(recipe, policy);
      const own = turns.filter((turn) => turn.policy === policy);
      if (reference === undefined || own.length === 0) return new Map<Turn, Float32Array>();
      return scoreTurns(own, (samples) => backend.forward(reference, samples));
    }),
  );
  return new Map(scored.flatMap((each) => [...each]));
}
