import { isIP } from 'node:net';
import { serve } from '@hono/node-server';
import type { Hono } from 'hono';
import { ArgumentError, messageOf } from '../core/errors.js';

/** An app that answers at an address. */
export interface ServedPort {
  readonly url: string;
  /** Accepts no further connection, ends those on which nothing happens, and resolves when the last one has ended. */
  close(): Promise<void>;
}

/** Whether only this machine reaches an address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** Lets an app answer at an address. @throws ArgumentError when the address is in use or not this machine's */
export async function servePort(app: Hono, { host, port }: { host: string; port: number }): Promise<ServedPort> {
  const server = serve({ fetch: app.fetch, hostname: host, port, overrideGlobalObjects: false });
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve);
    server.once('error', (error) => reject(new ArgumentError(`${host}:${port} cannot be used: ${messageOf(error)}`)));
  });
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeIdleConnections' in server) server.closeIdleConnections();
      }),
  };
}
