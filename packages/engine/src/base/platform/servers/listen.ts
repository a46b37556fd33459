import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type Socket } from 'node:net';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import { DialectError } from '../../core/errors.js';
import type { Guard, ServerPolicy } from './guards.js';

export interface Listening {
  readonly url: string;
  /**
   * Accepts no further connection, closes those without a whole request, and resolves when the other answers have been
   * sent.
   */
  drain(): Promise<void>;
  /** Closes all connections at once. */
  close(): Promise<void>;
}

/** A server's app, with the guard that decides which requests reach it. */
export interface GuardedApp {
  readonly app: Pick<Hono, 'fetch'>;
  readonly guard: Guard;
  /** The form of a refusal for lack of room. Default: an object with an error. */
  readonly refuse?: ServerPolicy['refuse'];
}

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly deadlines?: Partial<Deadlines>;
  readonly room?: Partial<Room>;
}

/**
 * Lets an app answer at an address. A request reaches the app if the guard lets it pass and its parts arrive in time.
 * Rejects with the system's error if the address is in use or not this machine's.
 */
export async function listen({ app, guard, refuse }: GuardedApp, options: ListenOptions): Promise<Listening> {
  const { host, port } = options;
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  const room = { ...defaultRoom, ...options.room };
  const server = createAdaptorServer({
    fetch: (request, env) => {
      // A connection with too many requests is closed, but Node has read others with them.
      const { incoming } = env as HttpBindings;
      if (incoming.socket.destroyed) return new Response(null, { status: 503 });
      const refusal =
        guard(request) ?? (connections.lacksRoom(incoming as IncomingMessage) ? busy(request, refuse) : undefined);
      if (refusal === undefined) return answerOf(app, connections.counted(request, incoming as IncomingMessage), env);
      connections.ignore(incoming as IncomingMessage);
      return refusal;
    },
    hostname: host,
    overrideGlobalObjects: false,
    serverOptions: {
      headersTimeout: deadlines.headMs,
      keepAliveTimeout: deadlines.idleMs,
      connectionsCheckingInterval: deadlines.checkMs,
      requestTimeout: 0, // `Connections` limits the time of bodies by their size
    },
  }) as Server;
  const connections = new Connections(server, deadlines, room);
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

/** The app's response. HEAD gets the head of the response to GET, whose body is cancelled: no client reads it. */
async function answerOf(app: GuardedApp['app'], request: Request, env: unknown): Promise<Response> {
  if (request.method !== 'HEAD') return app.fetch(request, env as object);
  const { url, headers, signal } = request;
  const answer = await app.fetch(new Request(url, { headers, signal }), env as object);
  await answer.body?.cancel();
  return new Response(null, answer);
}

// Deadlines of connections: a client that sends or reads too slowly keeps neither memory nor a place.

export interface Deadlines {
  readonly headMs: number;
  /** Time for the body of a request. Each kilobyte that has arrived adds `bodyMsPerKilobyte`. */
  readonly bodyMs: number;
  readonly bodyMsPerKilobyte: number;
  /** Time in which a client must take some of the answer that waits for it, or of a silent connection. */
  readonly readMs: number;
  /** How long a connection stays open after an answer. */
  readonly idleMs: number;
  readonly checkMs: number;
}

/** At 60 ms a kilobyte, a client must send about 16 kB a second: 16 MB may take 17 minutes, nothing 30 seconds. */
const defaultDeadlines: Deadlines = {
  headMs: 20_000,
  bodyMs: 30_000,
  bodyMsPerKilobyte: 60,
  readMs: 60_000,
  // Longer than clients and proxies keep a connection that they use again (aiohttp: 15 s, AWS and nginx: 60 s, Go:
  // 90 s), or they send a request just when it closes. OpenAI's Python client keeps one for 5 s, and so does Node.
  idleMs: 100_000,
  checkMs: 1000,
};

/** The connections and bytes that all clients together may take. */
export interface Room {
  /** A connection more closes the oldest one without a whole request. */
  readonly connections: number;
  /** Bytes of bodies that are on their way. A request that would take more is refused, unless its body is small. */
  readonly bodyBytes: number;
}

const defaultRoom: Room = { connections: 1000, bodyBytes: 256e6 };
/** A body of this size passes in any case, so that clients with usual requests are answered beside a flood. */
const SMALL_BODY = 64e3;

const BUSY = 'the server receives too many long bodies: try again later';
const plainly: ServerPolicy['refuse'] = ({ status, code, message }) =>
  Response.json({ error: { code, message } }, { status });

function busy(request: Request, refuse = plainly): Response {
  const answer = refuse(new DialectError(503, 'busy', BUSY), request);
  answer.headers.set('connection', 'close');
  answer.headers.set('retry-after', '1');
  return answer;
}

/**
 * The most requests of a connection that wait for their answers. Clients send one after another; Node would hand over
 * thousands that come in one piece, each with its files and memory.
 */
const MOST_AT_ONCE = 32;

const REQUEST_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly began: number;
  /** The bytes that its connection had read at the request's head. */
  readonly bytesBefore: number;
}

const isInChunks = ({ headers }: IncomingMessage) => headers['transfer-encoding'] !== undefined;
const declaredBytes = (request: IncomingMessage) =>
  isInChunks(request) ? 0 : Number(request.headers['content-length'] ?? 0);

class Connections {
  readonly #deadlines: Deadlines;
  /** The requests of each connection that have no whole answer yet. */
  readonly #sockets = new Map<Socket, number>();
  readonly #exchanges = new Set<Exchange>();
  readonly #room: Room;
  /** Refused requests: Node drops the rest of their bodies. */
  readonly #ignored = new WeakSet<IncomingMessage>();
  /** The bytes of bodies in chunks that the app has read. `bytesBefore` counts those that come with the head. */
  readonly #read = new WeakMap<IncomingMessage, number>();
  #draining = false;

  constructor(server: Server, deadlines: Deadlines, room: Room) {
    this.#deadlines = deadlines;
    this.#room = room;
    server.on('connection', (socket: Socket) => {
      this.#makeRoom();
      this.#sockets.set(socket, 0);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const exchange = { request, response, began: performance.now(), bytesBefore: socket.bytesRead };
      this.#exchanges.add(exchange);
      if (this.#count(socket, 1) > MOST_AT_ONCE) socket.destroy();
      response.once('close', () => {
        this.#count(socket, -1);
        if (request.complete) this.#exchanges.delete(exchange);
        if (this.#draining && !this.#isAnswering(socket)) socket.destroySoon();
      });
    });
    server.setTimeout(deadlines.readMs, (socket) => {
      // An answer may take its time. If bytes of it wait all that time, the client does not read.
      if (!this.#isAnswering(socket) || socket.writableLength > 0) socket.destroy();
    });
    const timer = setInterval(() => this.#checkBodies(performance.now()), deadlines.checkMs);
    timer.unref();
    server.once('close', () => clearInterval(timer));
  }

  drain(): void {
    this.#draining = true;
    for (const socket of this.#sockets.keys()) if (!this.#isAnswering(socket)) socket.destroySoon();
  }

  lacksRoom(request: IncomingMessage): boolean {
    const own = declaredBytes(request);
    return own > SMALL_BODY && this.#lacksRoomFor(own);
  }

  #lacksRoomFor(own: number): boolean {
    const onTheirWay = [...this.#exchanges].reduce((sum, exchange) => sum + this.#bytesOf(exchange), 0);
    return onTheirWay > this.#room.bodyBytes && onTheirWay > own;
  }

  /**
   * The request. A body in chunks does not say how long it is, so it ends with an error when it no longer fits into the
   * room.
   */
  counted(request: Request, incoming: IncomingMessage): Request {
    if (!isInChunks(incoming) || request.body === null) return request;
    let length = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        length += chunk.byteLength;
        this.#read.set(incoming, length);
        if (length > SMALL_BODY && this.#lacksRoomFor(length)) throw new DialectError(503, 'busy', BUSY);
        controller.enqueue(chunk);
      },
    });
    const { url, method, headers, signal, body } = request;
    const options = { method, headers, signal, body: body.pipeThrough(counting), duplex: 'half' as const };
    return new Request(url, options);
  }

  ignore(request: IncomingMessage): void {
    this.#ignored.add(request);
  }

  /** The bytes of a body that is on its way: as many as its head declares, or as have come if these are more. */
  #bytesOf({ request, bytesBefore }: Exchange): number {
    if (request.complete || request.socket.destroyed || this.#ignored.has(request)) return 0;
    return Math.max(declaredBytes(request), this.#read.get(request) ?? 0, request.socket.bytesRead - bytesBefore);
  }

  #makeRoom(): void {
    if (this.#sockets.size < this.#room.connections) return;
    for (const socket of this.#sockets.keys()) if (!this.#isAnswering(socket)) return void socket.destroy();
  }

  /** Adds to the requests of a connection that wait for their answers; returns their number. */
  #count(socket: Socket, change: 1 | -1): number {
    const count = (this.#sockets.get(socket) ?? 0) + change;
    if (!socket.destroyed) this.#sockets.set(socket, count);
    return count;
  }

  #isAnswering(socket: Socket): boolean {
    for (const { request, response } of this.#exchanges)
      if (request.socket === socket && request.complete && !response.closed) return true;
    return false;
  }

  #checkBodies(now: number): void {
    const { bodyMs, bodyMsPerKilobyte } = this.#deadlines;
    for (const exchange of this.#exchanges) {
      const { request, response, began, bytesBefore } = exchange;
      const { socket } = request;
      if (socket.destroyed || (request.complete && response.closed)) this.#exchanges.delete(exchange);
      if (socket.destroyed || request.complete) continue;
      const earned = ((socket.bytesRead - bytesBefore) / 1000) * bodyMsPerKilobyte;
      if (now - began < bodyMs + earned) continue;
      if (!response.headersSent) socket.write(REQUEST_TIMEOUT);
      socket.destroySoon();
    }
  }
}
