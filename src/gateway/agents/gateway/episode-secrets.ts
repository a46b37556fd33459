import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Each holds its episode's id, signed with a key of this object: it is told from a guess long after the episode. */
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
