/** The messages between the page and the workers that train, and the episodes in them. */
import type { RunEvent } from '@drmas/engine/events';
import type { PlayProgress } from '@drmas/engine/host';
import type { Episode, Turn } from '@drmas/engine/nouns';
import type { EpisodeAdvantages } from '../../../../src/method/store.js';
import type { RunSettings } from './repair-recipe.js';

export type ToTab =
  | { readonly type: 'start'; readonly settings: RunSettings; readonly warmStart: string }
  | { readonly type: 'pause' }
  | { readonly type: 'continue' };

export type FromTab =
  | { readonly type: 'event'; readonly event: RunEvent }
  | { readonly type: 'episode'; readonly step: number; readonly episode: ShownEpisode }
  | { readonly type: 'tries'; readonly tries: readonly NameTry[] }
  | { readonly type: 'progress'; readonly progress: PlayProgress }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly message: string };

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

/** The parts of an episode, as it was played or as it is stored, that the page reads. */
type Readable = Pick<Episode, 'task' | 'score'> & {
  readonly turns: readonly Pick<Turn, 'agent' | 'messages' | 'text'>[];
};

/** @param advantages One entry a turn: a number, or one a token */
export function shownEpisode({ task, score, turns }: Readable, advantages: EpisodeAdvantages = []): ShownEpisode {
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

/** A try of the fixer to replace a name that was removed. */
export interface NameTry {
  /** The name that the toolbox has no more. */
  readonly former: string;
  readonly passed: boolean;
}

/** The tries in the episodes of a step. */
export function triesIn(episodes: readonly Pick<Readable, 'turns' | 'score'>[]): NameTry[] {
  return episodes.flatMap(({ turns, score }) => {
    const read = turns[1]?.messages.at(-1)?.content;
    const former = typeof read === 'string' ? /^([a-z]+): removed/.exec(read)?.[1] : undefined;
    return former === undefined ? [] : [{ former, passed: score.team > 0 }];
  });
}
