import { join } from 'node:path';
import type { Hono } from 'hono';
import { z } from 'zod';
import { LogError } from '../../../base/errors.js';
import { excerpt } from '../../../base/host.js';
import { EPISODES, RunDirectory } from '../../../method/store.js';
import { groupKinds } from '../../../runs/analysis.js';
import { shownGroup } from '../../report/shown-episodes.js';
import type { RunCatalog } from '../run-catalog.js';
import { EpisodeIndexes, readIndexed } from './episode-index.js';
import { queryGroups } from './group-query.js';
import { shownTokens } from './shown-tokens.js';

/** The most groups of one answer. */
const MOST_ROWS = 200;

const bound = z.coerce.number().nullable().default(null);
const place = z.object({
  run: z.string(),
  /** The name of a file of episodes, without its extension. A path is not accepted. */
  file: z.string().regex(/^\w[\w.-]*$/),
});
const groupsSchema = place.extend({
  kind: z.enum(groupKinds).default('all'),
  agent: z.string().default(''),
  text: z.string().max(1000).default(''),
  low: bound,
  high: bound,
  offset: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(MOST_ROWS).default(MOST_ROWS),
});
const groupSchema = place.extend({ task: z.string() });
const tokensSchema = groupSchema.extend({ sample: z.coerce.number(), turn: z.coerce.number() });

/** Routes for episodes: a page of the list of groups, one group, the tokens of one turn. */
export function addEpisodeRoutes(app: Hono, catalog: RunCatalog): void {
  const indexes = new EpisodeIndexes();

  app.get('/api/groups', async (context) => {
    const query = groupsSchema.parse(context.req.query());
    const file = fileOf(catalog, query);
    return context.json(await queryGroups(file, await indexes.of(file), query, query));
  });

  app.get('/api/group', async (context) => {
    const query = groupSchema.parse(context.req.query());
    const file = fileOf(catalog, query);
    const group = (await indexes.of(file)).byTask.get(query.task);
    if (group === undefined) throw new LogError(`the file has no episode of the task ${excerpt(query.task)}`, { file });
    return context.json(shownGroup(group.task, await readIndexed(file, group.episodes)));
  });

  app.get('/api/tokens', async (context) => {
    const query = tokensSchema.parse(context.req.query());
    const file = fileOf(catalog, query);
    const entries = (await indexes.of(file)).byTask.get(query.task)?.episodes ?? [];
    const [episode] = await readIndexed(
      file,
      entries.filter(({ sample }) => sample === query.sample),
    );
    const turn = episode?.turns[query.turn];
    if (turn === undefined) throw new LogError('the file has no such turn', { file });
    const { record } = await RunDirectory.open(catalog.placeOf(query.run));
    return context.json(shownTokens(turn, record.resolved));
  });
}

const fileOf = (catalog: RunCatalog, { run, file }: z.output<typeof place>): string =>
  join(catalog.placeOf(run), EPISODES, `${file}.jsonl`);
