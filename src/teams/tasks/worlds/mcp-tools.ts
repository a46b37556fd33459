import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  ArgumentError,
  isObject,
  jsonObject,
  madeWith,
  messageOf,
  reasonOf,
  ToolServerError,
} from '@drmas/engine/errors';
import { byteText, excerpt, onAbort, unlessAborted } from '@drmas/engine/host';
import type { Tool, ToolCall } from '@drmas/engine/nouns';
import { soundFetch } from '@drmas/engine/platform';
import type {
  CallToolResult,
  Client,
  Tool as McpTool,
  StreamableHTTPClientTransport,
  Transport,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import { contentTexts } from './mcp-content.js';

/** A program that speaks MCP on its standard input and output. */
export interface ToolCommand {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Environment variables besides PATH, HOME and the like. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
}

/** The options of `mcpTools`. */
export interface McpToolsOptions {
  /**
   * The longest time for one answer.
   * @default 30_000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether each episode gets a connection of its own, and a process of its own if the server is a command. Needed for
   * a server that keeps a state.
   * @default false
   */
  readonly isolated?: boolean | undefined;
  /**
   * How long a shared connection stays open after the last episode that used it.
   * @default 1000
   */
  readonly idleMs?: number | undefined;
  /** Headers of each request to a server at an address, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The tools of a server, for one episode. */
export interface ToolSession {
  /** The tools as the server lists them now: a server may change its list at any time. */
  readonly tools: readonly Tool[];
  /**
   * Calls a tool, and returns the text for the tool's message. A tool that fails returns `error: ...`.
   * @throws ToolServerError if the server refuses the call or does not answer
   */
  call(call: Pick<ToolCall, 'name' | 'arguments'>): Promise<string>;
}

/** A server of tools that teams use. */
export interface McpTools {
  /** Connects if there is no connection. `signal` is the episode's. @throws ToolServerError */
  open(episode: { readonly signal: AbortSignal }): Promise<ToolSession>;
}

const ADDRESS = z.url({ protocol: /^https?$/ });
const serverSchema = z.union([
  ADDRESS,
  z.strictObject({
    command: z.string().min(1),
    args: z.array(z.string()).optional(),
    env: z.record(z.string(), z.string()).optional(),
    cwd: z.string().optional(),
  }),
]);
const optionsSchema = z.strictObject({
  timeoutMs: z.int().min(1).default(30_000),
  isolated: z.boolean().default(false),
  idleMs: z.int().min(0).default(1000),
  headers: z.record(z.string(), z.string()).default({}),
});

/** Pages and screens as text are far shorter. */
const LONGEST_ANSWER_BYTES = 16e6;

const TOO_LONG = `the answer is longer than ${byteText(LONGEST_ANSWER_BYTES)}`;

/** How long a server may take to end a session. */
const END_MS = 2000;

/** The end of a program's standard error, for the message of a program that does not start. */
const LONGEST_COMPLAINT = 1000;

interface Connection {
  readonly client: Client;
  /** The server's tools. It may change them while the connection is open. */
  listed: readonly McpTool[];
  /** Why the connection was ended from here; empty if it was not. */
  fault(): string;
  isOpen: boolean;
  /** Ends the session on the server too, which would keep it and its state. */
  close(): Promise<void>;
}

/**
 * The tools of an MCP server, at an address (Streamable HTTP) or started by a command, as tools of a team's agents. The
 * connection opens with the first episode and closes when no episode uses it, so nothing is left after a run. Needs
 * the official client: `npm install @modelcontextprotocol/client`.
 *
 * @throws ArgumentError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { agent, assistant, defineTeam, toolResult, user } from 'drmas';
 * import { mcpTools } from 'drmas/tasks';
 * import { z } from 'zod';
 *
 * const desk = mcpTools({ command: 'node', args: ['price-server.mjs'] });
 *
 * const team = defineTeam({
 *   task: z.object({ question: z.string(), answer: z.string() }),
 *   agents: { clerk: agent({ tools: 'hermes' }) },
 *   async play({ task, agents: { clerk }, signal }) {
 *     const { tools, call } = await desk.open({ signal });
 *     const messages = [user(task.question)];
 *     for (let turn = 0; turn < 4; turn++) {
 *       const reply = await clerk(messages, { tools });
 *       if (reply.toolCalls.length === 0) return reply.value;
 *       messages.push(assistant(reply));
 *       for (const one of reply.toolCalls) messages.push(toolResult(one, await call(one)));
 *     }
 *     return undefined;
 *   },
 *   reward: ({ outcome, task }) => outcome === task.answer,
 * });
 * ```
 */
export function mcpTools(server: string | ToolCommand, options: McpToolsOptions = {}): McpTools {
  const checked = madeWith(z.object({ server: serverSchema, options: optionsSchema }), { server, options }, 'mcpTools');
  const { timeoutMs, isolated, idleMs, headers } = checked.options;
  const at = typeof server === 'string' ? server : [server.command, ...(server.args ?? [])].join(' ');
  let shared: Promise<Connection> | undefined;
  let users = 0;
  let idle: ReturnType<typeof setTimeout> | undefined;

  const connect = async (): Promise<Connection> => {
    const { transport, complaint, fault } = await transportTo(server, headers);
    try {
      const { Client } = await clientModule();
      const onChanged = (_: unknown, tools: McpTool[] | null) => {
        if (tools !== null) connection.listed = tools; // if it cannot be read, the list stays
      };
      const client = new Client({ name: 'drmas', version: '1' }, { listChanged: { tools: { onChanged } } });
      const connection: Connection = { client, listed: [], isOpen: true, fault, close: () => end(connection) };
      client.onclose = () => {
        connection.isOpen = false;
      };
      client.onerror = () => {}; // the calls report it
      await client.connect(transport, { timeout: timeoutMs });
      connection.listed = (await client.listTools(undefined, { timeout: timeoutMs })).tools;
      return connection;
    } catch (error) {
      await transport.close().catch(() => {});
      const complained = complaint().trim();
      const why = `${at}: the server of tools does not answer: ${fault() || reasonOf(error)}`;
      throw new ToolServerError('unreachable', complained === '' ? why : `${why}; it wrote: ${complained}`);
    }
  };

  /** The connection of all episodes; a new one if the server has closed it. */
  const join = async (): Promise<Connection> => {
    for (;;) {
      shared ??= connect();
      const current = shared;
      const connection = await current.catch((error: unknown) => {
        if (shared === current) shared = undefined; // the next episode tries again
        throw error;
      });
      if (connection.isOpen) return connection;
      if (shared === current) shared = undefined;
    }
  };

  /** An episode has ended. Closes the connection if no other begins soon. */
  const leave = () => {
    if (--users > 0) return;
    clearTimeout(idle);
    idle = setTimeout(() => {
      const ending = shared;
      shared = undefined;
      void ending?.then((connection) => connection.close()).catch(() => {});
    }, idleMs);
  };

  const end = async (connection: Pick<Connection, 'client' | 'isOpen'>) => {
    connection.isOpen = false;
    const { transport } = connection.client;
    const ended = (transport as Partial<StreamableHTTPClientTransport> | undefined)?.terminateSession?.();
    await Promise.race([ended?.catch(() => {}), sleep(END_MS, undefined, { ref: false })]);
    await connection.client.close().catch(() => {}); // it gives up the request for the end
  };

  const callOn =
    (connection: Connection, signal: AbortSignal) =>
    async ({ name, arguments: text }: Pick<ToolCall, 'name' | 'arguments'>): Promise<string> => {
      const { client, fault } = connection;
      const given = argumentsOf(name, text);
      try {
        const options = { timeout: timeoutMs, signal, ...withoutPromise(connection, name) };
        const called = client.callTool({ name, arguments: given }, options);
        return textOf(await unlessAborted(called, signal));
      } catch (error) {
        if (isForgotten(connection, error)) void connection.close(); // the next episode opens another one
        signal.throwIfAborted();
        throw new ToolServerError(reasonFor(error), `${at}: ${name}: ${excerpt(fault() || reasonOf(error), 1000)}`);
      }
    };

  const sessionOn = (connection: Connection, signal: AbortSignal): ToolSession => ({
    get tools() {
      return connection.listed.map(toolOf);
    },
    call: callOn(connection, signal),
  });

  return {
    async open({ signal }) {
      signal.throwIfAborted();
      if (isolated) {
        const connection = await connect();
        const close = () => void connection.close();
        if (signal.aborted) close();
        onAbort(signal, close);
        signal.throwIfAborted();
        return sessionOn(connection, signal);
      }
      users++;
      clearTimeout(idle);
      onAbort(signal, leave);
      return sessionOn(await unlessAborted(join(), signal), signal);
    },
  };
}

/** Both in a `try`, so that bundlers accept that the package is absent. */
async function clientModule() {
  try {
    const client = await import('@modelcontextprotocol/client');
    return { ...client, ...(await import('@modelcontextprotocol/client/stdio')) };
  } catch (error) {
    throw new ArgumentError(`mcpTools needs \`npm install @modelcontextprotocol/client\`: ${messageOf(error)}`);
  }
}

async function transportTo(
  server: string | ToolCommand,
  headers: Readonly<Record<string, string>>,
): Promise<{ transport: Transport; complaint: () => string; fault: () => string }> {
  const { getDefaultEnvironment, StdioClientTransport, StreamableHTTPClientTransport } = await clientModule();
  let fault = '';
  if (typeof server === 'string') {
    const limited: typeof fetch = async (address, init) => {
      const response = await soundFetch(address as string | URL, init);
      const isStream = response.headers.get('content-type')?.includes('event-stream') === true;
      let length = 0;
      const counting = new TransformStream<Uint8Array, Uint8Array>({
        transform(part, controller) {
          // A stream may bring notices for hours. An event ends with an empty line.
          const text = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
          const end = isStream ? Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n')) : -1;
          length = end < 0 ? length + part.length : part.length - end;
          if (length <= LONGEST_ANSWER_BYTES) return controller.enqueue(part);
          fault = TOO_LONG;
          controller.error(new Error(fault));
          void transport.close(); // a call does not hear of an event's stream that broke
        },
      });
      return response.body === null ? response : new Response(response.body.pipeThrough(counting), response);
    };
    const transport = new StreamableHTTPClientTransport(new URL(server), {
      requestInit: { headers },
      fetch: limited,
    });
    return { transport, complaint: () => '', fault: () => fault };
  }
  const { command, args = [], env = {}, cwd } = server;
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...getDefaultEnvironment(), ...env },
    stderr: 'pipe',
    maxBufferSize: LONGEST_ANSWER_BYTES,
    ...(cwd === undefined ? {} : { cwd }),
  });
  // The system's error names only the command.
  if (cwd !== undefined && !existsSync(cwd)) fault = `there is no directory ${cwd}`;
  transport.onerror = ({ message }) => {
    if (/exceeded maximum size/.test(message)) fault = TOO_LONG; // it closes the connection
  };
  let errors = '';
  transport.stderr?.on('data', (part: unknown) => {
    errors = (errors + String(part)).slice(-LONGEST_COMPLAINT);
  });
  return { transport, complaint: () => errors, fault: () => fault };
}

const toolOf = ({ name, description, inputSchema }: McpTool): Tool => ({
  name,
  parameters: inputSchema,
  ...(description === undefined ? {} : { description }),
});

/**
 * The tool's definition without its output schema, for the client. With the schema, the client refuses a result that
 * breaks it, and each call if it cannot read the schema. Agents read the text of the result.
 */
function withoutPromise({ listed }: Connection, name: string): { readonly toolDefinition?: McpTool } {
  const tool = listed.find((each) => each.name === name);
  if (tool === undefined) return {};
  const { outputSchema: _, ...toolDefinition } = tool;
  return { toolDefinition };
}

function argumentsOf(name: string, text: string): Record<string, unknown> {
  const given = jsonObject(text);
  if (given !== undefined) return given;
  throw new ToolServerError('refused', `${name}: the arguments are no JSON object: ${excerpt(text)}`);
}

function textOf({ content, structuredContent, isError }: CallToolResult): string {
  const texts = contentTexts(content);
  const text =
    texts.length === 0 && structuredContent !== undefined ? JSON.stringify(structuredContent) : texts.join('\n');
  return isError ? `error: ${text}` : text;
}

/** Whether the server does not know the connection's session any more: it has started again, or the time is over. */
function isForgotten({ client }: Connection, error: unknown): boolean {
  const status: unknown = error instanceof Error ? Reflect.get(error, 'status') : undefined;
  if (client.transport?.sessionId === undefined || typeof status !== 'number') return false;
  // Status 404 says so by itself. Servers also say so with 400, 401 or 503 and a text.
  return status === 404 || (status >= 400 && status !== 429 && /session|not initialized/i.test(messageOf(error)));
}

/** The reason of a failed call, by the client's code: a word for a broken connection, a number for a refusal. */
function reasonFor(error: unknown): ToolServerError['reason'] {
  const code = isObject(error) || error instanceof Error ? Reflect.get(error, 'code') : undefined;
  if (typeof code === 'number') return 'refused';
  return code === 'REQUEST_TIMEOUT' ? 'timeout' : 'closed';
}
