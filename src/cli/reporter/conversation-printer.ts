/** One problem's conversation before and after training, from the evaluations' episode files. */
import { turnText } from '@drmas/engine/nouns';
import type { StoredEpisode } from '../../method/store.js';
import { taskWords } from '../../runs/analysis.js';
import { columns, leftAligned } from './columns.js';
import { visible, wrap } from './text-layout.js';

export interface Pair {
  readonly before: StoredEpisode;
  readonly after: StoredEpisode;
}

/**
 * The task that improved most: one of its worst episodes before and one of its best after. Undefined if nothing
 * improved.
 */
export function choosePair(before: readonly StoredEpisode[], after: readonly StoredEpisode[]): Pair | undefined {
  const later = byTask(after);
  let best: { pair: Pair; gain: number } | undefined;
  for (const [task, earlier] of byTask(before)) {
    const now = later.get(task);
    if (now === undefined) continue;
    const gain = average(now) - average(earlier);
    if (best !== undefined && gain <= best.gain) continue;
    const worst = earlier.reduce((a, b) => (b.score.team < a.score.team ? b : a));
    const finest = now.reduce((a, b) => (b.score.team > a.score.team ? b : a));
    if (finest.score.team > worst.score.team) best = { pair: { before: worst, after: finest }, gain };
  }
  return best?.pair;
}

function byTask(episodes: readonly StoredEpisode[]): Map<string, [StoredEpisode, ...StoredEpisode[]]> {
  const tasks = new Map<string, [StoredEpisode, ...StoredEpisode[]]>();
  for (const episode of episodes) {
    if (episode.failure !== undefined) continue;
    const before = tasks.get(episode.task.id);
    if (before === undefined) tasks.set(episode.task.id, [episode]);
    else before.push(episode);
  }
  return tasks;
}

const average = (episodes: readonly StoredEpisode[]) =>
  episodes.reduce((sum, episode) => sum + episode.score.team, 0) / episodes.length;

export function pairLines({ before, after }: Pair, width: number): string[] {
  return [
    ...wrap(`the task that improved most: ${visible(describeTask(before))}`, width),
    `before training (reward ${before.score.team}):`,
    ...episodeLines(before, width),
    `after training (reward ${after.score.team}):`,
    ...episodeLines(after, width),
  ];
}

/** The length at which texts are cut. The episode file has the full texts. */
const LONGEST = 600;

/** A task in words; its name if it has none. */
export const describeTask = ({ task }: StoredEpisode): string => shorten(taskWords(task.data) ?? task.id);

const shorten = (text: string) => (text.length <= LONGEST ? text : `${text.slice(0, LONGEST)} ...`);

function episodeLines(episode: StoredEpisode, width: number): string[] {
  const indent = 2 + Math.max(...episode.turns.map((turn) => columns(turn.agent)), 0) + 2;
  return episode.turns.flatMap((turn) => {
    const text = `${shorten(visible(turnText(turn))).trim() || '(nothing)'}${turn.valid ? '' : '  (invalid)'}`;
    return wrap(text, Math.max(20, width - indent)).map((line, index) =>
      index === 0 ? `  ${leftAligned(`${turn.agent}:`, indent - 2)}${line}` : `${' '.repeat(indent)}${line}`,
    );
  });
}
