/**
 * A server on 127.0.0.1 that speaks the Tinker protocol like one of the measured servers, and fails when a test wants
 * it to.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { takesTime } from '../time-and-chance.js';
import { FakeEngine, Refusal } from './engine.js';
import type { FakeOptions, Fault } from './options.js';
import { behaviours, type FakeBehaviour } from './options.js';

export interface Logged {
  readonly path: string;
  readonly body: Record<string, unknown>;
}

export class TinkerFake {
  readonly url: string;
  /** Every request, in order of arrival. */
  readonly log: Logged[] = [];
  readonly #server: Server;
  readonly #options: FakeOptions;
  readonly #behaviour: FakeBehaviour;
  readonly #faults: { path: string; fault: Fault }[] = [];
  #engine: FakeEngine;

  private constructor(server: Server, options: FakeOptions, behaviour: FakeBehaviour, engine: FakeEngine) {
    this.#server = server;
    this.#options = options;
    this.#behaviour = behaviour;
    this.#engine = engine;
    const { port } = server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(options: FakeOptions): Promise<TinkerFake> {
    const behaviour = { ...behaviours[options.behaves ?? 'skyrl-jax'], ...options.changes };
    const engine = await FakeEngine.open(options, behaviour);
    let fake: TinkerFake | undefined;
    const server = createServer((request, response) => void fake?.respond(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    fake = new TinkerFake(server, options, behaviour, engine);
    return fake;
  }

  /** The next request to this path meets this fault; several wait in line. */
  inject(path: string, ...faults: readonly Fault[]): void {
    for (const fault of faults) this.#faults.push({ path, fault });
  }

  /** Nothing goes wrong any more. */
  calm(): void {
    this.#faults.length = 0;
  }

  /** A restart of the server keeps saved weights, and loses models, sessions and futures. */
  restart(): void {
    this.#engine = this.#engine.restarted();
  }

  /** The end of a session removes its models. */
  expire(): void {
    this.#engine.expire();
  }

  /** Loses the saved weights too. */
  forget(): void {
    this.#engine.forget();
  }

  get models(): number {
    return this.#engine.models.size;
  }

  count(path: string): number {
    return this.log.filter((each) => each.path === path).length;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').replace('/api/v1/', '');
    let text = '';
    for await (const part of request) text += part;
    const body = bodyOf(text);
    if (body === undefined) return send(response, 422, { detail: 'JSON decode error' });
    this.log.push({ path, body });
    if (this.#options.latencyMs !== undefined) await takesTime(this.#options.latencyMs);
    const at = this.#faults.findIndex((each) => each.path === path);
    const fault = at < 0 ? undefined : this.#faults.splice(at, 1)[0]?.fault;
    if (fault?.type === 'drop-before') return void request.socket.destroy();
    if (fault?.type === 'status') return send(response, fault.status, fault.body);
    const { apiKey } = this.#options;
    if (apiKey !== undefined && request.headers['x-api-key'] !== apiKey)
      return send(response, 401, { detail: 'Invalid API key' });
    try {
      const answer = path === 'retrieve_future' ? await this.#retrieve(body) : this.#engine.handle(path, body, fault);
      if (fault?.type === 'answer') return fault.answer(response, answer);
      if (fault?.type === 'drop-after') return void request.socket.destroy();
      send(response, 200, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) return send(response, 500, 'Internal Server Error');
      send(response, error.status, error.body);
    }
  }

  async #retrieve({ request_id }: Record<string, unknown>): Promise<unknown> {
    const outcome = await Promise.race([
      this.#engine.result(String(request_id)),
      takesTime(this.#options.pollMs ?? 5000).then(() => 'pending' as const),
    ]);
    if (outcome !== 'pending') return outcome;
    if (this.#behaviour.errors === 'error') return { type: 'try_again', queue_state: 'active' };
    throw new Refusal(408, { detail: 'Timeout waiting for result' });
  }
}

function bodyOf(text: string): Record<string, unknown> | undefined {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch {
    return undefined; // not JSON
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
