import { join } from 'node:path';
import type { JsonSchema } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { createRun, temporaryRoot, tinyRecipe } from '../../../test/support/tiny-run.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { trainedSchemas } from './trained-schemas.js';

const root = temporaryRoot();
const city = { type: 'object', properties: { city: { type: 'string' } } };
const count = { type: 'object', properties: { count: { type: 'number' } } };

async function played(schemas: Readonly<Record<'reader' | 'writer', readonly (JsonSchema | undefined)[]>>) {
  const team = defineTeam({
    task: z.unknown(),
    agents: { reader: agent({ system: 'Read.' }), writer: agent() },
    async play({ agents }) {
      for (const name of ['reader', 'writer'] as const)
        for (const responseSchema of schemas[name])
          await agents[name]('Where?', responseSchema === undefined ? {} : { responseSchema });
      return undefined;
    },
    reward: () => 0,
  });
  const lines = { reader: schemas.reader.map(() => '{}'), writer: schemas.writer.map(() => '{}') };
  return playScripted(team, {}, lines);
}

it('are those that all turns of an agent in the last evaluation demand', async () => {
  const { path } = await createRun(root, tinyRecipe());
  expect(await trainedSchemas(nodeFiles, path)).toEqual(new Map());
  const run = await createRun(root, tinyRecipe());
  await run.writeEvaluationEpisodes(2, [(await played({ reader: [count], writer: [count] })) as never]);
  await run.writeEvaluationEpisodes(10, [(await played({ reader: [city, city], writer: [city, undefined] })) as never]);
  expect(await trainedSchemas(nodeFiles, run.path)).toEqual(new Map([['reader', city]]));
  const turn = { agent: 'reader', messages: [{ role: 'system', content: 5 }] };
  const strange = [{}, { turns: null }, { task: {}, score: {}, turns: [turn] }].map((row) => JSON.stringify(row));
  for (const line of ['no episode', ...strange]) {
    await nodeFiles.write(join(run.path, 'episodes', 'evaluation-999999.jsonl'), `${line}\n`);
    expect(await trainedSchemas(nodeFiles, run.path)).toEqual(new Map());
  }
  expect(await trainedSchemas(nodeFiles, join(root, 'nothing'))).toEqual(new Map());
});
