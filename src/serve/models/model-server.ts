/** Trained agents as the models of a server that speaks the dialects of OpenAI and Anthropic. */
import { setMaxListeners } from 'node:events';
import type { AgentModel } from '@drmas/engine/endpoints';
import { DialectError, suggestion } from '@drmas/engine/errors';
import type { JsonSchema } from '@drmas/engine/nouns';
import { accessBy, type GuardedApp, guardOf } from '@drmas/engine/platform';
import type { Hono } from 'hono';
import type { ModelDelta, ModelRequest } from '../../gateway/dialects.js';
import { beyondSampling, modelApp, modelPolicy, onceEach } from '../../gateway/dialects.js';
import { isAnyObject } from '../../teams/rollout.js';
import { answerStream, readingOf } from './answer-stream.js';

export interface ModelServerOptions {
  /** The agents by name. A server that follows a run changes the values. */
  readonly agentModels: ReadonlyMap<string, AgentModel>;
  /** Keeps an agent's weights in memory while it answers a request. Returns the function that ends this. */
  readonly hold?: ((agentModel: AgentModel) => () => void) | undefined;
  /** The checkpoint that answers new requests, for `GET /health`. */
  readonly checkpoint?: (() => string) | undefined;
  /** The token that clients must send. Without one, programs of this machine need none. */
  readonly token?: string | undefined;
  /** Names besides those of this machine that clients may reach the server under. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Requests that are answered or wait at once; more are refused. */
  readonly most: number;
  /** The schemas that agents answered with in training, by name. */
  readonly schemas?: ReadonlyMap<string, JsonSchema> | undefined;
  /** Receives a message for each field that requests set and the server ignores, once for each agent and field. */
  readonly notify?: ((message: string) => void) | undefined;
}

export interface ModelServer extends GuardedApp {
  readonly app: Hono;
  /** Refuses further requests, and resolves when those that are being answered are. */
  drain(): Promise<void>;
}

export function modelServer(options: ModelServerOptions): ModelServer {
  const { agentModels, hold = () => () => {}, checkpoint, token, allowedHosts, most, notify, schemas } = options;
  const state = { running: 0, stopping: false, idle: () => {} };
  const names = [...agentModels.keys()];
  const reportIgnored = onceEach((agent, field) =>
    notify?.(`${agent}: requests set ${field}, which the server ignores`),
  );
  // Clients put the name of a provider in front: `openai/solver`.
  const agentOf = (model: string) => (agentModels.has(model) ? model : model.slice(model.lastIndexOf('/') + 1));
  const agentModelOf = (model: string): AgentModel => {
    const agentModel = agentModels.get(agentOf(model));
    if (agentModel !== undefined) return agentModel;
    throw new DialectError(404, 'model_not_found', `there is no model '${model}'${suggestion(model, names)}`);
  };
  const withoutSchema = new Set<string>();
  /** A request for JSON without a schema gets the schema of training; a request for text stays as it is. */
  const asTrained = (request: ModelRequest): ModelRequest => {
    const agent = agentOf(request.model);
    const schema = schemas?.get(agent);
    const { responseSchema } = request;
    if (schema === undefined || (responseSchema !== undefined && !isAnyObject(responseSchema))) return request;
    if (!withoutSchema.has(agent))
      notify?.(
        `${agent}: was trained with a JSON schema, and a request brings none: send it as response_format (@ai-sdk/openai-compatible: supportsStructuredOutputs: true)`,
      );
    withoutSchema.add(agent);
    return responseSchema === undefined ? request : { ...request, responseSchema: schema };
  };
  async function* complete(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta, void> {
    const agentModel = agentModelOf(request.model);
    if (state.stopping) throw new DialectError(503, 'stopping', 'the server is being stopped');
    if (state.running >= most)
      throw new DialectError(503, 'overloaded', `${most} requests are being answered already: try again later`);
    reportIgnored(agentOf(request.model), beyondSampling(request.ignored));
    const release = hold(agentModel);
    state.running++;
    try {
      yield* answerStream(agentModel, asTrained(request), signal);
    } finally {
      release();
      state.running--;
      if (state.running === 0) state.idle();
    }
  }
  const app = modelApp<undefined>({
    authorise: ({ path }) => {
      if (path !== undefined) throw new DialectError(404, 'unknown_url', 'there are no episodes here');
      return undefined;
    },
    models: () => names,
    mostAnswers: most,
    complete: (request, { signal }) => {
      setMaxListeners(0, signal);
      return complete(request, signal);
    },
    countTokens: (request) => readingOf(agentModelOf(request.model), asTrained(request)).prompt.length,
  });
  app.get('/health', () =>
    Response.json(
      {
        status: state.stopping ? 'stopping' : 'ok',
        running: state.running,
        models: names,
        ...(checkpoint && { checkpoint: checkpoint() }),
      },
      { status: state.stopping ? 503 : 200 },
    ),
  );
  const guard = guardOf({ ...modelPolicy, access: accessBy(token), allowedHosts, publicPaths: ['/health'] });
  return {
    app,
    guard,
    refuse: modelPolicy.refuse,
    async drain() {
      state.stopping = true;
      if (state.running === 0) return;
      await new Promise<void>((resolve) => {
        state.idle = resolve;
      });
    },
  };
}
