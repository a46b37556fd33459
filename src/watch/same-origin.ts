import type { MiddlewareHandler } from 'hono';

/**
 * Refuses what changes something where a page of another origin asks for it: a browser says whose page that is, and a
 * program says nothing.
 */
export const requireSameOrigin: MiddlewareHandler = async (context, next) => {
  const { method, url } = context.req;
  if (method === 'GET' || method === 'HEAD') return next();
  const site = context.req.header('sec-fetch-site');
  const origin = context.req.header('origin');
  const foreign = site === undefined ? origin !== undefined && hostOf(origin) !== new URL(url).host : !OWN.has(site);
  if (foreign) return context.json({ error: 'pages of other origins may not ask' }, 403);
  return next();
};

/** `none` is a person's own doing, such as typing an address. */
const OWN: ReadonlySet<string> = new Set(['same-origin', 'none']);

const hostOf = (origin: string) => (URL.canParse(origin) ? new URL(origin).host : undefined);
