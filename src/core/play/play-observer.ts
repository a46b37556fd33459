/** Who is told what is being played while it is played: progress and traces are made of it, and no event keeps it. */
import type { Episode, Turn } from '../episode.js';
import type { Task } from '../task.js';

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
  /** An episode of the round begins. */
  begun?(episode: { readonly task: Task; readonly sample: number }): EpisodeObserver | undefined;
  /** An episode of the round is over. */
  ended(episode: Episode): void;
}

export interface EpisodeObserver {
  /** Runs the team's code, where that is in this thread. */
  within<T>(run: () => T): T;
  /** A call of an agent was answered. */
  answered(turn: AnsweredTurn, time: CallTime): void;
  /** The episode is over; not called where the run was interrupted before. */
  ended(episode: Episode): void;
}

/** A turn without what its agent's parser made of it, which may be anything. */
export type AnsweredTurn = Omit<Turn, 'value'>;

/** When a model was asked and when it had answered, in milliseconds since 1970, with fractions. */
export interface CallTime {
  readonly start: number;
  readonly end: number;
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

/** One observer for several. */
export function observersTogether(observers: readonly PlayObserver[]): PlayObserver {
  return {
    round(round) {
      const rounds = observers.map((observer) => observer.round(round));
      return {
        begun(episode) {
          const all = rounds.flatMap((each) => each.begun?.(episode) ?? []);
          if (all.length === 0) return undefined;
          return {
            within: (run) => all.reduceRight((inner, each) => () => each.within(inner), run)(),
            answered(turn, time) {
              for (const each of all) each.answered(turn, time);
            },
            ended(played) {
              for (const each of all) each.ended(played);
            },
          };
        },
        ended(episode) {
          for (const each of rounds) each.ended(episode);
        },
      };
    },
  };
}
