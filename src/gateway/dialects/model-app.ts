/** Models behind the HTTP interfaces that clients know: one app for any models. It runs wherever fetch does. */

import { DialectError, EpisodeOverError, exactJson, messageOf, suggestion } from '@drmas/engine/errors';
import { visible } from '@drmas/engine/host';
import { bodyText, MOST_BYTES, parsedBody } from '@drmas/engine/requests';
import { type Context, Hono } from 'hono';
import { wholeAnswer } from './answer-parts.js';
import { chatDialect } from './chat-dialect.js';
import type { Dialect, ModelAnswer, ModelDelta, ModelRequest, Said, StreamEvent } from './dialect.js';
import { clientGone, lateBody, soon } from './late-body.js';
import { messagesDialect, readCounted } from './messages-dialect.js';
import { invalidField, nextSeed } from './request-fields.js';
import { responsesDialect } from './responses-dialect.js';

export interface Credentials {
  /** Of `Authorization: Bearer` and of `x-api-key`: a client may send both, and mean either for this server. */
  readonly secrets: readonly string[];
  /** Of a path below `/e/{episode}/a/{agent}`. */
  readonly path: { readonly episode: string; readonly agent: string } | undefined;
}

export interface ServedCall<Caller> {
  readonly caller: Caller;
  /** Fires when the client has disconnected. */
  readonly signal: AbortSignal;
  /** How often the client has retried this request, as far as the client reports it. */
  readonly retry: number;
  /** The request's route and body, equal for equal requests. */
  readonly text: string;
}

/** The models of a `modelApp`. Errors of its functions are sent to the client in its dialect. */
export interface RequestHandler<Caller> {
  /** Identifies the caller. @throws DialectError 401 or 404 for an unknown one */
  authorise(credentials: Credentials): Caller | Promise<Caller>;
  models(caller: Caller): readonly string[];
  recall?(id: string, caller: Caller): Said | undefined;
  /** The most answers to one request. Default 1: a call of an agent in training is one turn. */
  readonly mostAnswers?: number;
  /** Answers, at once or piece by piece. Called once for each answer that the client wants. */
  complete(request: ModelRequest, call: ServedCall<Caller>): Promise<ModelAnswer> | AsyncIterable<ModelDelta>;
  /** Counts the tokens of a prompt, without a call of the model. */
  countTokens(request: ModelRequest, caller: Caller): number | Promise<number>;
}

/** The dialects by their routes below `/v1`. */
const DIALECTS: Readonly<Record<string, Dialect>> = {
  '/chat/completions': chatDialect,
  '/responses': responsesDialect,
  '/messages': messagesDialect,
};

/** The user agent of requests by which OpenEnv finds out, before a rollout, what an endpoint can return. */
const PROBES = /^OpenEnv-provider-probe\//;

/** At the root, the secret identifies the caller and the model names the agent; below this path, the path does. */
const EPISODE = '/e/:episode/a/:agent';

/** An app that answers `GET /v1/models` and `POST` of every dialect, at the root and below `/e/{episode}/a/{agent}`. */
export function modelApp<Caller>(server: RequestHandler<Caller>): Hono {
  const app = new Hono();
  for (const base of ['', EPISODE]) {
    app.get(`${base}/v1/models`, (c) =>
      guarded(errorFor(c.req.raw), async () => modelList(server.models(await caller(server, c)))),
    );
    // Names may have slashes.
    app.get(`${base}/v1/models/:name{.+}`, (c) =>
      guarded(errorFor(c.req.raw), async () => oneModel(server.models(await caller(server, c)), c.req.param('name'))),
    );
    for (const [route, dialect] of Object.entries(DIALECTS))
      app.post(`${base}/v1${route}`, (c) => guarded(dialect.error, () => answered(server, dialect, c)));
    app.post(`${base}/v1/messages/count_tokens`, (c) => guarded(messagesDialect.error, () => counted(server, c)));
  }
  const routes = Object.keys(DIALECTS).map((route) => `POST /v1${route}`);
  app.notFound(({ req }) => {
    const message = `there is no ${req.method} ${visible(req.path.slice(0, 200))}; there are GET /v1/models, GET /v1/models/NAME, ${routes.join(', ')}`;
    return refusal(errorFor(req.raw), new DialectError(404, 'unknown_url', message));
  });
  app.onError((error, { req }) => refusal(errorFor(req.raw), errorOf(error)));
  return app;
}

/** The largest body that servers of these apps accept, and the form of their refusals. */
export const modelPolicy = {
  mostBytes: MOST_BYTES,
  refuse: (error: DialectError, request: Request) => refusal(errorFor(request), error),
};

/** The form of a request's errors. Clients of Anthropic name the version of the interface on every route. */
function errorFor({ url, headers }: Request): Dialect['error'] {
  const { pathname } = new URL(url);
  const dialect = Object.entries(DIALECTS).find(([route]) => pathname.includes(`/v1${route}`))?.[1];
  return (dialect ?? (headers.has('anthropic-version') ? messagesDialect : chatDialect)).error;
}

async function guarded(shape: Dialect['error'], answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    return refusal(shape, errorOf(error));
  }
}

/** Clients get a header against retries, unless a later attempt may succeed. */
function refusal(shape: Dialect['error'], error: DialectError): Response {
  const headers = error.status === 503 ? {} : { 'x-should-retry': 'false' };
  return Response.json(shape(error), { status: error.status, headers });
}

function errorOf(thrown: unknown): DialectError {
  if (thrown instanceof DialectError) return thrown;
  if (thrown instanceof EpisodeOverError) return new DialectError(400, 'episode_over', thrown.message);
  return new DialectError(500, 'internal_error', messageOf(thrown));
}

async function caller<Caller>(server: RequestHandler<Caller>, { req }: Context): Promise<Caller> {
  const bearer = /^Bearer\s+(.+)$/i.exec(req.header('authorization') ?? '')?.[1];
  const secrets = [bearer, req.header('x-api-key')].filter((key) => key !== undefined);
  const { episode, agent } = req.param() as Readonly<Record<string, string | undefined>>;
  const path = episode === undefined || agent === undefined ? undefined : { episode, agent };
  return server.authorise({ secrets, path });
}

/** A model with the fields that clients of OpenAI read, and those that clients of Anthropic read. */
const modelObject = (id: string) => ({
  id,
  ...{ object: 'model', created: 0, owned_by: 'drmas' },
  ...{ type: 'model', display_name: id, created_at: '1970-01-01T00:00:00Z' },
});

const modelList = (names: readonly string[]) =>
  Response.json({
    object: 'list',
    data: names.map(modelObject),
    ...{ has_more: false, first_id: names[0] ?? null, last_id: names.at(-1) ?? null },
  });

/** @throws DialectError for an unknown name */
function oneModel(names: readonly string[], asked: string): Response {
  // Clients put the name of a provider in front, as in their requests.
  const name = names.includes(asked) ? asked : asked.slice(asked.lastIndexOf('/') + 1);
  if (names.includes(name)) return Response.json(modelObject(name));
  const message = `there is no model '${visible(asked.slice(0, 100))}'${suggestion(asked.slice(0, 100), names)}`;
  throw new DialectError(404, 'model_not_found', message);
}

async function answered<Caller>(server: RequestHandler<Caller>, dialect: Dialect, c: Context): Promise<Response> {
  const known = await caller(server, c);
  const text = await bodyText(c.req.raw);
  const probe = PROBES.test(c.req.header('user-agent') ?? '') ? { probe: true as const } : {};
  const request = { ...dialect.read(parsedBody(text), (id) => server.recall?.(id, known)), ...probe };
  const { answers = 1 } = request;
  const { mostAnswers = 1 } = server;
  if (answers > mostAnswers) throw invalidField('n', `a request gives at most ${mostAnswers} here, got ${answers}`);
  const gone = new AbortController();
  const retry = Number(c.req.header('x-stainless-retry-count') ?? 0);
  const call = { caller: known, signal: gone.signal, retry: retry > 0 ? retry : 0, text: `${c.req.path}\n${text}` };
  const start = (request: ModelRequest) => {
    const answer = server.complete(request, call);
    const deltas = deltasOf(
      answer,
      whenGone(c.req.raw.signal, () => gone.abort(clientGone())),
    );
    // Ends an answer that stands between two pieces: its next piece may never be asked for.
    gone.signal.addEventListener('abort', () => void deltas.return(undefined).catch(() => {}), { once: true });
    return deltas;
  };
  const first = start(request);
  if (request.stream) return streamed(dialect, request, first, (reason) => gone.abort(reason));
  const further = Array.from({ length: answers - 1 }, (_, i) => start(withSeedOf(request, i + 1)));
  return whole(dialect, request, [first, ...further], (reason) => gone.abort(reason));
}

/** The request of the answer at an index: each has a seed of its own, else all answers would be equal. */
function withSeedOf(request: ModelRequest, index: number): ModelRequest {
  const { seed } = request.sampling;
  return seed === undefined ? request : { ...request, sampling: { ...request.sampling, seed: nextSeed(seed, index) } };
}

async function counted<Caller>(server: RequestHandler<Caller>, c: Context): Promise<Response> {
  const known = await caller(server, c);
  const request = readCounted(parsedBody(await bodyText(c.req.raw)));
  return Response.json({ input_tokens: await server.countTokens(request, known) });
}

/**
 * Calls `leave` when the signal of a request fires; returns a function that removes the listener. Node keeps a request
 * in memory as long as its signal has a listener that knows the request.
 */
function whenGone(request: AbortSignal, leave: () => void): () => void {
  if (request.aborted) leave();
  request.addEventListener('abort', leave, { once: true });
  return () => request.removeEventListener('abort', leave);
}

/** @param over called when the answer has ended, also by an error or because nobody wants the rest */
async function* deltasOf(
  answer: Promise<ModelAnswer> | AsyncIterable<ModelDelta>,
  over: () => void,
): AsyncGenerator<ModelDelta, void, undefined> {
  try {
    if (Symbol.asyncIterator in answer) yield* answer;
    else yield { type: 'answer', answer: await answer };
  } finally {
    over();
  }
}

/** Makes a response from deltas. It rejects if an error comes before the status has been sent. */
type Responder<Deltas> = (
  dialect: Dialect,
  request: ModelRequest,
  deltas: Deltas,
  gone: (reason: unknown) => void,
) => Promise<Response>;

type Answers = readonly [AsyncIterable<ModelDelta>, ...(readonly AsyncIterable<ModelDelta>[])];

const whole: Responder<Answers> = async (dialect, request, [first, ...further], gone) => {
  const body = Promise.all([wholeAnswer(first), ...further.map(wholeAnswer)]).then(
    ([answer, ...others]) => exactJson(dialect.write(request, answer, others)),
    (error: unknown) => {
      gone(error); // the other answers would go on
      throw error;
    },
  );
  const early = await soon(body);
  const headers = { 'content-type': 'application/json' };
  if (early !== undefined) return new Response(early.value, { headers });
  const refused = (error: unknown) => JSON.stringify(dialect.error(errorOf(error)));
  return new Response(lateBody(once(body.catch(refused)), ' ', gone), { headers });
};

async function* once(text: Promise<string>): AsyncIterable<string> {
  yield await text;
}

const streamed: Responder<AsyncIterable<ModelDelta>> = async (dialect, request, deltas, gone) => {
  const events = dialect.stream(request, deltas)[Symbol.asyncIterator]();
  const first = events.next();
  await soon(first);
  const parts = async function* () {
    let sent = 0;
    try {
      for (let next = await first; !next.done; sent++, next = await events.next()) yield eventText(next.value);
    } catch (error) {
      yield eventText(dialect.streamError(errorOf(error), sent));
    } finally {
      await events.return?.();
    }
  };
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' };
  return new Response(lateBody(parts(), ': still at work\n\n', gone), { headers });
};

const eventText = ({ event, data }: StreamEvent) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;
