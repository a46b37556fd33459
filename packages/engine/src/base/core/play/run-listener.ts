/** The one interface for everything that watches a run: a program's sinks, trackers, the terminal, the planner. */
import type { Episode, Turn } from '../episode.js';
import type { RunEvent } from '../events.js';
import type { Task } from '../task.js';

/** The purpose of an episode. Each phase has its random streams; `baseline` is the greedy episode of ReMax. */
export type Phase = 'training' | 'evaluation' | 'baseline';

/** Episodes that are played together. */
export interface Round {
  readonly phase: Phase;
  readonly step: number;
  readonly episodes: number;
}

/** The part of `RunListener` that receives events. */
export interface EventSink {
  /** Names the receiver in warnings. */
  readonly name?: string;
  /** Receives every event after it was logged. */
  event(event: RunEvent): void | Promise<void>;
  /** The run has ended: no more events come. */
  close?(): void | Promise<void>;
}

/**
 * Watches a run. Every method is optional. drmas calls the methods inside the run: an error ends the run, unless a
 * guard wraps the listener. drmas guards trackers and sinks with `event`.
 */
export interface RunListener extends Partial<EventSink> {
  /** Receives messages for a person. The event log does not keep them. */
  notice?(message: string): void;
  /** A round of episodes begins. */
  round?(round: Round): void;
  /** An episode of a round begins. Returns a listener for this episode. */
  episode?(begun: BegunEpisode): EpisodeListener | undefined;
}

/** An episode when it begins. */
export interface BegunEpisode {
  /** The same object that `RunListener.round` received. */
  readonly round: Round;
  readonly task: Task;
  readonly sample: number;
}

/** Watches one episode. Episodes that a worker of a queue plays report only their end. */
export interface EpisodeListener {
  /** Runs the team's code, if the code runs in this thread. */
  within?<T>(run: () => T): T;
  /** A model has answered a call of an agent. */
  answered?(turn: AnsweredTurn, time: CallTime): void;
  /** The episode is over. Not called if the run was interrupted before. */
  ended?(episode: Episode): void;
}

/** A turn without its parsed value, which may be of any type. */
export type AnsweredTurn = Omit<Turn, 'value'>;

/** The times of a model's request and of its reply, in milliseconds since 1970, with fractions. */
export interface CallTime {
  readonly start: number;
  readonly end: number;
}

/** The progress of a round. */
export interface PlayProgress extends Round {
  /** Episodes that are over. */
  readonly done: number;
  /** Episodes that are over and failed. */
  readonly failed: number;
}

/** Counts the episodes of a round as they end. `onProgress` is called when a round begins and after each episode. */
export function progressListener(onProgress: (progress: PlayProgress) => void): RunListener {
  const counts = new WeakMap<Round, { done: number; failed: number }>();
  return {
    round(round) {
      const count = { done: 0, failed: 0 };
      counts.set(round, count);
      onProgress({ ...round, ...count });
    },
    episode: ({ round }) => ({
      ended({ failure }) {
        const count = counts.get(round) ?? { done: 0, failed: 0 };
        count.done++;
        if (failure !== undefined) count.failed++;
        onProgress({ ...round, ...count });
      },
    }),
  };
}

/** One listener that passes each call on to several listeners, in their order. */
export function listenersTogether(listeners: readonly RunListener[]): RunListener {
  return {
    event(event) {
      for (const each of listeners) void each.event?.(event);
    },
    notice(message) {
      for (const each of listeners) each.notice?.(message);
    },
    round(round) {
      for (const each of listeners) each.round?.(round);
    },
    episode(begun) {
      const heard = listeners.flatMap((each) => each.episode?.(begun) ?? []);
      return heard.length === 0 ? undefined : episodeListenersTogether(heard);
    },
    async close() {
      await Promise.all(listeners.map((each) => each.close?.()));
    },
  };
}

function episodeListenersTogether(listeners: readonly EpisodeListener[]): EpisodeListener {
  const within = listeners.filter((each) => each.within !== undefined);
  const answered = listeners.filter((each) => each.answered !== undefined);
  return {
    ...(within.length > 0 && {
      within: (run) => within.reduceRight((inner, each) => () => each.within?.(inner) as never, run)(),
    }),
    ...(answered.length > 0 && {
      answered(turn, time) {
        for (const each of answered) each.answered?.(turn, time);
      },
    }),
    ended(episode) {
      for (const each of listeners) each.ended?.(episode);
    },
  };
}
