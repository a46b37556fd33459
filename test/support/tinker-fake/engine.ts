/** The fake behind its HTTP: sessions, futures, and requests that are computed in order. */
import { PROJECTIONS } from '@drmas/engine/contract';
import type { SamplerResult } from '@drmas/engine/internal/model/decoder/sampling/decoder-sampler';
import { onHost } from '../on-host.js';
import { takesTime } from '../time-and-chance.js';
import { type FakeDatum, type FakeModel, FakeModels, type PlayRequest, type Saved } from './models.js';
import type { FakeBehaviour, FakeOptions, Fault } from './options.js';

/** An answer that is not 200. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: unknown;
  constructor(status: number, body: unknown) {
    super(typeof body === 'string' ? body : JSON.stringify(body));
    this.status = status;
    this.body = body;
  }
}

type Body = Record<string, unknown>;

interface Job {
  readonly path: string;
  readonly body: Body;
  readonly fault: Fault | undefined;
  readonly resolve: (outcome: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Weights as `save_weights_for_sampler` left them. */
interface Snapshot {
  readonly model: string;
  readonly weights: Float32Array;
}

const IN_ORDER = [
  'create_model',
  'forward',
  'forward_backward',
  'optim_step',
  'save_weights',
  'load_weights',
  'save_weights_for_sampler',
  'asample',
  'unload_model',
];

/** A sample to be played. */
interface Playing {
  readonly job: Job;
  readonly model: FakeModel;
  request: PlayRequest;
}

/** The adapters that a sampler holds at once, if it evicts. */
const RESIDENT = 8;

export class FakeEngine {
  readonly models = new Map<string, FakeModel>();
  readonly #options: FakeOptions;
  readonly #behaviour: FakeBehaviour;
  /** By name. */
  readonly #bases: ReadonlyMap<string, FakeModels>;
  readonly #saved: Map<string, Saved>;
  readonly #snapshots = new Map<string, Snapshot>();
  readonly #samplers = new Map<string, string>();
  readonly #futures = new Map<string, Promise<unknown>>();
  /** By model and number: request id and body. */
  readonly #numbered = new Map<string, { readonly id: string; readonly body: string }>();
  /** For a sampler with a fault: the snapshots in the order of their use, and the weights that answered a prompt. */
  readonly #sampled: string[] = [];
  readonly #cached = new Map<string, Float32Array>();
  #requests = 0;
  #jobs: Job[] = [];
  /** The work on earlier requests. */
  #last: Promise<void> = Promise.resolve();
  #names = 0;

  private constructor(
    options: FakeOptions,
    behaviour: FakeBehaviour,
    bases: ReadonlyMap<string, FakeModels>,
    saved: Map<string, Saved>,
  ) {
    this.#options = options;
    this.#behaviour = behaviour;
    this.#bases = bases;
    this.#saved = saved;
  }

  static async open(options: FakeOptions, behaviour: FakeBehaviour): Promise<FakeEngine> {
    const { directory, model = directory, more = {} } = options;
    const open = Object.entries({ [model]: directory, ...more }).map(
      async ([name, path]) => [name, await FakeModels.open(path, behaviour)] as const,
    );
    return new FakeEngine(options, behaviour, new Map(await Promise.all(open)), new Map());
  }

  restarted(): FakeEngine {
    return new FakeEngine(this.#options, this.#behaviour, this.#bases, this.#saved);
  }

  expire(): void {
    this.models.clear();
  }

  forget(): void {
    this.#saved.clear();
  }

  handle(path: string, body: Body, fault: Fault | undefined): unknown {
    if (path === 'get_server_capabilities')
      return { supported_models: [...this.#bases.keys()].map((model_name) => ({ model_name })) };
    if (path === 'create_session') return { type: 'create_session', session_id: this.#name('session') };
    if (path === 'session_heartbeat') return { type: 'session_heartbeat' };
    if (path === 'create_sampling_session') {
      const id = this.#name('sampling');
      this.#samplers.set(id, String(body.model_path));
      return { type: 'create_sampling_session', sampling_session_id: id };
    }
    const missing =
      (path === 'forward' && !this.#behaviour.forward) || (path === 'unload_model' && !this.#behaviour.unloads);
    if (missing || !IN_ORDER.includes(path)) throw new Refusal(404, { detail: 'Not Found' });
    return this.#submit(path, body, fault);
  }

  /** The outcome of a request that was taken in. */
  result(id: string): Promise<unknown> {
    const future = this.#futures.get(id);
    return future ?? Promise.reject(this.#failure('Future not found', 404));
  }

  #submit(path: string, body: Body, fault: Fault | undefined): unknown {
    const number =
      body.seq_id === undefined ? undefined : `${body.model_id ?? body.sampling_session_id} ${body.seq_id}`;
    const earlier = number === undefined ? undefined : this.#numbered.get(number);
    if (this.#behaviour.seqIdIdempotent && earlier !== undefined) {
      if (earlier.body !== JSON.stringify(body))
        throw new Refusal(409, { detail: 'Training request sequence number was reused' });
      return this.#pending(earlier.id);
    }
    const id =
      this.#behaviour.errors === 'detail'
        ? String(this.#names++)
        : `00000000-0000-4000-8000-${String(this.#names++).padStart(12, '0')}`;
    if (number !== undefined) this.#numbered.set(number, { id, body: JSON.stringify(body) });
    const future = new Promise((resolve, reject) => {
      this.#jobs.push({ path, body, fault, resolve, reject });
      if (this.#jobs.length === 1)
        setImmediate(() => {
          this.#last = this.#last.then(() => this.#work());
        });
    });
    future.catch(() => {});
    this.#futures.set(id, future);
    return this.#pending(id);
  }

  #pending(id: string) {
    return this.#behaviour.errors === 'detail'
      ? { future_id: id, status: 'pending', request_id: id }
      : { request_id: id };
  }

  /** All requests so far, in order. Consecutive requests for samples are sampled together. */
  async #work(): Promise<void> {
    if (this.#behaviour.sampler === 'mixed') await takesTime(20); // until a batch has come together
    const jobs = this.#jobs;
    this.#jobs = [];
    for (let at = 0; at < jobs.length; ) {
      let to = at + 1;
      if (jobs[at]?.path === 'asample') while (jobs[to]?.path === 'asample') to++;
      const together = jobs.slice(at, to);
      at = to;
      if ((together[0] as Job).path === 'asample') await this.#playAll(together);
      else await this.#compute(together[0] as Job);
    }
  }

  async #compute({ path, body, fault, resolve, reject }: Job): Promise<void> {
    if (fault?.type === 'hang') return;
    try {
      const outcome = await this.#perform(path, body);
      if (outcome === 'never') return;
      if (fault?.type === 'result') throw new Refusal(fault.status, fault.body);
      resolve(fault?.type === 'null' ? withNulls(outcome) : outcome);
    } catch (error) {
      reject(error);
    }
  }

  async #perform(path: string, body: Body): Promise<unknown> {
    if (path === 'create_model') return this.#createModel(body);
    const model = this.#model(String(body.model_id));
    const requests = model.requests++;
    switch (path) {
      case 'forward':
      case 'forward_backward':
        return this.#pass(model, path, body);
      case 'optim_step': {
        const norm = await model.of.update(model, body.adam_params as Record<string, number>);
        return { metrics: this.#behaviour.tellsNorm ? { 'skyrl.ai/grad_norm': norm } : {}, type: 'optim_step' };
      }
      case 'save_weights': {
        const saved = `tinker://${model.id}/weights/${body.path}`;
        this.#saved.set(saved, await model.of.save(model));
        return { path: saved, type: 'save_weights' };
      }
      case 'load_weights': {
        if (this.#behaviour.loadsFirst && requests > 0)
          throw this.#failure(`LoadWeights is not permitted with seq_id ${body.seq_id}`);
        const saved = this.#saved.get(String(body.path));
        if (saved === undefined) throw this.#failure(`Checkpoint not found: ${body.path}`, 404);
        model.of.load(model, saved, body.optimizer === true);
        return { type: 'load_weights' };
      }
      case 'save_weights_for_sampler':
        return this.#snapshot(model, body);
      default:
        this.models.delete(model.id);
        return { type: 'unload_model' };
    }
  }

  #createModel(body: Body): unknown {
    const { rank, seed } = body.lora_config as { rank: number; seed: number };
    const most = this.#options.maxModels ?? 8;
    if (this.models.size >= most) throw this.#failure(`Maximum number of LoRA adapters (${most}) reached`);
    if (rank > 32) throw this.#failure(`LoRA rank ${rank} must be between 1 and 32`);
    const base = this.#bases.get(String(body.base_model));
    if (base === undefined) throw this.#failure(`Base model ${body.base_model} not supported`);
    const id = this.#name('model');
    const { alpha = rank } = this.#options;
    this.models.set(id, base.create(id, { rank, alpha, targets: PROJECTIONS }, seed));
    return { model_id: id, lora_config: { rank, alpha, seed }, type: 'create_model' };
  }

  async #pass(model: FakeModel, path: string, body: Body): Promise<unknown> {
    const input = (body.forward_input ?? body.forward_backward_input) as {
      data: FakeDatum[];
      loss_fn: string;
      loss_fn_config?: Record<string, number>;
    };
    if (input.data.length === 0 && this.#behaviour.emptyBatch === 'hang') return 'never';
    if (!this.#behaviour.losses.includes(input.loss_fn)) throw this.#failure(`Loss ${input.loss_fn} not supported`);
    const { logprobs, loss } =
      path === 'forward'
        ? { logprobs: await model.of.logprobs(model, input.data), loss: 0 }
        : await model.of.pass(model, input.data, input.loss_fn, input.loss_fn_config ?? {});
    if (Number.isNaN(loss) && this.#behaviour.errors === 'detail') throw new Refusal(500, 'Internal Server Error');
    return {
      loss_fn_output_type: 'scalar',
      loss_fn_outputs: logprobs.map((data) => ({ logprobs: { data, dtype: 'float32', shape: [data.length] } })),
      metrics: this.#behaviour.tellsLoss ? { 'loss:sum': loss } : {},
    };
  }

  #snapshot(model: FakeModel, { path: name }: Body): unknown {
    const path = `tinker://${model.id}/${typeof name === 'string' ? name : this.#name('snapshot')}`;
    const kept = this.#behaviour.sampler === 'name-kept' ? this.#snapshots.get(path) : undefined;
    this.#snapshots.set(path, kept ?? { model: model.id, weights: onHost(model.policy.trained).slice() });
    model.loadedSnapshot = path;
    if (this.#behaviour.namesSnapshots) return { path, type: 'save_weights_for_sampler', sampling_session_id: null };
    const session = this.#name('sampling');
    this.#samplers.set(session, path);
    return { path: null, type: 'save_weights_for_sampler', sampling_session_id: session };
  }

  async #playAll(jobs: readonly Job[]): Promise<void> {
    const ready = jobs.flatMap((job) => {
      if (job.fault?.type === 'hang') return [];
      try {
        return [{ job, ...this.#request(job.body) }];
      } catch (error) {
        job.reject(error);
        return [];
      }
    });
    const first = ready[0]?.request.policy;
    if (this.#behaviour.sampler === 'mixed' && first !== undefined)
      for (const each of ready) each.request = { ...each.request, policy: first };
    for (const base of this.#bases.values()) {
      const ofBase = ready.filter(({ model }) => model.of === base);
      const results = await base.play(ofBase.map(({ request }) => request));
      for (const [i, each] of ofBase.entries()) await this.#answer(each, results[i] as SamplerResult);
    }
  }

  async #answer({ job, model, request }: Playing, { tokens, logprobs, finishReason }: SamplerResult): Promise<void> {
    const whole = Int32Array.from([...request.prompt, ...tokens]);
    const tempered = this.#behaviour.loggedTemperature === 'sampling' || request.temperature === 1;
    const untempered = tempered ? logprobs : await this.#untempered(model, whole, request.prompt.length);
    const answer = {
      sequences: [{ stop_reason: this.#behaviour.stops ? finishReason : 'stop', tokens, logprobs: untempered }],
      prompt_logprobs: await this.#promptLogprobs(model, request, job.body),
    };
    const { fault } = job;
    if (fault?.type === 'result') job.reject(new Refusal(fault.status, fault.body));
    else job.resolve(fault?.type === 'null' ? withNulls(answer) : answer);
  }

  async #untempered(model: FakeModel, tokens: Int32Array, prompt: number): Promise<number[]> {
    const sequence = { tokens, mask: new Uint8Array(tokens.length).fill(1, 1), temperature: 1 };
    const { logprobs } = await model.policy.score([sequence]);
    return [...(logprobs[0] as Float32Array).subarray(prompt)];
  }

  async #promptLogprobs(model: FakeModel, request: PlayRequest, body: Body) {
    const { promptLogprobs } = this.#behaviour;
    if (body.prompt_logprobs !== true || promptLogprobs === 'none') return null;
    const trained = onHost(model.policy.trained);
    const live = trained.slice();
    const snapshot = this.#snapshots.get(request.policy.replace(/#\d+$/, '')) as Snapshot;
    if (this.#behaviour.snapshots === 'isolated') trained.set(snapshot.weights);
    model.policy.weightsChanged();
    const logprobs = await this.#untempered(model, Int32Array.from(request.prompt), 1);
    trained.set(live);
    model.policy.weightsChanged();
    return promptLogprobs === 'all' ? [null, ...logprobs] : logprobs;
  }

  #request(body: Body): Omit<Playing, 'job'> {
    const path = this.#samplers.get(String(body.sampling_session_id));
    const snapshot = path === undefined ? undefined : this.#snapshots.get(path);
    if (path === undefined || snapshot === undefined) throw this.#failure('Sampling session not found', 404);
    const model = this.#model(snapshot.model);
    const prompt = (body.prompt as { chunks: { tokens: number[] }[] }).chunks.flatMap(({ tokens }) => tokens);
    const policy = this.#showSnapshot(model, path, snapshot, String(prompt));
    const params = body.sampling_params as Record<string, number> & { stop?: number[] };
    const request = {
      policy,
      prompt,
      stopTokens: this.#behaviour.stops ? (params.stop ?? []) : [],
      maxTokens: params.max_tokens as number,
      temperature: params.temperature ?? 1,
      topP: params.top_p ?? 1,
      topK: Math.max(0, params.top_k ?? 0),
      seed: params.seed ?? 0,
    };
    return { model, request };
  }

  /** Shows a snapshot to the sampler, by a name of the request's own. Servers differ in what training sees of it. */
  #showSnapshot(model: FakeModel, path: string, snapshot: Snapshot, prompt: string): string {
    if (this.#behaviour.snapshots === 'rolled-back' && model.loadedSnapshot !== path) {
      onHost(model.policy.trained).set(snapshot.weights);
      model.policy.weightsChanged();
      model.loadedSnapshot = path;
    }
    const weights = this.#behaviour.snapshots === 'isolated' ? snapshot.weights : onHost(model.policy.trained);
    const key = `${path}#${this.#requests++}`;
    model.of.show(key, model.adapter, this.#faultily(path, model, prompt, weights));
    return key;
  }

  /** The weights that a sampler with a fault takes for a snapshot. */
  #faultily(path: string, model: FakeModel, prompt: string, weights: Float32Array): Float32Array {
    const { sampler } = this.#behaviour;
    const [before, last] = this.#sampled.filter((each) => each.startsWith(`tinker://${model.id}/`)).slice(-2);
    const evicted = this.#sampled.includes(path) && !this.#sampled.slice(-RESIDENT).includes(path);
    if (last !== path || evicted) this.#sampled.push(path);
    if (sampler === 'cached') {
      const kept = this.#cached.get(`${model.id} ${prompt}`) ?? weights;
      this.#cached.set(`${model.id} ${prompt}`, kept);
      return kept;
    }
    if (sampler === 'behind' && last === path && before !== undefined && this.#requests % 2 === 0)
      return this.#snapshots.get(before)?.weights ?? weights;
    return sampler === 'scaled' && evicted ? weights.map((weight) => 2 * weight) : weights;
  }

  #model(id: string): FakeModel {
    const model = this.models.get(id);
    if (model === undefined)
      throw this.#failure(
        this.#behaviour.errors === 'error_message' ? `Adapter ${id} not found.` : `Model ${id} not loaded`,
      );
    return model;
  }

  /** The reply of a failed future. */
  #failure(text: string, status = 400): Refusal {
    const { errors } = this.#behaviour;
    if (errors === 'error') return new Refusal(200, { error: `Traceback ...\n${text}`, category: 'server' });
    if (errors === 'error_message') return new Refusal(400, { type: 'RequestFailedResponse', error_message: text });
    return new Refusal(status, { detail: text });
  }

  #name(kind: string): string {
    return `${kind}_${(this.#names++).toString(16).padStart(8, '0')}`;
  }
}

/** The first number of every list, and every metric, gone. */
function withNulls(value: unknown): unknown {
  if (Array.isArray(value))
    return value.every((each) => typeof each === 'number') ? [null, ...value.slice(1)] : value.map(withNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === 'tokens' || key === 'shape' ? each : typeof each === 'number' ? null : withNulls(each),
    ]),
  );
}
