import { isIPv6 } from 'node:net';
import { serve } from '@hono/node-server';
import type { Hono } from 'hono';
import { messageOf, RecipeError } from '../../core/errors.js';

/** A server that listens. */
export interface Listening {
  readonly url: string;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** Lets an app answer at an address. @throws RecipeError when the address is in use or not this machine's */
export async function listen(app: Hono, { host, port }: { host: string; port: number }): Promise<Listening> {
  const server = serve({ fetch: app.fetch, hostname: host, port, overrideGlobalObjects: false });
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', (error) => reject(new RecipeError(messageOf(error), 'gateway')));
  });
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}
