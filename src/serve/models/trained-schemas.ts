/** The schemas that agents answered with in training: requests without them are other prompts. */
import { join } from 'node:path';
import { exactJson } from '@drmas/engine/errors';
import type { Files } from '@drmas/engine/host';
import type { JsonSchema } from '@drmas/engine/nouns';
import { EPISODES, readEpisodes } from '../../method/store.js';
import { demandedSchema } from '../../teams/rollout.js';

const MOST_EPISODES = 32;

/**
 * The schema of each agent whose turns in the run's last evaluation all demand the same one. Empty for a model that is
 * no run, and for a run whose episodes cannot be read.
 */
export async function trainedSchemas(files: Files, from: string): Promise<ReadonlyMap<string, JsonSchema>> {
  const directory = join(from, EPISODES);
  const names = (await files.exists(directory)) ? await files.list(directory) : [];
  const last = names
    .filter((name) => name.startsWith('evaluation-'))
    .sort()
    .at(-1);
  const episodes =
    last === undefined ? [] : await readEpisodes(files, join(directory, last), MOST_EPISODES).catch(() => []);
  const schemas = new Map<string, Map<string, JsonSchema | undefined>>();
  for (const { agent, messages } of episodes.flatMap(({ turns }) => turns)) {
    const system = messages.find(({ role }) => role === 'system');
    const schema = system && demandedSchema(system.content);
    const ofAgent = schemas.get(agent) ?? new Map<string, JsonSchema | undefined>();
    schemas.set(agent, ofAgent.set(exactJson(schema), schema));
  }
  return new Map(
    [...schemas].flatMap(([agent, ofAgent]) => {
      const [schema] = ofAgent.values();
      return ofAgent.size === 1 && schema !== undefined ? [[agent, schema] as const] : [];
    }),
  );
}
