/** Who is told what is being played while it is played: progress and traces are made of it, and no event keeps it. */
import type { Episode } from '../episode.js';

/** The purpose of an episode. Each phase has its random streams; `baseline` is the greedy episode of ReMax. */
export type Phase = 'training' | 'evaluation' | 'baseline';

/** Episodes that are played together. */
export interface Round {
  readonly phase: Phase;
  readonly step: number;
  readonly episodes: number;
}

export interface PlayObserver {
  /** A round begins. */
  round(round: Round): RoundObserver;
}

export interface RoundObserver {
  /** An episode of the round is over. */
  ended(episode: Episode): void;
}

/** How far a round has come. */
export interface PlayProgress extends Round {
  /** Episodes that are over, and those of them that failed. */
  readonly done: number;
  readonly failed: number;
}

/** Counts the episodes of a round as they end. */
export function progressObserver(onProgress: (progress: PlayProgress) => void): PlayObserver {
  return {
    round(round) {
      let done = 0;
      let failed = 0;
      onProgress({ ...round, done, failed });
      return {
        ended({ failure }) {
          done++;
          if (failure !== undefined) failed++;
          onProgress({ ...round, done, failed });
        },
      };
    },
  };
}
