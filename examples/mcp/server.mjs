// A server of one tool, as a program: MCP on its standard input and output. Needs `npm install @modelcontextprotocol/server`.
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const prices = { fig: 5, kiwi: 3, lime: 2, pear: 4, plum: 6, date: 7, nut: 1, bean: 8 };
const server = new McpServer({ name: 'prices', version: '1.0.0' });
const inputSchema = z.object({ of: z.string() });
server.registerTool('price', { description: 'The price of a fruit', inputSchema }, async ({ of }) => ({
  content: [{ type: 'text', text: String(prices[of] ?? 'not for sale') }],
}));
await server.connect(new StdioServerTransport());
