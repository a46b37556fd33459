/** Who may look: everybody on this machine, and nobody else without the token. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { ArgumentError } from '../core/errors.js';
import { isLoopback } from '../platform/listen.js';

const COOKIE = 'drmas-watch';
/** The fewest characters of a token: it can be tried by anybody who reaches the port. */
const SHORTEST_TOKEN = 12;

/**
 * Requires a token where other machines can connect.
 * @throws ArgumentError before anything listens, saying what is missing
 */
export function checkAccess(host: string, token: string | undefined): void {
  if (token !== undefined && (token.length < SHORTEST_TOKEN || !/^[\w.~+/=-]+$/.test(token)))
    throw new ArgumentError(
      `--token: expected at least ${SHORTEST_TOKEN} letters, digits or any of - . _ ~ + / =, got ${token.length} characters`,
    );
  if (token === undefined && !isLoopback(host))
    throw new ArgumentError(
      `--host ${host}: other machines could read the runs; give a token of at least ${SHORTEST_TOKEN} characters with --token, or leave --host out`,
    );
}

/**
 * Lets a request pass that carries the token: in its address (which becomes a cookie), as a cookie, or as a bearer.
 * Without a token, only requests to a name of this machine pass: no web page can reach the server through a name of its
 * own that leads here.
 */
export function requireAccess(token: string | undefined): MiddlewareHandler {
  return async (context, next) => {
    if (token === undefined) {
      const { hostname } = new URL(context.req.url);
      if (!isLoopback(hostname)) return context.text('this server answers to localhost only', 403);
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
