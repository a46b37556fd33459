/** The servers that a run will send prompts to, in words: a person reads them before the first request. */
import { type Assignment, type Recipe, serverKeyOf } from '../../../method/recipe.js';
import { modelPlaces } from './open-backends.js';

/** One sentence for each server: who plays there, and which key goes along. */
export function reachedServers(
  recipe: Recipe,
  { endpoints, models }: Pick<Assignment, 'endpoints' | 'models'>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string[] {
  const keyText = (own: boolean, variable: string | undefined) => {
    if (own) return 'the key of the recipe';
    return variable !== undefined && (environment[variable] ?? '') !== '' ? variable : 'no key';
  };
  const ofAgents = endpoints.flatMap(({ endpoint, agents }) => {
    if (endpoint.type === 'text') return []; // the recipe's own code decides what it asks
    const { url, apiKey } = endpoint;
    const key = apiKey === '' ? 'no key' : keyText(apiKey !== undefined, 'OPENAI_API_KEY');
    return `${url} gets the prompts of ${agents.join(', ')}, with ${key}`;
  });
  const names = models.map(({ name }) => name);
  const ofModels = modelPlaces(recipe, names).flatMap(({ name, backend, row, sampler }) => [
    ...('url' in backend
      ? [
          `${backend.url} gets the episodes of ${name}, with ${keyText(serverKeyOf(backend) !== undefined, row.keyVariable)}`,
        ]
      : []),
    ...(sampler === undefined
      ? []
      : [
          `${sampler.url} gets the prompts of ${name}, with ${keyText(sampler.apiKey !== undefined, recipe.lists.sampler.keyVariable)}`,
        ]),
  ]);
  return [...ofAgents, ...ofModels];
}
