import type { Episode } from '../../../src/base/nouns.js';
import type { EpisodeAdvantages } from '../../../src/method/store.js';

/** A turn as the page shows it. */
export interface ShownTurn {
  readonly agent: string;
  /** The last message that it read. */
  readonly read: string;
  readonly wrote: string;
  /** Undefined if no policy learns from it. */
  readonly advantage: number | undefined;
}

/** An episode as the page shows it. */
export interface ShownEpisode {
  readonly task: string;
  readonly reward: number;
  readonly turns: readonly ShownTurn[];
}

/** @param advantages One entry a turn: a number, or one a token */
export function shownEpisode({ task, score, turns }: Episode, advantages: EpisodeAdvantages = []): ShownEpisode {
  return {
    task: task.id,
    reward: score.team,
    turns: turns.map(({ agent, messages, text }, index) => {
      const advantage = advantages[index];
      const last = messages.at(-1)?.content;
      return {
        agent,
        read: typeof last === 'string' ? last : '',
        wrote: text,
        advantage: typeof advantage === 'object' ? advantage[0] : advantage,
      };
    }),
  };
}
