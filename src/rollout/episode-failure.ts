import type { FailureReason } from '../core/episode.js';

/** The error that ends an episode early. `playEpisode` catches it and records it as `Episode.failure`. */
export class EpisodeFailure extends Error {
  override readonly name = 'EpisodeFailure';
  readonly reason: FailureReason;
  constructor(reason: FailureReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
