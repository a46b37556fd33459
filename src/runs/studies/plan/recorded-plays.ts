/** Records the calls and times of episodes while they are played, for the simulation. */
import type { CallTime, EpisodeListener, RunListener } from '@drmas/engine/host';
import type { ScheduledCall, ScheduledEpisode } from './schedule.js';

interface RecordedCall extends CallTime {
  readonly agent: string;
  readonly promptTokens: number;
  readonly responseTokens: number;
}

interface TimedEpisode {
  readonly began: number;
  readonly calls: RecordedCall[];
  ended: number;
}

/** The same clock as `CallTime`. */
const now = () => performance.timeOrigin + performance.now();

/** Records finished episodes in the order in which they started. */
export class RecordedPlays implements RunListener {
  #episodes: TimedEpisode[] = [];

  episode(): EpisodeListener {
    const episode: TimedEpisode = { began: now(), calls: [], ended: Number.NaN };
    this.#episodes.push(episode);
    return {
      answered({ agent, prompt, response }, time) {
        episode.calls.push({ ...time, agent, promptTokens: prompt.length, responseTokens: response.length });
      },
      ended() {
        episode.ended = now();
      },
    };
  }

  /**
   * Removes and returns the finished episodes.
   * @param waits Seconds before calls, by agent, of episodes that were played alone. They replace the recorded waits,
   *   which include work on other episodes
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

  /** The waits of the finished episodes. The episodes stay recorded. */
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

/** The key of the time after the last call. No agent has this name. */
const REST = '';

function scheduled({ began, calls, ended }: TimedEpisode): {
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
      // An endpoint reports no tokens: its whole time is a wait.
      const elsewhere = promptTokens + responseTokens === 0 ? end - start : 0;
      return { agent, after, wait: Math.max(0, start - from + elsewhere) / 1e3, promptTokens, responseTokens };
    }),
    rest: Math.max(0, ended - last) / 1e3,
  };
}
