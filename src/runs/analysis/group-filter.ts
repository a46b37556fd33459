/** Selects groups of episodes. */
import { differ } from '@drmas/engine/math';
import type { EpisodeDot, GroupPage, GroupQuery, ShownEpisode, ShownGroup } from './shown-episode.js';

export interface EpisodeFacts {
  readonly sample: number;
  readonly reward: number;
  readonly failed: boolean;
  /** The called agents, and the agents with an invalid output. */
  readonly agents: readonly string[];
  readonly invalid: readonly string[];
}

export interface FactsGroup<Facts extends EpisodeFacts = EpisodeFacts> {
  /** The task's id. */
  readonly task: string;
  readonly title: string;
  readonly episodes: readonly Facts[];
}

export interface MatchingGroup {
  readonly group: FactsGroup;
  readonly matches: ReadonlySet<EpisodeFacts>;
}

/** The episodes of a group that match without regard to their texts. None if the group is of another kind. */
export function candidatesOf<Facts extends EpisodeFacts>({ episodes }: FactsGroup<Facts>, query: GroupQuery): Facts[] {
  const { kind, agent, low, high } = query;
  const [first] = episodes;
  const equal = episodes.every(({ reward }) => !differ(reward, first?.reward ?? reward));
  if ((kind === 'mixed' && equal) || (kind === 'all equal' && !equal)) return [];
  return episodes.filter(({ reward, failed, agents, invalid }) => {
    if ((low !== null && reward < low) || (high !== null && reward > high)) return false;
    if (kind === 'with failures' && !failed) return false;
    if (kind === 'with invalid output') return agent === '' ? invalid.length > 0 : invalid.includes(agent);
    return agent === '' || agents.includes(agent);
  });
}

/** Whether a text of an episode contains the words: a turn of the named agent, or any text without a name. */
export function hasText({ task, data }: ShownGroup, episode: ShownEpisode, { text, agent }: GroupQuery): boolean {
  const words = text.toLowerCase();
  const turns = episode.turns.filter((turn) => agent === '' || turn.agent === agent);
  const texts = turns.flatMap((turn) => [turn.text, ...turn.messages.map(([, content]) => content)]);
  if (agent === '') texts.push(task, data, episode.outcome, episode.failure ?? '', ...episode.log.flat());
  return texts.some((one) => one.toLowerCase().includes(words));
}

export function groupPage(
  file: Pick<GroupPage, 'groups' | 'episodes' | 'agents'>,
  matching: readonly MatchingGroup[],
  { offset, limit }: { readonly offset: number; readonly limit: number },
): GroupPage {
  return {
    groups: file.groups,
    episodes: file.episodes,
    agents: file.agents,
    matchingGroups: matching.length,
    matchingEpisodes: matching.reduce((sum, { matches }) => sum + matches.size, 0),
    offset,
    rows: matching.slice(offset, offset + limit).map(({ group: { task, title, episodes }, matches }) => ({
      task,
      title,
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
