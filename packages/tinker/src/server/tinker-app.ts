/** The Tinker protocol over HTTP: accepts requests, computes them in their order, and returns results on request. */
import { createHash, randomUUID } from 'node:crypto';
import { DialectError, DrmasError, messageOf } from '@drmas/engine/errors';
import { accessBy, type GuardedApp, guardOf, writeArchive } from '@drmas/engine/platform';
import { bodyBytes, bodyText, parsedBody } from '@drmas/engine/requests';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import * as bodies from './bodies.js';
import { Futures, type Outcome } from './pending-requests.js';
import { readPassRequest, writePassOutput, writeSampleOutput } from './protobuf.js';
import type { SampleOutput } from './samplers.js';
import type { PassOutput } from './served-model.js';
import type { TinkerService } from './tinker-service.js';
import { pathOf } from './weights-store.js';

/** The size limit of a batch: clients send about 5 MB. */
const MOST_BYTES = 64e6;
/** Shorter than the 45 s after which clients abandon a poll. */
const POLL_MS = 20_000;
const PROTOBUF = 'application/x-protobuf';

export interface TinkerAppOptions {
  readonly service: TinkerService;
  /** The key that clients must send. Without one, programs of this machine need none. */
  readonly token?: string | undefined;
  /** Names besides those of this machine that clients may reach the server under. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** The most requests in progress. */
  readonly most: number;
  readonly version: string;
}

export interface TinkerApp extends GuardedApp {
  readonly app: Hono;
  /** Refuses further requests, and resolves when the requests in progress have ended. */
  drain(): Promise<void>;
}

/** The result of a future, in JSON and, if the protocol has it, in protobuf. */
type FutureResult = { readonly json: object; readonly protobuf?: () => Uint8Array<ArrayBuffer> };

/** Handles a route's request, whose body was checked by its schema. */
type Handler<Body> = (body: Body, digest: string) => object | Promise<object>;

export function tinkerApp({ service, token, allowedHosts, most, version }: TinkerAppOptions): TinkerApp {
  const app = new Hono();
  const futures = new Futures(most);
  const state = { stopping: false };

  const guard = guardOf({
    access: accessBy(token),
    allowedHosts,
    publicPaths: ['/api/v1/healthz'],
    types: ['application/json', PROTOBUF],
    mostBytes: MOST_BYTES,
    refuse: refusal,
  });
  const submit = (work: () => Promise<FutureResult>): { request_id: string } => {
    if (state.stopping) throw new DialectError(503, 'stopping', 'the server is stopping');
    return { request_id: futures.add(work) };
  };
  /** The same number with the same body is the same request. `prepare` checks the request, and returns its work. */
  const ofModel = (body: Numbered, digest: string, prepare: () => () => Promise<FutureResult>): object => {
    const model = service.model(body.model_id);
    const request_id = model.once(body.seq_id, digest, () => submit(prepare()).request_id);
    return { future_id: request_id, status: 'pending', request_id, model_id: body.model_id };
  };
  const pass = (body: Numbered, input: bodies.PassInput, backward: boolean, digest: string) =>
    ofModel(body, digest, () => {
      const compute = service.pass(body.model_id, input, backward);
      return async () => passAnswer(await compute());
    });

  const post = <S extends z.ZodType>(route: string, schema: S, handle: Handler<z.output<S>>) =>
    app.post(`/api/v1/${route}`, async (c) => {
      if (c.req.header('content-type')?.startsWith(PROTOBUF) === true)
        throw new DialectError(415, 'unsupported', `${route} needs JSON`);
      const text = await bodyText(c.req.raw, MOST_BYTES);
      return c.json(await handle(checked(schema, text), digestOf(`${route}\n${text}`)));
    });

  app.get('/api/v1/healthz', (c) => c.json({ status: state.stopping ? 'stopping' : 'ok' }));
  app.get('/api/v1/get_server_capabilities', (c) => {
    return c.json({ supported_models: service.baseModels(), drmas: { version } });
  });
  // Newer clients request these settings first; the server has none for them.
  for (const route of ['client/config', 'client/dynamic_config']) post(route, z.unknown(), () => ({}));
  post('telemetry', z.unknown(), () => ({ status: 'accepted' }));
  post('create_session', z.unknown(), () => ({ type: 'create_session', session_id: service.sessions.open() }));
  post('session_heartbeat', bodies.heartbeatBody, ({ session_id }) => {
    service.sessions.heartbeat(session_id);
    return { type: 'session_heartbeat' };
  });
  post('create_model', bodies.createModelBody, (body) => {
    const make = service.createModel(body);
    return submit(async () => {
      const { id, about } = await make();
      const { rank, alpha, attention, feedForward } = about;
      const lora_config = { rank, alpha, train_attn: attention, train_mlp: feedForward, train_unembed: false };
      return { json: { type: 'create_model', model_id: id, lora_config } };
    });
  });
  post('forward', bodies.forwardBody, (body, digest) => pass(body, body.forward_input, false, digest));
  app.post('/api/v1/forward_backward', async (c, next) => {
    if (c.req.header('content-type')?.startsWith(PROTOBUF) !== true) return next();
    const bytes = await bodyBytes(c.req.raw, MOST_BYTES);
    const { forward_backward_input, forward_only, ...body } = readPassRequest(bytes);
    return c.json(pass(body, forward_backward_input, !forward_only, digestOf(bytes)));
  });
  post('forward_backward', bodies.forwardBackwardBody, (body, digest) =>
    pass(body, body.forward_backward_input, !body.forward_only, digest),
  );
  post('optim_step', bodies.optimStepBody, (body, digest) =>
    ofModel(body, digest, () => async () => {
      const norm = await service.optimStep(body);
      return { json: { type: 'optim_step', metrics: norm === undefined ? {} : { grad_norm: norm } } };
    }),
  );
  post('save_weights', bodies.saveBody, (body, digest) =>
    ofModel(body, digest, () => async () => ({
      json: { type: 'save_weights', path: await service.save(body, 'weights') },
    })),
  );
  post('save_weights_for_sampler', bodies.saveBody, (body, digest) =>
    ofModel(body, digest, () => async () => {
      const type = 'save_weights_for_sampler';
      if (typeof body.path === 'string') return { json: { type, path: await service.save(body, 'sampler_weights') } };
      return { json: { type, path: null, sampling_session_id: await service.snapshot(body.model_id) } };
    }),
  );
  post('load_weights', bodies.loadBody, (body, digest) => {
    const load = async () => ({
      json: { type: 'load_weights', path: body.path, model_id: (await service.load(body)).id },
    });
    if (typeof body.model_id !== 'string') return submit(load);
    return ofModel({ model_id: body.model_id, seq_id: body.seq_id }, digest, () => load);
  });
  post('unload_model', bodies.modelBody, ({ model_id }) =>
    submit(async () => {
      await service.unload(model_id);
      return { json: { type: 'unload_model', model_id } };
    }),
  );
  post('create_sampling_session', bodies.samplingSessionBody, async (body) => ({
    type: 'create_sampling_session',
    sampling_session_id: await service.openSampler(body),
  }));
  post('asample', bodies.sampleBody, (body) => {
    const draw = service.sample(body);
    return {
      ...submit(async () => sampleAnswer(await draw())),
      sample_sequence_ids: Array.from({ length: body.num_samples }, () => randomUUID()),
    };
  });
  app.get('/api/v1/samplers/:sampler', (c) => {
    const sampler_id = c.req.param('sampler');
    return c.json({ sampler_id, ...service.samplers.sourceOf(sampler_id) });
  });
  app.post('/api/v1/retrieve_future', async (c) => {
    const { request_id } = checked(bodies.retrieveBody, await bodyText(c.req.raw));
    const outcome = await futures.fetch(request_id, POLL_MS, c.req.raw.signal);
    if (outcome === 'pending') return c.json({ type: 'try_again', request_id, queue_state: 'active' });
    return answered(c, outcome);
  });
  post('get_info', bodies.modelBody, ({ model_id }) => {
    const { about } = service.model(model_id);
    const { baseModel, rank } = about;
    const model_data = { arch: 'decoder', model_name: baseModel, tokenizer_id: baseModel };
    return { type: 'get_info', model_id, model_name: baseModel, model_data, is_lora: true, lora_rank: rank };
  });
  post('weights_info', bodies.weightsInfoBody, async ({ tinker_path }) => {
    const { baseModel, rank, attention, feedForward } = await service.store.open(tinker_path);
    const parts = { train_attn: attention, train_mlp: feedForward, train_unembed: false };
    return { base_model: baseModel, is_lora: true, lora_rank: rank, ...parts };
  });
  const checkpoints = '/api/v1/training_runs/:model/checkpoints';
  app.get(checkpoints, async (c) => {
    const saved = await service.store.list(c.req.param('model'));
    return c.json({
      checkpoints: saved.map(({ purpose, name, path, time }) => ({
        checkpoint_id: `${purpose}/${name}`,
        checkpoint_type: purpose === 'weights' ? 'training' : 'sampler',
        time,
        tinker_path: path,
      })),
    });
  });
  app.on(['GET', 'DELETE'], `${checkpoints}/:purpose{weights|sampler_weights}/:name/:archive?`, async (c) => {
    const { model, purpose, name, archive } = c.req.param() as Record<string, string>;
    const path = pathOf(model ?? '', purpose === 'weights' ? 'weights' : 'sampler_weights', name ?? '');
    if (c.req.method === 'DELETE' && archive === undefined) {
      await service.remove(path);
      return c.body(null, 204);
    }
    if (c.req.method !== 'GET' || archive !== 'archive') throw unknownUrl(c);
    const body = writeArchive(await service.store.adapterFiles(path));
    return new Response(body, { headers: { 'content-type': 'application/x-tar' } });
  });
  app.notFound((c) => refusal(unknownUrl(c)));
  app.onError((error) => refusal(error));
  return {
    app,
    guard,
    async drain() {
      state.stopping = true;
      await futures.idle();
    },
  };
}

/** @throws DialectError 422 with the path of what is wrong, its value and what was expected */
function checked<S extends z.ZodType>(schema: S, text: string): z.output<S> {
  const body = parsedBody(text === '' ? '{}' : text);
  const result = schema.safeParse(body);
  if (!result.success) throw new DialectError(422, 'invalid', bodies.faultsOf(result.error, body));
  return result.data;
}

interface Numbered {
  readonly model_id: string;
  readonly seq_id?: number | null | undefined;
}

const unknownUrl = ({ req }: Context) =>
  new DialectError(404, 'unknown_url', `there is no ${req.method} ${req.path.slice(0, 200)}`);

const digestOf = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

function refusal(error: unknown): Response {
  const status = error instanceof DialectError ? error.status : 500;
  return Response.json({ detail: messageOf(error) }, { status });
}

/** The result of a request, or its error, which is an answer too. */
function answered(c: Context, outcome: Outcome): Response {
  if (outcome.status === 'rejected') {
    const error: unknown = outcome.reason;
    const category = error instanceof DialectError || (error instanceof DrmasError && error.exitCode === 2);
    return c.json({ error: messageOf(error), category: category ? 'user' : 'server' });
  }
  const { json, protobuf } = outcome.value as FutureResult;
  if (protobuf === undefined || c.req.header('accept')?.includes(PROTOBUF) !== true) return c.json(json);
  if (c.req.header('accept')?.includes('json') === true) return c.json(json);
  return new Response(protobuf(), { headers: { 'content-type': PROTOBUF } });
}

function passAnswer(output: PassOutput): FutureResult {
  const json = {
    loss_fn_output_type: 'ArrayRecord',
    loss_fn_outputs: output.logprobs.map((row) => ({
      logprobs: { data: Array.from(row), dtype: 'float32', shape: [row.length] },
    })),
    metrics: { 'loss:sum': output.loss },
  };
  return { json, protobuf: () => writePassOutput(output) };
}

function sampleAnswer(output: SampleOutput): FutureResult {
  const sequences = output.sequences.map(({ tokens, logprobs, finishReason }) => ({
    tokens,
    logprobs,
    stop_reason: finishReason,
  }));
  const json = { type: 'sample', sequences, prompt_logprobs: output.promptLogprobs ?? null };
  return { json, protobuf: () => writeSampleOutput(output) };
}
