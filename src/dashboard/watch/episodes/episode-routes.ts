import { join } from 'node:path';
import { isObject, LogError } from '@drmas/engine/errors';
import { excerpt } from '@drmas/engine/host';
import type { Tokenizer } from '@drmas/engine/nouns';
import { createTokenizer } from '@drmas/engine/tokens';
import type { Hono } from 'hono';
import { z } from 'zod';
import { EPISODES, RunDirectory, type StoredEpisode } from '../../../method/store.js';
import {
  candidatesOf,
  type GroupPage,
  type GroupQuery,
  groupKinds,
  groupPage,
  hasText,
  type MatchingGroup,
  type ShownToken,
} from '../../../runs/analysis.js';
import { shownGroup } from '../../report/shown-episodes.js';
import type { RunCatalog } from '../run-catalog.js';
import { type EpisodeIndex, EpisodeIndexes, type IndexedEpisode, readIndexed } from './episode-index.js';

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

/** Episodes that are read together during a text search. */
const TOGETHER = 64;

/** A page of the matching groups: from `offset` on, at most `limit` of them. */
async function queryGroups(
  file: string,
  index: EpisodeIndex,
  query: GroupQuery,
  part: { readonly offset: number; readonly limit: number },
): Promise<GroupPage> {
  const matching: MatchingGroup[] = [];
  for (const group of index.groups) {
    const candidates = candidatesOf(group, query);
    const matches = new Set(query.text === '' ? candidates : await withText(file, candidates, query));
    if (matches.size > 0) matching.push({ group, matches });
  }
  return groupPage({ ...index, groups: index.groups.length }, matching, part);
}

async function withText(
  file: string,
  entries: readonly IndexedEpisode[],
  query: GroupQuery,
): Promise<IndexedEpisode[]> {
  const matching: IndexedEpisode[] = [];
  for (let start = 0; start < entries.length; start += TOGETHER) {
    const part = entries.slice(start, start + TOGETHER);
    const stored = await readIndexed(file, part);
    matching.push(
      ...part.filter((_, i) => {
        const episode = stored[i];
        if (episode === undefined) return false;
        const group = shownGroup(episode.task.id, [episode]);
        return group.episodes.some((shown) => hasText(group, shown, query));
      }),
    );
  }
  return matching;
}

function shownTokens(
  { policy, response, logprobs, advantage, ratio, clipped = [] }: StoredEpisode['turns'][number],
  recipe: Readonly<Record<string, unknown>>,
): ShownToken[] {
  const tokenizer = tokenizerOf(policy, recipe);
  return (response ?? []).map((id, i) => ({
    text: tokenText(id, tokenizer),
    logprob: logprobs?.[i] ?? null,
    advantage: ofToken(advantage, i),
    ratio: ofToken(ratio, i),
    clipped: clipped.includes(i),
  }));
}

/** One number for all tokens, or one per token. */
const ofToken = (value: number | readonly number[] | undefined, token: number): number | null =>
  typeof value === 'number' ? value : (value?.[token] ?? null);

/** The tokenizer of a policy if recipe.json contains it. The tokenizer of a downloaded model is not in the run. */
function tokenizerOf(policy: string, { policies }: Readonly<Record<string, unknown>>): Tokenizer | undefined {
  const of = isObject(policies) ? policies[policy] : undefined;
  const model = isObject(of) ? of.model : undefined;
  if (!isObject(model)) return undefined;
  try {
    return createTokenizer(model.tokenizer);
  } catch {
    return undefined;
  }
}

function tokenText(id: number, tokenizer: Tokenizer | undefined): string {
  try {
    return tokenizer?.decode([id]) || `⟨${id}⟩`;
  } catch {
    return `⟨${id}⟩`;
  }
}
