import { once } from 'node:events';
import { ArgumentError, messageOf } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { chosenToken, type GuardedApp, listen, newToken, nodeHost } from '@drmas/engine/platform';
import { openTinker, type TinkerRequest } from '@drmas/tinker/server';
import {
  type AgentModelsRequest,
  followRun,
  type ModelServerOptions,
  modelServer,
  openAgentModels,
  trainedSchemas,
} from '../../../serve/index.js';
import type { CommandContext } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { allowEndpoint, allowHost, checkpoint, integer, ownDevice, port, text, threads, toggle } from '../../flags.js';
import { worker } from './worker-command.js';

const PORT = 8321;
const HOST = '127.0.0.1';
const MOST = 256;
const STORE = 'tinker-weights';
const MOST_MODELS = 16;
const IDLE_SECONDS = 600;

export const serve = defineCommand({
  name: 'serve',
  description: 'serve the trained agents as models of an OpenAI-compatible server',
  details:
    'serves the trained agents as models: chat completions, responses and messages, streamed, with tools, several requests at once. With `--follow` each newer checkpoint of the run answers new requests. With `--tinker` it serves a model that clients of the Tinker protocol train and sample: the official Python client, or `tinker({ url })` in a recipe. `drmas serve worker` plays episodes for a run on a queue',
  arguments: [argument('run', 'directory of a run or of an exported agent; with --tinker a model')],
  flags: {
    port: port(`port; 0 chooses a free one (default: ${PORT})`),
    host: text('address', `address to listen on; an address beyond this machine needs a token (default: ${HOST})`),
    token: text(
      'token',
      'the API key that clients must send (default: DRMAS_TOKEN of the environment; with --tinker else a new one)',
    ),
    allowHost,
    checkpoint,
    follow: toggle(
      'serve the newest checkpoint of a run that trains, without a restart (with `--checkpoint best`: the best)',
    ),
    agent: text('name', 'serve only this agent'),
    maxRequests: integer(1, `requests in progress and in the queue, at most (default: ${MOST})`),
    tinker: toggle('serve a model on which clients of the Tinker protocol train adapters'),
    store: text('folder', `with --tinker: folder of the weights that clients save (default: ${STORE})`),
    memory: integer(1, 'with --tinker: MB for adapters and sampling sessions, at most (default: half of what is free)'),
    disk: integer(1, 'with --tinker: MB for the weights that clients save, at most (default: 10000)'),
    maxAdapters: integer(1, `with --tinker: open adapters, at most (default: ${MOST_MODELS})`),
    allowEndpoint,
    acceptChanges: toggle('load the recipe of an old run although its code has changed'),
    device: ownDevice,
    threads,
  },
  examples: [
    'drmas serve runs/first',
    'drmas serve runs/first --follow',
    'DRMAS_TOKEN=a-long-secret-of-yours drmas serve models/solver --port 8000 --host 0.0.0.0',
    'drmas serve Qwen/Qwen3-0.6B --tinker --port 8000',
    'drmas serve worker --url redis://127.0.0.1:6379',
  ],
  async run(context, [from], flags) {
    const { port = PORT, host = HOST, maxRequests: most = MOST, device, threads, token, ...others } = flags;
    const { tinker, store, memory, disk, maxAdapters: models, allowHost: allowedHosts, follow, ...request } = others;
    const chosen = chosenToken(token, context.environment, host);
    const notify = (message: string) => void context.stderr.write(`${message}\n`);
    const surroundings = nodeHost({ device, threads, notify, signal: context.signal });
    if (tinker !== true && (store ?? models ?? memory ?? disk) !== undefined)
      throw new ArgumentError('--store, --max-adapters, --memory and --disk need --tinker');
    if (tinker === true && follow === true) throw new ArgumentError('--follow serves a run, and --tinker a model');
    const served =
      tinker === true
        ? await trainable({ model: from, store, models, memory, disk, token: chosen, allowedHosts, most }, surroundings)
        : await speaking(
            { from, ...request },
            { token: chosen, allowedHosts, most, notify },
            surroundings,
            follow === true,
          );
    try {
      const listening = await listen(served, { host, port }).catch((error: unknown) => {
        throw new ArgumentError(`cannot listen on ${host}:${port}: ${messageOf(error)}`);
      });
      context.stdout.write(`${served.what}: ${listening.url}${served.path}\n`);
      if (served.newToken !== undefined) context.stdout.write(`TINKER_API_KEY=${served.newToken}\n`);
      await stopped(context);
      notify(
        'stopping: the server finishes its answers and accepts no new requests; press Ctrl-C again to stop at once',
      );
      await context.protect(async () => {
        await served.drain();
        await listening.drain();
      });
      return 0;
    } finally {
      await served.dispose();
    }
  },
  subcommands: [worker],
});

interface Served extends GuardedApp {
  readonly what: string;
  readonly path: string;
  /** The token that clients must send, if the server made it. */
  readonly newToken?: string | undefined;
  drain(): Promise<void>;
  dispose(): Promise<void>;
}

async function speaking(
  request: AgentModelsRequest,
  options: Omit<ModelServerOptions, 'agentModels'>,
  host: Host,
  follow: boolean,
): Promise<Served> {
  const opened = follow ? await followRun(request, host) : await openAgentModels(request, host);
  const origin = 'origin' in opened ? opened.origin : `${request.from}, ${opened.checkpoint()} and later`;
  const schemas = await trainedSchemas(host.files, request.from);
  const server = modelServer({ ...opened, schemas, ...options });
  const what = `${[...opened.agentModels.keys()].join(', ')} of ${origin}`;
  return { ...server, what, path: '/v1', dispose: opened.dispose };
}

interface Trainable extends Pick<TinkerRequest, 'model' | 'allowedHosts' | 'most'> {
  readonly token: string | undefined;
  readonly store: string | undefined;
  readonly models: number | undefined;
  /** In MB. */
  readonly memory: number | undefined;
  readonly disk: number | undefined;
}

async function trainable(request: Trainable, host: Host): Promise<Served> {
  const { store = STORE, models: mostModels = MOST_MODELS, token = newToken(), ...rest } = request;
  const [memory, disk] = [request.memory, request.disk].map((megabytes) => megabytes && 1e6 * megabytes);
  const opened = await openTinker({ ...rest, memory, disk, token, store, mostModels, idleSeconds: IDLE_SECONDS }, host);
  const what = `${request.model}, for clients of the Tinker protocol`;
  return { ...opened, what, path: '', newToken: request.token === undefined ? token : undefined };
}

async function stopped({ signal }: CommandContext): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
