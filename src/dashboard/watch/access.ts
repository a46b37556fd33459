/** Access control: local programs need no token, other machines do. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { ArgumentError } from '../../base/errors.js';
import { isLoopback } from '../../base/platform.js';

const COOKIE = 'drmas-watch';
/** The shortest token, in characters: everybody who reaches the port can try tokens. */
const SHORTEST_TOKEN = 12;

/**
 * Requires a token if other machines can connect.
 * @throws ArgumentError before the server listens, with the missing flag
 */
export function checkAccess(host: string, token: string | undefined): void {
  if (token !== undefined && (token.length < SHORTEST_TOKEN || !/^[\w.~+/=-]+$/.test(token)))
    throw new ArgumentError(
      `--token: expected at least ${SHORTEST_TOKEN} letters, digits or any of - . _ ~ + / =, got ${token.length} characters`,
    );
  if (token === undefined && !isLoopback(host))
    throw new ArgumentError(
      `--host ${host}: other machines could read the runs; set a token of at least ${SHORTEST_TOKEN} characters with --token, or omit --host`,
    );
}

/**
 * Accepts a request that has the token: in its address (then it is stored in a cookie), as a cookie, or as a bearer
 * token. Without a token, accepts only requests to a name of this machine, so that a web page cannot reach the server
 * through a domain that resolves to this machine.
 */
export function requireAccess(token: string | undefined): MiddlewareHandler {
  return async (context, next) => {
    if (token === undefined) {
      const { hostname } = new URL(context.req.url);
      if (!isLoopback(hostname)) return context.text('this server accepts requests for localhost only', 403);
      return next();
    }
    const given = context.req.query('token');
    if (given !== undefined && equal(given, token)) {
      setCookie(context, COOKIE, token, { httpOnly: true, sameSite: 'Strict', path: '/' });
      if (context.req.path === '/') return context.redirect('/');
      return next();
    }
    const bearer = context.req.header('authorization')?.replace(/^Bearer /, '');
    const known = [bearer, getCookie(context, COOKIE)].some((one) => one !== undefined && equal(one, token));
    if (!known) return context.text('open the address with its ?token=... once', 401);
    return next();
  };
}

const digest = (text: string) => createHash('sha256').update(text).digest();
const equal = (a: string, b: string) => timingSafeEqual(digest(a), digest(b));
