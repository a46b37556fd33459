/** A server on this machine that answers as a test wants, even against the protocol. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const servers = new Set<Server>();
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});

/** Listens until the test is over; `requests` grows with every request. */
export async function webServer(handler: (received: Asked, response: ServerResponse) => void) {
  const requests: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const received = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
    requests.push(received);
    handler(received, response);
  });
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Sends every request on to the same path below `to`. */
export const redirecting = (status: number, to: string) =>
  webServer(({ path }, response) => void response.writeHead(status, { location: `${to}${path}` }).end());
