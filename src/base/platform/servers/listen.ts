import { type AddressInfo, isIP } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';

/** An app that answers at an address. */
export interface Listening {
  readonly url: string;
  /** Accepts no further connection, closes idle ones, and resolves when the last one has closed. */
  drain(): Promise<void>;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Whether only this machine reaches an address, or a host as an address writes it. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));

/** Lets an app answer at an address. Rejects with the system's error when it is in use or not this machine's. */
export async function listen(
  { fetch }: Pick<Hono, 'fetch'>,
  { host, port }: { host: string; port: number },
): Promise<Listening> {
  const server = createAdaptorServer({ fetch, hostname: host, overrideGlobalObjects: false });
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
      if ('closeIdleConnections' in server) server.closeIdleConnections();
      return done;
    },
    close: () => {
      const done = closed();
      if ('closeAllConnections' in server) server.closeAllConnections();
      return done;
    },
  };
}
