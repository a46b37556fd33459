/** One session of an environment server: OpenEnv's messages over a WebSocket, one answer to each message, in order. */

import { isObject, issuesText, messageOf, WorldError, type WorldErrorCode } from '@drmas/engine/errors';
import { excerpt, waitMs } from '@drmas/engine/host';
import type { WebSocket } from 'ws';
import { z } from 'zod';

/** Screens and long texts are kilobytes. */
const LONGEST_ANSWER_BYTES = 16e6;
const CLOSE_MS = 2_000;

const CODES = [
  ...['INVALID_JSON', 'UNKNOWN_TYPE', 'VALIDATION_ERROR', 'EXECUTION_ERROR'],
  ...['CAPACITY_REACHED', 'FACTORY_ERROR', 'SESSION_ERROR'],
] as const;
/** After these errors the server ends the session. */
const LAST_WORDS: readonly string[] = ['CAPACITY_REACHED', 'FACTORY_ERROR', 'SESSION_ERROR'];

const data = z.record(z.string(), z.unknown());
const answerSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('observation'),
    data: z.object({
      observation: data,
      reward: z.union([z.number(), z.boolean()]).nullish(),
      done: z.boolean().nullish(),
    }),
  }),
  z.object({ type: z.literal('state'), data }),
  z.object({ type: z.literal('mcp'), data }),
  z.object({
    type: z.literal('error'),
    data: z.looseObject({ message: z.string(), code: z.enum(CODES), max_sessions: z.int().min(1).optional() }),
  }),
]);

type Answer = z.output<typeof answerSchema>;
export type AnswerData<Type extends Answer['type']> = Extract<Answer, { type: Type }>['data'];

export class Full extends WorldError {
  /** The most sessions of the server, if it says so. */
  readonly sessions: number | undefined;
  constructor(message: string, sessions: number | undefined) {
    super('CAPACITY_REACHED', message);
    this.sessions = sessions;
  }
}

export interface SocketOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** The longest time for the connection, and for each answer. */
  readonly timeoutMs: number;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: WorldError): void;
}

export class WorldSocket {
  /** Resolves when the server has ended the session, so that its place is free. */
  readonly ended: Promise<void>;
  readonly #socket: WebSocket;
  readonly #url: string;
  readonly #timeoutMs: number;
  #waiting: Waiting | undefined;
  /** Why no further message is sent. */
  #end: WorldError | undefined;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(socket: WebSocket, url: string, timeoutMs: number) {
    this.#socket = socket;
    this.#url = url;
    this.#timeoutMs = timeoutMs;
    this.ended = new Promise((resolve) => {
      socket.on('close', (code: number, reason: Buffer) => {
        const why = reason.length === 0 ? '' : `: ${excerpt(reason.toString(), 200)}`;
        this.#fail(this.#error('CLOSED', `the world has ended its session (code ${code}${why})`));
        resolve();
      });
    });
    socket.on('error', (error) => this.#fail(this.#error('CLOSED', `the connection broke: ${error.message}`)));
    socket.on('message', (text) => this.#receive(String(text)));
  }

  /** @throws WorldError if there is no connection in time */
  static async open(url: string, { headers, timeoutMs }: SocketOptions): Promise<WorldSocket> {
    const { WebSocket } = await import('ws');
    const address = `${url.replace(/^http/, 'ws')}/ws`;
    const limits = { handshakeTimeout: timeoutMs, maxPayload: LONGEST_ANSWER_BYTES, perMessageDeflate: false };
    const socket = new WebSocket(address, { headers, ...limits });
    const opened = new WorldSocket(socket, url, timeoutMs);
    return new Promise((resolve, reject) => {
      socket.once('open', () => resolve(opened));
      socket.once('error', (error) =>
        reject(opened.#error('UNREACHABLE', `no environment answers: ${messageOf(error) || 'no connection'}`)),
      );
    });
  }

  /**
   * Sends a message after the answers to all earlier ones, and returns the data of its answer.
   * @throws WorldError with the server's code, or if no answer of the type comes
   */
  request<Type extends 'observation' | 'state' | 'mcp'>(
    type: Type,
    message: Readonly<Record<string, unknown>>,
  ): Promise<AnswerData<Type>> {
    const answered = this.#last.then(async () => {
      const answer = await this.#exchange(JSON.stringify(message));
      if (answer.type === 'error') throw this.#errorOf(answer.data);
      if (answer.type !== type) throw this.#error('BAD_ANSWER', `expected an answer '${type}', got '${answer.type}'`);
      return answer.data as AnswerData<Type>;
    });
    this.#last = answered.catch(() => {});
    return answered;
  }

  /** Asks the server to end the session, and waits until it has. */
  async close(): Promise<void> {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send('{"type":"close"}');
    this.#fail(this.#error('CLOSED', 'the world is closed'));
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  async #exchange(text: string): Promise<Answer> {
    if (this.#end) throw this.#end;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#waiting = { resolve, reject };
        timer = setTimeout(() => {
          this.#fail(this.#error('TIMEOUT', `no answer within ${this.#timeoutMs} ms`));
          this.#socket.terminate(); // a late answer would be taken for the answer to the next message
        }, waitMs(this.#timeoutMs));
        this.#socket.send(text);
      });
    } finally {
      clearTimeout(timer);
      this.#waiting = undefined;
    }
  }

  #receive(text: string): void {
    const answer = this.#read(text);
    if (answer instanceof WorldError) {
      this.#fail(answer);
      this.#socket.terminate();
    } else if (answer.type === 'error' && LAST_WORDS.includes(answer.data.code)) this.#fail(this.#errorOf(answer.data));
    else this.#waiting?.resolve(answer);
  }

  #read(text: string): Answer | WorldError {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return this.#error('BAD_ANSWER', `the answer is not JSON: ${excerpt(text, 200)}`);
    }
    const answer = answerSchema.safeParse(value);
    if (answer.success) return answer.data;
    const type = isObject(value) ? `'${String(value.type)}' ` : '';
    return this.#error('BAD_ANSWER', `the answer ${type}is not OpenEnv's: ${issuesText(answer.error.issues)}`);
  }

  #errorOf({ message, code, max_sessions, errors }: AnswerData<'error'>): WorldError {
    const details = errors === undefined ? '' : `: ${excerpt(JSON.stringify(errors), 500)}`;
    const text = `${this.#url}: ${excerpt(message, 1000)}${details}`;
    return code === 'CAPACITY_REACHED' ? new Full(text, max_sessions) : new WorldError(code, text);
  }

  #error(code: WorldErrorCode, message: string): WorldError {
    return new WorldError(code, `${this.#url}: ${message}`);
  }

  /** No message is sent after the first failure. */
  #fail(error: WorldError): void {
    this.#end ??= error;
    this.#waiting?.reject(this.#end);
  }
}
