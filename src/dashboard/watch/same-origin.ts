import type { MiddlewareHandler } from 'hono';

/**
 * Refuses requests that change something if they come from a page of another origin. Browsers send the page's origin;
 * other programs send none.
 */
export const requireSameOrigin: MiddlewareHandler = async (context, next) => {
  const { method, url } = context.req;
  if (method === 'GET' || method === 'HEAD') return next();
  const site = context.req.header('sec-fetch-site');
  const origin = context.req.header('origin');
  const foreign = site === undefined ? origin !== undefined && hostOf(origin) !== new URL(url).host : !OWN.has(site);
  if (foreign) return context.json({ error: 'pages of other origins may not send this request' }, 403);
  return next();
};

/** `none` is an action of the user, such as typing an address. */
const OWN: ReadonlySet<string> = new Set(['same-origin', 'none']);

const hostOf = (origin: string) => (URL.canParse(origin) ? new URL(origin).host : undefined);
