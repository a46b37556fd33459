import type { FailureReason } from '../core/episode.js';

/** Ends an episode early. It is caught where the episode is played and becomes data there: `Episode.failure`. */
export class EpisodeFailure extends Error {
  override readonly name = 'EpisodeFailure';
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
