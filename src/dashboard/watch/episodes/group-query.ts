import type { GroupPage, GroupQuery } from '../../../runs/analysis.js';
import { candidatesOf, groupPage, hasText, type MatchingGroup } from '../../../runs/analysis.js';
import { shownGroup } from '../../report/shown-episodes.js';
import { type EpisodeIndex, type IndexedEpisode, readIndexed } from './episode-index.js';

/** Episodes that are read together during a text search. */
const TOGETHER = 64;

/** A page of the matching groups: from `offset` on, at most `limit` of them. */
export async function queryGroups(
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
