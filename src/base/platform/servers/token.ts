import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares digests, so that the comparison's duration reveals nothing about the token. */
export function isEqual(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}
