import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * The secrets of a run's episodes. Each holds the episode's id, signed with a key that never leaves this object. A
 * secret can therefore be told from a guess, and its episode identified, long after the episode is over.
 */
export class EpisodeSecrets {
  readonly #key = randomBytes(32);

  secretOf(episode: string): string {
    return `drmas-${episode}-${this.#sign(episode).toString('hex')}`;
  }

  /** The episode of a secret; undefined if this object did not make the secret. */
  episodeOf(secret: string): string | undefined {
    const [, episode, signature] = /^drmas-(\w{1,32})-([0-9a-f]{64})$/.exec(secret) ?? [];
    if (episode === undefined || signature === undefined) return undefined;
    return timingSafeEqual(this.#sign(episode), Buffer.from(signature, 'hex')) ? episode : undefined;
  }

  #sign(episode: string): Buffer {
    return createHmac('sha256', this.#key).update(episode).digest();
  }
}
