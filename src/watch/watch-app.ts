import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { z } from 'zod';
import { messageOf, RunError } from '../core/errors.js';
import type { FeedMessages } from '../report/analysis/feed.js';
import { requireAccess } from './access.js';
import { addEpisodeRoutes } from './episodes/episode-routes.js';
import { followFolder, followRuns } from './event-feed.js';
import type { RunCatalog } from './run-catalog.js';
import { requireSameOrigin } from './same-origin.js';
import type { TalkDesk } from './talk/talk-desk.js';
import { addTalkRoutes } from './talk/talk-routes.js';

/** Nothing but the page's own script, style and data; nobody may put it into a frame. */
const SECURITY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** What the server of the dashboard serves. */
export interface WatchAppOptions {
  readonly catalog: RunCatalog;
  /** Answers questions to agents. */
  readonly desk: TalkDesk;
  /** The directory of the built page. */
  readonly page: string;
  /** What a request must carry; without one, only requests to a name of this machine pass. */
  readonly token?: string | undefined;
  /** Ends all streams. */
  readonly signal: AbortSignal;
}

/** The dashboard as an application: the page, and what it reads of the runs. Nothing here writes. */
export function watchApp({ catalog, desk, page, token, signal }: WatchAppOptions): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(SECURITY)) context.res.headers.set(name, value);
  });
  app.use(requireAccess(token), requireSameOrigin);
  app.onError((error, context) =>
    error instanceof z.ZodError
      ? context.json({ error: z.prettifyError(error) }, 400)
      : context.json({ error: messageOf(error) }, error instanceof RunError ? 404 : 500),
  );

  app.get('/api/stream', (context) => {
    const names = context.req.queries('run') ?? [];
    return streamSSE(context, async (stream) => {
      const gone = new AbortController();
      stream.onAbort(() => gone.abort());
      const ended = AbortSignal.any([gone.signal, signal]);
      const messages = names.length === 0 ? followFolder(catalog, ended) : followRuns(catalog, names, ended);
      try {
        for await (const { type, data } of messages) await stream.writeSSE({ event: type, data: JSON.stringify(data) });
      } catch (error) {
        const failed: FeedMessages['failed'] = { message: messageOf(error) };
        await stream.writeSSE({ event: 'failed', data: JSON.stringify(failed) });
      }
    });
  });

  addEpisodeRoutes(app, catalog);
  addTalkRoutes(app, catalog, desk);

  app.get('/*', async (context) => {
    const name = context.req.path === '/' ? '/index.html' : context.req.path;
    const type = TYPES[extname(name)];
    if (type === undefined || !/^\/[\w.-]+$/.test(name)) return context.notFound();
    const content = await readFile(join(page, name)).catch(() => undefined);
    return content === undefined ? context.notFound() : context.body(content, 200, { 'content-type': type });
  });
  return app;
}
