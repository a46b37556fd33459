import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { ArgumentError } from '../../core/errors.js';

/** The shortest token of a server that other machines reach, in characters: all of them can try tokens. */
const SHORTEST_TOKEN = 12;

/** Compares digests, so that the comparison's duration reveals nothing about the token. */
export function isEqual(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(token));
}

/** A new token. It begins as the official Tinker client wants keys to begin. */
export const newToken = (): string => `tml-${randomBytes(24).toString('base64url')}`;

/**
 * The token of a server: the flag's, else `DRMAS_TOKEN` of the environment, else undefined.
 * @throws ArgumentError for a token that no client can send, and if other machines could reach the server without a
 *   token that is hard to guess
 */
export function chosenToken(
  flag: string | undefined,
  environment: { readonly [name: string]: string | undefined },
  host: string,
): string | undefined {
  const token = flag ?? environment.DRMAS_TOKEN;
  if (token === '') throw new ArgumentError('the token is empty');
  if (token !== undefined && !/^[!-~]+$/.test(token))
    throw new ArgumentError('the token may have only letters, digits and signs of ASCII, without spaces');
  const wish = `set a token of at least ${SHORTEST_TOKEN} characters as DRMAS_TOKEN in the environment or with --token`;
  if (token === undefined && !isLoopback(host))
    throw new ArgumentError(`other machines can reach ${host}: ${wish}, or omit --host`);
  if (token !== undefined && token.length < SHORTEST_TOKEN && !isLoopback(host))
    throw new ArgumentError(`other machines can reach ${host} and try tokens: ${wish}; got ${token.length}`);
  return token;
}

/** Whether only this machine reaches an address, or a host as an address writes it. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
