import { once } from 'node:events';
import { ArgumentError } from '../../../core/errors.js';
import { nodeHost } from '../../../platform/node-host.js';
import { modelServer } from '../../../serve/model-server.js';
import { openVoices } from '../../../serve/open-voices.js';
import { isLoopback, servePort } from '../../../serve/served-port.js';
import type { CommandContext } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { integer, text, threads, toggle } from '../../flags.js';

const PORT = 8321;
const HOST = '127.0.0.1';
const MOST = 256;

/** The trained agents of a run, or an exported one, as models of a server. */
export const serve = defineCommand({
  name: 'serve',
  description: 'the trained agents of a run as models of an OpenAI-compatible server',
  details:
    'the trained agents as models of a server: chat completions, responses and messages, streamed token by token, with tools, several requests at once. `--port`, `--host`, `--token`',
  arguments: [argument('run', 'directory of the run, or of an exported agent')],
  flags: {
    port: integer(0, `port; 0 takes a free one (default: ${PORT})`),
    host: text('address', `address; others than this machine's need a token (default: ${HOST})`),
    token: text('token', 'what clients must send as their API key (default: DRMAS_TOKEN of the environment)'),
    checkpoint: text('step', 'checkpoint of this step (default: the last)'),
    agent: text('name', 'this agent alone'),
    most: integer(1, `requests that are answered or wait at once (default: ${MOST})`),
    acceptChanges: toggle('load the recipe of a run of an earlier version although its code has changed'),
    threads,
  },
  examples: ['drmas serve runs/first', 'drmas serve models/solver --port 8000 --host 0.0.0.0 --token $TOKEN'],
  async run(context, [from], { port = PORT, host = HOST, most = MOST, threads, token, ...request }) {
    const secret = token ?? context.environment.DRMAS_TOKEN;
    if (secret === '') throw new ArgumentError('the token is empty');
    if (secret === undefined && !isLoopback(host))
      throw new ArgumentError(`others can reach ${host}: name a token that clients must send, with --token`);
    const notify = (message: string) => void context.stderr.write(`${message}\n`);
    const { voices, origin, dispose } = await openVoices(
      { from, ...request },
      nodeHost({ threads, notify, signal: context.signal }),
    );
    try {
      const server = modelServer({ voices, token: secret, most });
      const listening = await servePort(server.app, { host, port });
      context.stdout.write(`${[...voices.keys()].join(', ')} of ${origin}: ${listening.url}/v1\n`);
      await stopped(context);
      notify('no more requests are accepted; answers under way are finished, another Ctrl-C ends them');
      await context.protect(async () => {
        await server.drain();
        await listening.close();
      });
      return 0;
    } finally {
      await dispose();
    }
  },
});

async function stopped({ signal }: CommandContext): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
