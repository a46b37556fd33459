/** Episodes as a schedule sees them, recorded while they are played. */
import type { CallTime, EpisodeObserver, PlayObserver } from '../../core/play/play-observer.js';
import type { ScheduledCall, ScheduledEpisode } from './schedule.js';

interface RecordedCall extends CallTime {
  readonly agent: string;
  readonly promptTokens: number;
  readonly responseTokens: number;
}

interface RecordedEpisode {
  readonly began: number;
  readonly calls: RecordedCall[];
  ended: number;
}

/** The same clock as `CallTime`. */
const now = () => performance.timeOrigin + performance.now();

/** Records the episodes that are over, in the order in which they began. */
export class RecordedPlays implements PlayObserver {
  #episodes: RecordedEpisode[] = [];

  round() {
    return { begun: () => this.#begin(), ended() {} };
  }

  #begin(): EpisodeObserver {
    const episode: RecordedEpisode = { began: now(), calls: [], ended: Number.NaN };
    this.#episodes.push(episode);
    return {
      within: (run) => run(),
      answered({ agent, prompt, response }, time) {
        episode.calls.push({ ...time, agent, promptTokens: prompt.length, responseTokens: response.length });
      },
      ended() {
        episode.ended = now();
      },
    };
  }

  /**
   * The episodes since the last time that they were taken.
   * @param waits What calls waited before, by agent, in episodes that had the machine to themselves: of others the
   *   recorded waits hold the work on their siblings too
   */
  take(waits?: ReadonlyMap<string, readonly number[]>): ScheduledEpisode[] {
    const over = this.#episodes.filter(({ ended }) => !Number.isNaN(ended));
    this.#episodes = [];
    let drawn = 0;
    return over.map((episode) => {
      const { calls, rest } = scheduled(episode);
      const known = (agent: string) => {
        const ofAgent = waits?.get(agent) ?? [];
        return ofAgent.length === 0 ? undefined : ofAgent[drawn++ % ofAgent.length];
      };
      return {
        calls: calls.map(({ agent, ...call }) => ({ ...call, wait: known(agent) ?? call.wait })),
        rest: known(REST) ?? rest,
      };
    });
  }

  /** The waits of the episodes since the last time that they were taken, which stay. */
  waits(): Map<string, number[]> {
    const waits = new Map<string, number[]>();
    const add = (agent: string, wait: number) => waits.set(agent, [...(waits.get(agent) ?? []), wait]);
    for (const episode of this.#episodes.filter(({ ended }) => !Number.isNaN(ended))) {
      const { calls, rest } = scheduled(episode);
      for (const { agent, wait } of calls) add(agent, wait);
      add(REST, rest);
    }
    return waits;
  }
}

/** Stands for what comes after the last call. No agent has this name. */
const REST = '';

function scheduled({ began, calls, ended }: RecordedEpisode): {
  readonly calls: readonly (ScheduledCall & { readonly agent: string })[];
  readonly rest: number;
} {
  const inOrder = [...calls].sort((a, b) => a.start - b.start);
  const last = Math.max(began, ...inOrder.map(({ end }) => end));
  return {
    calls: inOrder.map(({ agent, start, end, promptTokens, responseTokens }, position) => {
      let after: number | undefined;
      for (let i = 0; i < position; i++) {
        const { end: ended = Number.POSITIVE_INFINITY } = inOrder[i] ?? {};
        if (ended <= start && ended >= (after === undefined ? began : (inOrder[after]?.end ?? began))) after = i;
      }
      const from = after === undefined ? began : (inOrder[after]?.end ?? began);
      // An endpoint tells no tokens: nothing is sampled here while it is waited for.
      const elsewhere = promptTokens + responseTokens === 0 ? end - start : 0;
      return { agent, after, wait: Math.max(0, start - from + elsewhere) / 1e3, promptTokens, responseTokens };
    }),
    rest: Math.max(0, ended - last) / 1e3,
  };
}
