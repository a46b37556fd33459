import { type Commits, withLocalModels } from '@drmas/engine/formats';
import type { Host } from '@drmas/engine/host';
import { type BackendSpec, backendOf, backendOfModel, type Recipe } from '../../../method/recipe.js';

/**
 * The recipe with directories instead of names on hubs. Missing files are downloaded, as far as a model's backend reads
 * them on this machine.
 */
export async function withModels(
  recipe: Recipe,
  { signal, notify, clock }: Host,
  wanted: Commits | undefined,
): Promise<{ readonly recipe: Recipe; readonly commits: Commits }> {
  const whole = (spec: BackendSpec) => backendOf(recipe, spec).capabilities.weights === 'here';
  const isWhole = ([name]: [string, unknown]) => whole(backendOfModel(recipe, name));
  const settings = Object.entries(recipe.policies);
  const [here, there] = [settings.filter(isWhole), settings.filter((policy) => !isWhole(policy))];
  // Whole models first: if a server names the same model, its files are already here.
  const parts = { all: Object.fromEntries(here), tokenizer: Object.fromEntries(there) };
  const options = { signal, clock, onProgress: notify };
  const frozen = whole(recipe.backend) ? 'all' : 'tokenizer';
  let commits = wanted;
  const place = async <Part>(part: Part, files: 'all' | 'tokenizer') => {
    const placed = await withLocalModels(part, { ...options, files, commits });
    commits = { ...commits, ...placed.commits };
    return placed.settings;
  };
  const all = await place(parts.all, 'all');
  const assign = await place(recipe.assign, frozen);
  const policies = { ...recipe.policies, ...all, ...(await place(parts.tokenizer, 'tokenizer')) };
  return { recipe: { ...recipe, policies, assign }, commits: commits ?? {} };
}
