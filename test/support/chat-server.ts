/** A server on this machine that speaks as much of OpenAI's protocol as a frozen agent needs. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';

interface Asked {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as it was sent. */
  readonly text: string;
  readonly body: {
    readonly model: string;
    readonly messages: readonly { readonly role: string; readonly content: string }[];
    readonly [field: string]: unknown;
  };
}

type Handler = (request: Asked, response: ServerResponse, index: number) => void;

const servers = new Set<Server>();
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});

/** Listens until the test is over; `asked` grows with every request. */
export async function chatServer(handler: Handler) {
  const requests: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const ask = { url: request.url ?? '', headers: request.headers, text: body, body: JSON.parse(body) };
    requests.push(ask);
    handler(ask, response, requests.length - 1);
  });
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

/** Answers as the protocol requires. Retries need not wait. */
export function say(response: ServerResponse, text: string, changes: Record<string, unknown> = {}): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }];
  json(response, { choices, usage: { prompt_tokens: 11, completion_tokens: 7 }, ...changes });
}

export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after-ms': '1' });
  response.end(JSON.stringify(value));
}

export const refuse = (response: ServerResponse, status: number, message = `status ${status}`) =>
  json(response, { error: { message } }, status);
