import { once } from 'node:events';
import type { Hono } from 'hono';
import { ArgumentError, messageOf } from '../../../core/errors.js';
import type { Host } from '../../../core/host.js';
import { isLoopback, listen } from '../../../platform/listen.js';
import { nodeHost } from '../../../platform/node-host.js';
import { type ModelServerOptions, modelServer } from '../../../serve/model-server.js';
import { openVoices, type VoicesRequest } from '../../../serve/open-voices.js';
import { openTinker, type TinkerRequest } from '../../../serve/tinker/open-tinker.js';
import type { CommandContext } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, text, threads, toggle } from '../../flags.js';

const PORT = 8321;
const HOST = '127.0.0.1';
const MOST = 256;
const STORE = 'tinker-weights';
const MOST_MODELS = 16;
const IDLE_SECONDS = 600;

/** The trained agents of a run, or an exported one, as models of a server; or a model for others to train. */
export const serve = defineCommand({
  name: 'serve',
  description: 'the trained agents of a run as models of an OpenAI-compatible server',
  details:
    'the trained agents as models of a server: chat completions, responses and messages, streamed token by token, with tools, several requests at once. `--port`, `--host`, `--token`. With `--tinker` a model that clients of the Tinker protocol train and sample: the official Python client, or `tinker({ url })` in a recipe',
  arguments: [argument('run', 'directory of the run, or of an exported agent; with --tinker a model')],
  flags: {
    port: integer(0, `port; 0 takes a free one (default: ${PORT})`),
    host: text('address', `address; others than this machine's need a token (default: ${HOST})`),
    token: text('token', 'what clients must send as their API key (default: DRMAS_TOKEN of the environment)'),
    checkpoint: text('step', 'checkpoint of this step (default: the last)'),
    agent: text('name', 'this agent alone'),
    most: integer(1, `requests that are answered or wait at once (default: ${MOST})`),
    tinker: toggle('let clients of the Tinker protocol train adapters on the model'),
    store: text('folder', `with --tinker: weights that clients save (default: ${STORE})`),
    models: integer(1, `with --tinker: adapters at once (default: ${MOST_MODELS})`),
    acceptChanges: toggle('load the recipe of a run of an earlier version although its code has changed'),
    device,
    threads,
  },
  examples: [
    'drmas serve runs/first',
    'drmas serve models/solver --port 8000 --host 0.0.0.0 --token $TOKEN',
    'drmas serve Qwen/Qwen3-0.6B --tinker --port 8000',
  ],
  async run(context, [from], flags) {
    const { port = PORT, host = HOST, most = MOST, device, threads, token, tinker, store, models, ...request } = flags;
    const secret = token ?? context.environment.DRMAS_TOKEN;
    if (secret === '') throw new ArgumentError('the token is empty');
    if (secret === undefined && !isLoopback(host))
      throw new ArgumentError(`others can reach ${host}: name a token that clients must send, with --token`);
    const notify = (message: string) => void context.stderr.write(`${message}\n`);
    const surroundings = nodeHost({ device, threads, notify, signal: context.signal });
    if (tinker !== true && (store !== undefined || models !== undefined))
      throw new ArgumentError('--store and --models go with --tinker');
    const served =
      tinker === true
        ? await trainable({ model: from, store, models, token: secret, most }, surroundings)
        : await speaking({ from, ...request }, { token: secret, most }, surroundings);
    try {
      const listening = await listen(served.app, { host, port }).catch((error: unknown) => {
        throw new ArgumentError(`${host}:${port} cannot be used: ${messageOf(error)}`);
      });
      context.stdout.write(`${served.what}: ${listening.url}${served.path}\n`);
      await stopped(context);
      notify('no more requests are accepted; answers under way are finished, another Ctrl-C ends them');
      await context.protect(async () => {
        await served.drain();
        await listening.drain();
      });
      return 0;
    } finally {
      await served.dispose();
    }
  },
});

/** What a server answers with, and for people what it is. */
interface Served {
  readonly app: Hono;
  readonly what: string;
  readonly path: string;
  drain(): Promise<void>;
  dispose(): Promise<void>;
}

async function speaking(
  request: VoicesRequest,
  options: Omit<ModelServerOptions, 'voices'>,
  host: Host,
): Promise<Served> {
  const { voices, origin, dispose } = await openVoices(request, host);
  const server = modelServer({ voices, ...options });
  return { ...server, what: `${[...voices.keys()].join(', ')} of ${origin}`, path: '/v1', dispose };
}

interface Trainable extends Pick<TinkerRequest, 'model' | 'token' | 'most'> {
  readonly store: string | undefined;
  readonly models: number | undefined;
}

async function trainable(request: Trainable, host: Host): Promise<Served> {
  const { store = STORE, models: mostModels = MOST_MODELS, ...rest } = request;
  const opened = await openTinker({ ...rest, store, mostModels, idleSeconds: IDLE_SECONDS }, host);
  return { ...opened, what: `${request.model}, to be trained by clients of the Tinker protocol`, path: '' };
}

async function stopped({ signal }: CommandContext): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
