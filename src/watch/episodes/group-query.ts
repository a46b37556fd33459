import type { EpisodeDot, GroupPage, GroupQuery } from '../../report/analysis/shown-episode.js';
import { shownGroup } from '../../report/shown-episodes.js';
import type { StoredEpisode } from '../../store/episode-files.js';
import { type EpisodeIndex, type IndexedEpisode, type IndexedGroup, readIndexed } from './episode-index.js';

/** Episodes that are read at once while texts are searched. */
const TOGETHER = 64;

/** A part of the groups that are asked for: from `offset` on, at most `limit` of them. */
export async function queryGroups(
  file: string,
  index: EpisodeIndex,
  query: GroupQuery,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<GroupPage> {
  const matching: { readonly group: IndexedGroup; readonly matches: ReadonlySet<IndexedEpisode> }[] = [];
  for (const group of index.groups) {
    if (!isOfKind(group, query)) continue;
    const candidates = group.episodes.filter((episode) => mayMatch(episode, query));
    const matches = new Set(query.text === '' ? candidates : await withText(file, candidates, query));
    if (matches.size > 0) matching.push({ group, matches });
  }
  return {
    groups: index.groups.length,
    episodes: index.episodes,
    matchingGroups: matching.length,
    matchingEpisodes: matching.reduce((sum, { matches }) => sum + matches.size, 0),
    agents: index.agents,
    offset,
    rows: matching.slice(offset, offset + limit).map(({ group: { task, episodes }, matches }) => ({
      task,
      episodes: episodes.map(
        (episode): EpisodeDot => ({
          sample: episode.sample,
          reward: episode.reward,
          failed: episode.failed,
          invalid: episode.invalid.length > 0,
          matches: matches.has(episode),
        }),
      ),
    })),
  };
}

function isOfKind({ episodes }: IndexedGroup, { kind }: GroupQuery): boolean {
  const equal = episodes.every(({ reward }) => reward === episodes[0]?.reward);
  return kind === 'mixed' ? !equal : kind !== 'all equal' || equal;
}

function mayMatch({ reward, failed, agents, invalid }: IndexedEpisode, query: GroupQuery): boolean {
  const { kind, agent, low, high } = query;
  if ((low !== null && reward < low) || (high !== null && reward > high)) return false;
  if (kind === 'with failures' && !failed) return false;
  if (kind === 'with invalid output') return agent === '' ? invalid.length > 0 : invalid.includes(agent);
  return agent === '' || agents.includes(agent);
}

async function withText(
  file: string,
  entries: readonly IndexedEpisode[],
  query: GroupQuery,
): Promise<IndexedEpisode[]> {
  const matching: IndexedEpisode[] = [];
  for (let start = 0; start < entries.length; start += TOGETHER) {
    const part = entries.slice(start, start + TOGETHER);
    const episodes = await readIndexed(file, part);
    matching.push(...part.filter((_, i) => hasText(episodes[i], query)));
  }
  return matching;
}

/** Whether a text of an episode holds the words: of the named agent's turns, or of anything in it. */
function hasText(episode: StoredEpisode | undefined, { text, agent }: GroupQuery): boolean {
  if (episode === undefined) return false;
  const words = text.toLowerCase();
  const { data, task, episodes } = shownGroup(episode.task.id, [episode]);
  const [shown] = episodes;
  const turns = (shown?.turns ?? []).filter((turn) => agent === '' || turn.agent === agent);
  const texts = turns.flatMap((turn) => [turn.text, ...turn.messages.map(([, content]) => content)]);
  if (agent === '' && shown !== undefined)
    texts.push(task, data, shown.outcome, shown.failure ?? '', ...shown.log.flat());
  return texts.some((one) => one.toLowerCase().includes(words));
}
