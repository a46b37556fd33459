import { significant } from '../../../../src/base/host.js';
import { mean } from '../../../../src/base/math.js';
import type { EpisodeDot, GroupRow } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';

/** The most episodes of a group that get a dot. */
const MOST_DOTS = 32;

/** A group in the list: its task, its mean reward, and a dot an episode. */
export function GroupLine({ row }: { readonly row: GroupRow | undefined }) {
  if (row === undefined) return <span class="faint">…</span>;
  const rewards = row.episodes.map(({ reward }) => reward);
  const [low, high] = [Math.min(...rewards, 0), Math.max(...rewards, 1)];
  return (
    <>
      <span class="task">{clean(row.task)}</span>
      <span class="dots">
        {row.episodes.slice(0, MOST_DOTS).map((episode) => (
          <Dot key={episode.sample} episode={episode} height={(episode.reward - low) / (high - low || 1)} />
        ))}
        <b>{significant(mean(rewards))}</b>
      </span>
    </>
  );
}

/** A bar as high as the reward; crossed if the episode failed, with a notch if an output was invalid. */
function Dot({ episode, height }: { readonly episode: EpisodeDot; readonly height: number }) {
  const { failed, invalid, matches, sample, reward } = episode;
  const kind = failed ? 'failed' : invalid ? 'invalid' : 'plain';
  const title = `sample ${sample}: reward ${significant(reward)}${failed ? ', failed' : ''}${invalid ? ', invalid output' : ''}`;
  return (
    <i class={`dot ${kind}${matches ? '' : ' other'}`} title={title}>
      <i style={{ height: `${Math.round(2 + 12 * height)}px` }} />
    </i>
  );
}
