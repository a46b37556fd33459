/** Real MCP servers, made with the official package: one over HTTP, one as a program. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ToolServerError } from '@drmas/engine/errors';
import { serve } from '@hono/node-server';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually, timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { temporaryRoot } from '../../../../test/support/tiny-run.js';
import { redirecting, webServer } from '../../../../test/support/web-server.js';
import { mcpTools } from './mcp-tools.js';

const root = temporaryRoot();
const open = new Set<{ close(): unknown; closeAllConnections?(): void }>();
afterEach(() => {
  for (const server of open) {
    server.closeAllConnections?.();
    server.close();
  }
  open.clear();
});

async function priceServer() {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'prices', version: '1' });
    const inputSchema = z.object({ of: z.string() });
    server.registerTool('price', { description: 'The price of a fruit', inputSchema }, async ({ of }) => {
      if (of === 'stone') throw new Error('not for sale');
      if (of === 'slow') await new Promise(() => {});
      const text = of === 'flood' ? 'x'.repeat(17e6) : String(of.length);
      return { content: [{ type: 'text', text }] };
    });
    server.registerTool('read', { inputSchema: z.object({}) }, async () => ({
      content: [
        { type: 'text', text: 'downloaded' },
        { type: 'resource', resource: { uri: 'repo://a.md', text: '# A' } },
        { type: 'resource', resource: { uri: 'repo://a.bin', blob: 'AAAA' } },
        { type: 'resource_link', uri: 'repo://b.md', name: 'b' },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      ],
    }));
    return server;
  });
  const port = await new Promise<number>((resolve) => {
    const answer = (request: Request) =>
      request.url.endsWith('/moved')
        ? new Response(null, { status: 307, headers: { location: '/mcp' } })
        : handler.fetch(request);
    const server = serve({ fetch: answer, port: 0, hostname: '127.0.0.1' }, (info) => resolve(info.port));
    open.add(server as Parameters<typeof open.add>[0]);
  });
  return `http://127.0.0.1:${port}/mcp`;
}

/** A server that keeps sessions, as servers of the protocol's earlier versions do. It may forget them. */
async function keeper(status: number, text: string, notices = 0) {
  const sessions = new Set<string>();
  let begun = 0;
  let told = 0;
  const server = await webServer(({ method, headers, body }, response) => {
    const session = String(headers['mcp-session-id']);
    const { id, method: asked, params } = method === 'POST' ? JSON.parse(body) : ({} as Record<string, undefined>);
    const answer = (result: object, own = {}) =>
      response
        .writeHead(200, { 'content-type': 'application/json', ...own })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    if (asked === 'initialize') {
      sessions.add(`s${++begun}`);
      const about = { protocolVersion: '2025-06-18', capabilities: { tools: {} } };
      return answer({ ...about, serverInfo: { name: 'keeper', version: '1' } }, { 'mcp-session-id': `s${begun}` });
    }
    if (method === 'GET' && notices === 0) return response.writeHead(405).end();
    if (method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const params = { level: 'info', data: 'x'.repeat(1e6) };
      const notice = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params });
      const tell = () => told++ < notices && response.write(`data: ${notice}\n\n`, tell);
      return tell();
    }
    if (!sessions.has(session)) return response.writeHead(status).end(text);
    if (method === 'DELETE') sessions.delete(session);
    if (id === undefined) return response.writeHead(202).end();
    if (asked === 'tools/list') return answer({ tools: [{ name: 'session', inputSchema: { type: 'object' } }] });
    if (params?.name === 'busy') return response.writeHead(503).end('busy');
    if (params?.name === 'limited') return response.writeHead(429).end('too many calls in this session');
    return answer({ content: [{ type: 'text', text: session }] });
  });
  return { url: `${server.url}/mcp`, sessions, forget: () => sessions.clear(), told: () => told };
}

/** A server without sessions that lists these tools and answers calls with these messages. */
async function plainServer(tools: () => readonly object[], messages: (id: unknown) => readonly object[]) {
  const { url } = await webServer(({ method, body }, response) => {
    if (method !== 'POST') return response.writeHead(405).end();
    const { id, method: asked } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    const about = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } } };
    const result =
      asked === 'initialize' ? { ...about, serverInfo: { name: 'plain', version: '1' } } : { tools: tools() };
    const sent = asked === 'tools/call' ? messages(id) : [{ id, result }];
    const events = sent.map((message) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).end(events.join(''));
  });
  return `${url}/mcp`;
}

/** A program that counts its calls, and ends when it is asked to. */
function counter(name: string) {
  const path = join(root, `${name}.mjs`);
  const real = (module: string) => JSON.stringify(import.meta.resolve(module));
  writeFileSync(
    path,
    `import { McpServer } from ${real('@modelcontextprotocol/server')};
import { StdioServerTransport } from ${real('@modelcontextprotocol/server/stdio')};
import { z } from ${real('zod')};
const server = new McpServer({ name: 'counter', version: '1' });
let count = 0;
const text = (text) => ({ content: [{ type: 'text', text }] });
server.registerTool('count', { inputSchema: z.object({}) }, async () => text(process.pid + ' ' + ++count));
server.registerTool('say', { inputSchema: z.object({ length: z.number() }) }, async ({ length }) => text('x'.repeat(length)));
server.registerTool('end', { inputSchema: z.object({}) }, async () => process.exit(1));
await server.connect(new StdioServerTransport());
`,
  );
  return { command: process.execPath, args: [path] };
}

const refusal = (reason: string) => expect.objectContaining({ name: 'ToolServerError', reason });
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const pidAndCount = async (call: (one: { name: string; arguments: string }) => Promise<string>) =>
  (await call({ name: 'count', arguments: '{}' })).split(' ').map(Number) as [number, number];

describe('tools of an MCP server at an address', () => {
  it('are listed and called; a tool that fails says so', async () => {
    const { signal } = new AbortController();
    const { tools, call } = await mcpTools(await priceServer()).open({ signal });
    expect(tools).toEqual([
      {
        name: 'price',
        description: 'The price of a fruit',
        parameters: expect.objectContaining({ type: 'object', required: ['of'] }),
      },
      expect.objectContaining({ name: 'read' }),
    ]);
    expect(await call({ name: 'price', arguments: '{"of":"fig"}' })).toBe('3');
    expect(await call({ name: 'price', arguments: '{"of":"stone"}' })).toBe('error: not for sale');
  });

  it('return the text of files that servers send as resources, and name what has no text', async () => {
    const { call } = await mcpTools(await priceServer()).open(new AbortController());
    const parts = ['downloaded', '# A', '[resource repo://a.bin]', '[resource_link repo://b.md]', '[image]'];
    expect(await call({ name: 'read', arguments: '{}' })).toBe(parts.join('\n'));
  });

  it.each([
    ['no structured content', { type: 'object', required: ['a'] }, {}],
    ['other structured content', { type: 'object', required: ['a'] }, { structuredContent: { b: 1 } }],
    ['a schema of another draft', { type: 'object', $schema: 'http://json-schema.org/draft-04/schema#' }, {}],
    ['a schema that names one that is missing', { type: 'object', properties: { a: { $ref: '#/$defs/b' } } }, {}],
    ['a schema of an unknown type', { type: 'object', properties: { a: { type: 'float' } } }, {}],
  ])('return the text of a tool whose server breaks its promise of output: %s', async (_, outputSchema, result) => {
    const content = [{ type: 'text', text: 'seven' }];
    const tool = { name: 'count', inputSchema: { type: 'object' }, outputSchema };
    const url = await plainServer(
      () => [tool],
      (id) => [{ id, result: { content, ...result } }],
    );
    const { tools, call } = await mcpTools(url).open(new AbortController());
    expect(tools).toEqual([{ name: 'count', parameters: { type: 'object' } }]);
    expect(await call({ name: 'count', arguments: '{}' })).toBe('seven');
  });

  it('follow the list of a server that changes it', async () => {
    const names = ['enter'];
    const tools = () => names.map((name) => ({ name, inputSchema: { type: 'object' } }));
    const url = await plainServer(tools, (id) => {
      names.push('leave');
      return [{ method: 'notifications/tools/list_changed' }, { id, result: { content: [] } }];
    });
    const session = await mcpTools(url).open(new AbortController());
    const listed = () => session.tools.map(({ name }) => name);
    expect(listed()).toEqual(['enter']);
    await session.call({ name: 'enter', arguments: '{}' });
    await eventually(() => expect(listed()).toEqual(['enter', 'leave']));
  });

  it('fail with a reason: refused, timeout, the end of the episode', async () => {
    const url = await priceServer();
    const controller = new AbortController();
    const { call } = await mcpTools(url, { timeoutMs: 1000 }).open(controller);
    await expect(call({ name: 'cost', arguments: '{}' })).rejects.toEqual(refusal('refused'));
    await expect(call({ name: 'price', arguments: '[1]' })).rejects.toEqual(refusal('refused'));
    await expect(call({ name: 'price', arguments: '{"of":"slow"}' })).rejects.toEqual(refusal('timeout'));
    const late = call({ name: 'price', arguments: '{"of":"slow"}' });
    controller.abort(new Error('over'));
    await expect(late).rejects.toThrow('over');
  });

  it('read an answer up to a limit, as an event and as JSON', async () => {
    const { call } = await mcpTools(await priceServer()).open(new AbortController());
    await expect(call({ name: 'price', arguments: '{"of":"flood"}' })).rejects.toThrow('longer than 16.0 MB');
    const plain = await webServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(' '.repeat(17e6));
    });
    await expect(mcpTools(plain.url).open(new AbortController())).rejects.toThrow('longer than 16.0 MB');
  });

  it('read any number of notices on a connection', async () => {
    const { url, told } = await keeper(404, 'unknown', 20);
    const controller = new AbortController();
    const { call } = await mcpTools(url, { idleMs: 0 }).open(controller);
    await eventually(() => expect(told()).toBeGreaterThan(20));
    expect(await call({ name: 'session', arguments: '{}' })).toBe('s1');
    controller.abort();
  });

  it('get the headers and the calls at their own origin alone', async () => {
    const address = await priceServer();
    const other = await webServer((_, response) => void response.writeHead(500).end());
    const elsewhere = await redirecting(307, other.url);
    const signal = new AbortController().signal;
    const tools = mcpTools(`${elsewhere.url}/mcp`, { headers: { 'x-api-key': 'a key of ours' } });
    await expect(tools.open({ signal })).rejects.toThrow(`Redirect to ${other.url}/mcp not followed`);
    expect(other.requests).toEqual([]);
    expect(elsewhere.requests[0]?.headers).toMatchObject({ 'x-api-key': 'a key of ours' });
    // Servers in Python often redirect /mcp to /mcp/.
    const { tools: listed } = await mcpTools(`${address}/moved`).open({ signal });
    expect(listed.map(({ name }) => name)).toEqual(['price', 'read']);
  });

  it.each([
    [404, 'Session not found'],
    [400, 'Bad Request: No valid session ID provided'],
    [400, 'Server not initialized'],
    [401, 'Unauthorized: Session not found'],
  ])('begin a session for the next episode if the server answers %d %s, and end it there', async (status, text) => {
    const { url, forget, sessions } = await keeper(status, text);
    const tools = mcpTools(url, { idleMs: 0 });
    const [first, second] = [new AbortController(), new AbortController()];
    const call = { name: 'session', arguments: '{}' };
    const early = await tools.open(first);
    expect(await early.call(call)).toBe('s1');
    forget();
    await expect(early.call(call)).rejects.toEqual(refusal('closed'));
    expect(await (await tools.open(second)).call(call)).toBe('s2');
    first.abort();
    expect([...sessions]).toEqual(['s2']);
    second.abort();
    await eventually(() => expect([...sessions]).toEqual([]));
  });

  it('keep their session through an answer that does not speak of it', async () => {
    const { url, sessions } = await keeper(404, 'unknown');
    const controller = new AbortController();
    const { call } = await mcpTools(url).open(controller);
    for (const name of ['busy', 'limited'])
      await expect(call({ name, arguments: '{}' })).rejects.toEqual(refusal('closed'));
    const { call: later } = await mcpTools(url).open(controller);
    expect(await later({ name: 'session', arguments: '{}' })).toBe('s2');
    expect(await call({ name: 'session', arguments: '{}' })).toBe('s1');
    expect([...sessions]).toEqual(['s1', 's2']);
    controller.abort();
  });

  it('fail if nobody answers there', async () => {
    const { signal } = new AbortController();
    const nobody = mcpTools('http://127.0.0.1:9/mcp');
    await expect(nobody.open({ signal })).rejects.toEqual(refusal('unreachable'));
    await expect(nobody.open({ signal })).rejects.toBeInstanceOf(ToolServerError);
    expect(() => mcpTools('ftp://there')).toThrow('mcpTools(...): server');
  });
});

describe('tools of a program', () => {
  it('share a process, which ends after the last episode', async () => {
    const tools = mcpTools(counter('shared'), { idleMs: 50 });
    const [first, second] = [new AbortController(), new AbortController()];
    const [pid, one] = await pidAndCount((await tools.open(first)).call);
    const [same, two] = await pidAndCount((await tools.open(second)).call);
    expect([same, one, two]).toEqual([pid, 1, 2]);
    first.abort();
    await timeForMishaps(150);
    expect(isAlive(pid)).toBe(true);
    second.abort();
    await eventually(() => !isAlive(pid));
  });

  it('have a process for each episode if they are isolated', { tags: 'verify' }, async () => {
    const tools = mcpTools(counter('isolated'), { isolated: true });
    const [first, second] = [new AbortController(), new AbortController()];
    const counts = await Promise.all([first, second].map(async (one) => pidAndCount((await tools.open(one)).call)));
    expect(new Set(counts.map(([pid]) => pid)).size).toBe(2);
    expect(counts.map(([, count]) => count)).toEqual([1, 1]);
    first.abort();
    second.abort();
    await eventually(() => !counts.some(([pid]) => isAlive(pid)));
  });

  it('fail with `closed` if it ends during a call, and start again for the next episode', {
    tags: 'verify',
  }, async () => {
    const tools = mcpTools(counter('ending'), { idleMs: 0 });
    const controller = new AbortController();
    const { call } = await tools.open(controller);
    await expect(call({ name: 'end', arguments: '{}' })).rejects.toEqual(refusal('closed'));
    expect((await pidAndCount((await tools.open(controller)).call))[1]).toBe(1);
    controller.abort();
  });

  it('read an answer up to the limit of servers at an address', async () => {
    const controller = new AbortController();
    const { call } = await mcpTools(counter('long'), { idleMs: 0 }).open(controller);
    const say = (length: number) => call({ name: 'say', arguments: JSON.stringify({ length }) });
    expect((await say(15e6)).length).toBe(15e6);
    await expect(say(17e6)).rejects.toThrow('longer than 16.0 MB');
    controller.abort();
  });

  it('name the directory that is missing, not the command', async () => {
    const { command, args } = counter('nowhere');
    const tools = mcpTools({ command, args, cwd: join(root, 'missing') });
    await expect(tools.open(new AbortController())).rejects.toThrow(`there is no directory ${join(root, 'missing')}`);
  });

  it('quote a program that does not start', async () => {
    const { signal } = new AbortController();
    const broken = mcpTools({ command: process.execPath, args: ['-e', 'throw new Error("no licence")'] });
    await expect(broken.open({ signal })).rejects.toThrow(/does not answer.*no licence/s);
    await expect(mcpTools({ command: fileURLToPath(import.meta.url) }).open({ signal })).rejects.toEqual(
      refusal('unreachable'),
    );
  });
});
