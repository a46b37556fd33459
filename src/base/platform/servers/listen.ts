import type { Server } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { Connections, type Deadlines, defaultDeadlines } from './deadlines.js';
import type { Guard } from './guards.js';

/** An app that answers at an address. */
export interface Listening {
  readonly url: string;
  /**
   * Accepts no further connection, closes those without a whole request, and resolves when the other answers have been
   * sent.
   */
  drain(): Promise<void>;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** A server's app, with the guard that decides which requests reach it. */
export interface GuardedApp {
  readonly app: Pick<Hono, 'fetch'>;
  readonly guard: Guard;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly deadlines?: Partial<Deadlines>;
}

/**
 * Lets an app answer at an address. A request reaches the app if the guard lets it pass and its parts arrive in time.
 * Rejects with the system's error if the address is in use or not this machine's.
 */
export async function listen({ app, guard }: GuardedApp, options: ListenOptions): Promise<Listening> {
  const { host, port } = options;
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  const server = createAdaptorServer({
    fetch: (request, env) => guard(request) ?? app.fetch(request, env),
    hostname: host,
    overrideGlobalObjects: false,
    serverOptions: {
      headersTimeout: deadlines.headMs,
      connectionsCheckingInterval: deadlines.checkMs,
      requestTimeout: 0, // `Connections` limits the time of bodies by their size
    },
  }) as Server;
  const connections = new Connections(server, deadlines);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  const closed = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return {
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    drain: () => {
      const done = closed();
      connections.drain();
      return done;
    },
    close: () => {
      const done = closed();
      server.closeAllConnections();
      return done;
    },
  };
}
