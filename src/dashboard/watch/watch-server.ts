import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { ArgumentError, DialectError, messageOf, RunError } from '@drmas/engine/errors';
import { chosenToken, type Environment, type GuardedApp, guardOf, listen } from '@drmas/engine/platform';
import { Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { z } from 'zod';
import type { FeedMessages } from '../../runs/analysis.js';
import { pageDirectory } from '../report/page.js';
import { addEpisodeRoutes } from './episodes/episode-routes.js';
import { followFolder, followRuns } from './event-feed.js';
import { RunCatalog } from './run-catalog.js';
import { addTalkRoutes, MOST_BYTES, TalkService } from './talk/talk-service.js';

/** The default port. If it is in use, a free one is chosen. */
const PORT = 7373;

interface WatchOptions {
  /** A run, an ablation or a folder of runs. Undefined: a run that is being prepared; `show` names it. */
  readonly folder: string | undefined;
  /** Default: this machine only. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** The token that a browser must send; by default DRMAS_TOKEN of the environment, if it is set. */
  readonly token?: string | undefined;
  readonly environment?: Environment;
  /** Names besides those of this machine that browsers may reach the server under. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Kernel threads for answers of agents. Default 1. */
  readonly threads?: number | undefined;
}

export interface WatchServer {
  /** The address to open, with the token if there is one. */
  readonly url: string;
  readonly runs: number;
  /** Shows another run, ablation or folder of runs from now on. */
  readonly show: (folder: string) => void;
  close(): Promise<void>;
}

/**
 * Serves the dashboard of a folder of runs. It reads their files and writes nothing.
 * @throws ArgumentError when the host needs a token or the port is in use, RunError when the folder cannot be read; the
 * server then does not listen
 */
export async function startWatching(options: WatchOptions): Promise<WatchServer> {
  const { folder, host = '127.0.0.1', port, threads, allowedHosts } = options;
  const token = chosenToken(options.token, options.environment ?? {}, host);
  const page = pageDirectory();
  const catalog = new RunCatalog(folder);
  const runs = (await catalog.refresh()).length;
  const ending = new AbortController();
  const talk = new TalkService({ threads });
  const app = watchApp({ catalog, talk, page, signal: ending.signal });
  const guard = watchGuard(token, allowedHosts);
  const listening = await listen({ app, guard }, { host, port: port ?? PORT })
    .catch((error: unknown) => {
      if (port !== undefined) throw error;
      return listen({ app, guard }, { host, port: 0 });
    })
    .catch((error: unknown) => {
      throw new ArgumentError(`the dashboard cannot listen on ${host}, port ${port ?? PORT}: ${messageOf(error)}`);
    });
  return {
    url: `${listening.url}/${token === undefined ? '' : `?token=${encodeURIComponent(token)}`}`,
    runs,
    show: (path) => catalog.show(path),
    async close() {
      ending.abort();
      await talk.close();
      await listening.close();
    },
  };
}

const COOKIE = 'drmas-watch';

/** The page may load only its own script, style and data, and no other page may embed it in a frame. */
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

interface WatchAppOptions {
  readonly catalog: RunCatalog;
  readonly talk: TalkService;
  readonly page: string;
  readonly signal: AbortSignal;
}

/** Lets browsers of this machine pass, or browsers and programs with the token. */
export const watchGuard = (token: string | undefined, allowedHosts?: readonly string[]): GuardedApp['guard'] =>
  guardOf({
    access: token === undefined ? { type: 'local' } : { type: 'token', token, cookie: COOKIE },
    allowedHosts,
    mostBytes: MOST_BYTES,
    refuse: ({ status, message }) => Response.json({ error: message }, { status, headers: SECURITY }),
  });

/** The dashboard as an application: the page and the routes for its data. It writes nothing. */
export function watchApp({ catalog, talk, page, signal }: WatchAppOptions): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(SECURITY)) context.res.headers.set(name, value);
    context.res.headers.delete('transfer-encoding'); // Node adds it, unless the client speaks HTTP 1.0
  });
  app.onError((error) => {
    if (error instanceof z.ZodError) return Response.json({ error: z.prettifyError(error) }, { status: 400 });
    const status = error instanceof DialectError ? error.status : error instanceof RunError ? 404 : 500;
    return Response.json({ error: messageOf(error) }, { status });
  });

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
  addTalkRoutes(app, catalog, talk);

  app.get('/*', async (context) => {
    const name = context.req.path === '/' ? '/index.html' : context.req.path;
    const type = TYPES[extname(name)];
    if (type === undefined || !/^\/[\w.-]+$/.test(name)) return context.notFound();
    const content = await readFile(join(page, name)).catch(() => undefined);
    return content === undefined ? context.notFound() : context.body(content, 200, { 'content-type': type });
  });
  return app;
}
