import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { Writable } from 'node:stream';
import { ArgumentError, messageOf, ToolServerError } from '@drmas/engine/errors';
import { packageVersion } from '@drmas/engine/platform';
import type { CommandContext } from '../../command-context.js';
import { jsonText } from '../../command-context.js';
import { defineCommand } from '../../define-command.js';
import { toggle } from '../../flags.js';
import { type RunTool, runTools } from '../../mcp/run-tools.js';
import { StartedRuns } from '../../mcp/started-runs.js';

/** Runs as tools of a coding agent. */
export const mcp = defineCommand({
  name: 'mcp',
  description: 'give a coding agent tools for the runs of this folder, over MCP',
  details:
    'speaks the Model Context Protocol on stdin and stdout: tools that list runs, show the state of one, compare two, read episodes and forecast a recipe, all in the folder where it was started. With `--allow-start` it also starts and stops runs. Needs `npm install @modelcontextprotocol/server`',
  arguments: [],
  flags: { allowStart: toggle('also let the agent start runs, and stop those') },
  examples: ['drmas mcp', 'drmas mcp --allow-start'],
  async run(context, _, { allowStart = false }) {
    const { McpServer, StdioServerTransport } = await serverModule();
    const folder = realpathSync(process.cwd());
    const program = [...process.execArgv, process.argv[1] ?? ''];
    const started = new StartedRuns(folder, context.environment, program);
    const server = new McpServer({ name: 'drmas', version: packageVersion() });
    for (const tool of runTools({ folder, started, allowStart }))
      server.registerTool(
        tool.name,
        {
          description: tool.description,
          inputSchema: tool.input,
          annotations: { readOnlyHint: !tool.changes, openWorldHint: false },
        },
        async (input: Record<string, unknown>) => answered(tool, input, context.signal),
      );
    const { input } = context.stdin();
    const closed = once(input, 'close').catch(() => undefined);
    let fault: Error | undefined;
    server.server.onerror = (error) => {
      fault = error;
    };
    // The transport closes itself if it cannot read on, as after a message of more than 10 MB.
    const brokenOff = new Promise<'broken off'>((resolve) => {
      server.server.onclose = () => resolve('broken off');
    });
    await server.connect(new StdioServerTransport(input, outputOf(context)));
    const end = await Promise.race([closed, once(input, 'end'), aborted(context), brokenOff]);
    await context.protect(() => started.stopAll());
    await server.close();
    if (end === 'broken off' && fault !== undefined && !input.readableEnded)
      throw new ToolServerError('closed', `the messages of the client cannot be read: ${fault.message}`);
    return 0;
  },
});

async function answered(tool: RunTool, input: Record<string, unknown>, signal: AbortSignal) {
  try {
    return { content: [{ type: 'text' as const, text: jsonText(await tool.call(input, signal)) }] };
  } catch (error) {
    return { content: [{ type: 'text' as const, text: messageOf(error) }], isError: true };
  }
}

/** Messages are JSON on one line; the guard of stdout masks keys in them. */
const outputOf = ({ stdout }: CommandContext) =>
  new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      stdout.write(String(text));
      done();
    },
  });

async function aborted({ signal }: CommandContext): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

async function serverModule() {
  try {
    const { McpServer } = await import('@modelcontextprotocol/server');
    const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
    return { McpServer, StdioServerTransport };
  } catch (error) {
    throw new ArgumentError(`drmas mcp needs \`npm install @modelcontextprotocol/server\`: ${messageOf(error)}`);
  }
}
