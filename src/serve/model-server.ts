/** Trained agents as the models of a server that speaks the dialects of OpenAI and Anthropic. */
import { setMaxListeners } from 'node:events';
import type { Hono } from 'hono';
import type { Voice } from '../backends/voice.js';
import { DialectError } from '../core/errors.js';
import type { ModelDelta, ModelRequest } from '../dialects/dialect.js';
import { modelApp } from '../dialects/model-app.js';
import { suggestion } from '../recipe/explain.js';
import { answerStream, readingOf } from './answer-stream.js';
import { isEqual } from './token.js';

export interface ModelServerOptions {
  /** The agents by name. */
  readonly voices: ReadonlyMap<string, Voice>;
  /** The token that clients must send; undefined lets everybody ask. */
  readonly token?: string | undefined;
  /** Requests that are answered or wait at once; more are refused. */
  readonly most: number;
}

/** An app that answers as the agents do, and its end. */
export interface ModelServer {
  readonly app: Hono;
  /** Refuses further requests, and resolves when those that are being answered are. */
  drain(): Promise<void>;
}

export function modelServer({ voices, token, most }: ModelServerOptions): ModelServer {
  const state = { running: 0, stopping: false, idle: () => {} };
  const names = [...voices.keys()];
  const voiceOf = (model: string): Voice => {
    // Clients put the name of a provider in front: `openai/solver`.
    const voice = voices.get(model) ?? voices.get(model.slice(model.lastIndexOf('/') + 1));
    if (voice !== undefined) return voice;
    throw new DialectError(404, 'model_not_found', `there is no model '${model}'${suggestion(model, names)}`);
  };
  async function* complete(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta, void> {
    const voice = voiceOf(request.model);
    if (state.stopping) throw new DialectError(503, 'stopping', 'the server is being stopped');
    if (state.running >= most)
      throw new DialectError(503, 'overloaded', `${most} requests are being answered already: try again later`);
    state.running++;
    try {
      yield* answerStream(voice, request, signal);
    } finally {
      state.running--;
      if (state.running === 0) state.idle();
    }
  }
  const app = modelApp<undefined>({
    authorise: ({ secret, path }) => {
      if (path !== undefined) throw new DialectError(404, 'unknown_url', 'there are no episodes here');
      if (token !== undefined && !isEqual(secret ?? '', token))
        throw new DialectError(401, 'invalid_api_key', 'expected the token of this server as `Authorization: Bearer`');
      return undefined;
    },
    models: () => names,
    complete: (request, { signal }) => {
      setMaxListeners(0, signal);
      return complete(request, signal);
    },
    countTokens: (request) => readingOf(voiceOf(request.model), request).prompt.length,
  });
  app.get('/health', () =>
    Response.json(
      { status: state.stopping ? 'stopping' : 'ok', running: state.running, models: names },
      { status: state.stopping ? 503 : 200 },
    ),
  );
  return {
    app,
    async drain() {
      state.stopping = true;
      if (state.running === 0) return;
      await new Promise<void>((resolve) => {
        state.idle = resolve;
      });
    },
  };
}
