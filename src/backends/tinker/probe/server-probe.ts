/**
 * Finds out what a server does, on a model of its own that is unloaded afterwards. Losses are told apart by the norm of the
 * gradient that an update with learning rate 0 reports: a batch is sent the way in which training would send it, and must
 * give the gradient that it stands for. Nothing that could break an adapter is sent: a way with negative weights is only
 * tried where losses are sums.
 */

import { RemoteModel } from '../remote-model.js';
import { gradientNormOf } from '../remote-trainer.js';
import { type GradientPath, PROFILES, type ServerProfile } from '../server-profile.js';
import {
  type PassInput,
  passAnswer,
  sampleAnswer,
  samplingSessionAnswer,
  savedAnswer,
  stepAnswer,
} from '../wire/answers.js';
import { datumOf, gradientPass } from '../wire/datum.js';
import { rowsOf, score, sendPasses } from '../wire/passes.js';
import type { TinkerClient } from '../wire/tinker-client.js';
import { isKind, TinkerError } from '../wire/tinker-failure.js';

export interface ProbeRequest {
  readonly client: TinkerClient;
  /** What the probe's own model adapts, and its rank. */
  readonly baseModel: string;
  readonly rank: number;
}

/** Two sequences that begin alike; the token that learns is where they still do. Any vocabulary has these ids. */
const LONG = Int32Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
const SHORT = LONG.slice(0, 6);
const LEARNING = 3;
/** Dropout and rounding may move a norm by so much of itself. */
const TOLERANCE = 0.25;
/** Log-probs that should be equal differ by less in low precision; a temperature of 1/2 makes more of a difference. */
const EQUAL_LOGPROBS = 0.15;
const LEARNING_RATE = 1e-2;

/** @throws TinkerError when the server cannot do what any training needs */
export async function probeServer(request: ProbeRequest): Promise<ServerProfile> {
  const { client, baseModel, rank } = request;
  const spec = { baseModel, rank, seed: 1, attention: true, feedForward: true };
  const model = await RemoteModel.create({ client, name: 'probe', spec, idempotent: false, onRecovery: () => {} });
  try {
    return await new Probe(client, model).profile();
  } finally {
    await model.unload();
  }
}

class Probe {
  readonly #client: TinkerClient;
  readonly #model: RemoteModel;

  constructor(client: TinkerClient, model: RemoteModel) {
    this.#client = client;
    this.#model = model;
  }

  async profile(): Promise<ServerProfile> {
    const errorShape = await this.#errorShape();
    const forward = await this.#hasForward();
    const seqIdIdempotent = await this.#idempotent(forward);
    const losses = await this.#losses(forward);
    const sampling = await this.#sampling(forward);
    const measured = { errorShape, forward, seqIdIdempotent, ...losses, ...sampling };
    const name = nameOf(measured);
    return {
      ...measured,
      name: name ?? 'unknown',
      clipsGradients: name !== undefined && PROFILES[name].clipsGradients,
    };
  }

  /** How it says that a model does not exist. */
  async #errorShape(): Promise<ServerProfile['errorShape']> {
    try {
      const body = { model_id: 'drmas-no-such-model', adam_params: { learning_rate: 0 }, type: 'optim_step' };
      await (await this.#client.submit('optim_step', body, { repeatable: true })).result(stepAnswer);
    } catch (error) {
      if (error instanceof TinkerError && error.shape !== undefined) return error.shape;
      throw error;
    }
    throw new TinkerError('malformed', 'the server updated a model that does not exist');
  }

  async #hasForward(): Promise<boolean> {
    try {
      await this.#score(true, LONG);
      return true;
    } catch (error) {
      if (isKind(error, 'refused', 'lost') && (error.status === 404 || error.status === 405)) return false;
      throw error;
    }
  }

  /** Whether the same request under the same number is one request. */
  async #idempotent(forward: boolean): Promise<boolean> {
    const input = { data: [datumOf(LONG, { weights: new Float32Array(LONG.length) })], loss_fn: 'cross_entropy' };
    const [path, body] = forward
      ? (['forward', { forward_input: input }] as const)
      : (['forward_backward', { forward_backward_input: input }] as const);
    const request = { model_id: this.#model.id, ...body, seq_id: this.#model.takeNumber(), type: path };
    const first = await this.#client.submit(path, request, { repeatable: true });
    const second = await this.#client.submit(path, request, { repeatable: true });
    await Promise.all([first.result(passAnswer), second.result(passAnswer)]);
    return first.id === second.id;
  }

  /** What a batch gives: norm of its gradient, or its loss where the server tells no norm. */
  async #measure(inputs: readonly PassInput[]): Promise<{ readonly norm: number; readonly loss: number }> {
    const passes = await sendPasses(this.#model, inputs);
    const step = await this.#model.submit('optim_step', { adam_params: { learning_rate: 0 } }, { repeatable: true });
    let loss = 0;
    for (const pass of passes) {
      const { metrics } = await pass.result(passAnswer);
      loss += metrics?.['loss:sum'] ?? metrics?.['total_loss:sum'] ?? Number.NaN;
    }
    return { norm: gradientNormOf((await step.result(stepAnswer)).metrics), loss };
  }

  async #losses(forward: boolean): Promise<Pick<ServerProfile, 'reduction' | 'negativeWeights' | 'native'>> {
    const [long, short] = await this.#score(forward, LONG, SHORT);
    const row = (tokens: Int32Array, logprobs: Float32Array | undefined, gradient: number) => ({
      tokens,
      logprobs: logprobs as Float32Array,
      gradient: Float32Array.from(tokens, (_, t) => (t === LEARNING ? gradient : 0)),
    });
    // One token's cross-entropy alone is the same under every way of averaging.
    const alone = datumOf(LONG, { weights: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)) });
    const unit = await this.#measure([{ data: [alone], loss_fn: 'cross_entropy' }]);
    // Gradients of the same log-prob add up; so do the losses: at ratio 1 they are the gradients, otherwise these times the log-prob.
    const works = async (path: GradientPath, one: number, other: number) => {
      const { norm, loss } = await this.#measure([
        gradientPass([row(LONG, long, one), row(SHORT, short, other)], path, 2),
      ]);
      const sum = one + other;
      if (Number.isFinite(norm) && Number.isFinite(unit.norm)) return near(norm, Math.abs(sum) * unit.norm);
      return path !== 'scaled-ratio' && near(loss, path === 'ratio' ? sum : sum * (long?.[LEARNING] ?? 0));
    };
    if (await works('ratio', -1, -2)) {
      const negativeWeights = await works('weights', 3, -1);
      return { reduction: 'sum', negativeWeights, native: await this.#native(long as Float32Array, unit.norm) };
    }
    const reduction = (await works('scaled-ratio', -1, -2)) ? 'sequence-mean' : 'other';
    return { reduction, negativeWeights: false, native: [] };
  }

  /** A ratio of e^1/2 under bounds that clip it and under bounds that do not. */
  async #native(logprobs: Float32Array, unit: number): Promise<ServerProfile['native']> {
    const ratio = Math.exp(0.5);
    const norm = async (loss: 'ppo' | 'cispo', low: number, high: number) => {
      const datum = datumOf(LONG, {
        logprobs: logprobs.map((logprob) => logprob - 0.5),
        advantages: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)),
      });
      const config = { clip_low_threshold: low, clip_high_threshold: high };
      try {
        return (await this.#measure([{ data: [datum], loss_fn: loss, loss_fn_config: config }])).norm;
      } catch (error) {
        if (isKind(error, 'refused', 'failed')) return Number.NaN; // a loss or setting that it does not have
        throw error;
      }
    };
    const native: ('ppo' | 'cispo')[] = [];
    if (near(await norm('ppo', 0.5, 2), ratio * unit) && (await norm('ppo', 0.8, 1.2)) < TOLERANCE * unit)
      native.push('ppo');
    if (near(await norm('cispo', 0, 2), ratio * unit) && near(await norm('cispo', 0, 1.1), 1.1 * unit, 0.1))
      native.push('cispo');
    return native;
  }

  async #sampling(
    forward: boolean,
  ): Promise<Pick<ServerProfile, 'promptLogprobs' | 'loggedTemperature' | 'snapshotIsolation'>> {
    const prompt = [...SHORT];
    const before = (await this.#score(forward, LONG))[0] as Float32Array;
    const session = await this.#snapshot();
    const answer = await this.#sample(session, prompt, 0.5);
    const sampled = answer.sequences[0] as (typeof answer.sequences)[number];
    const whole = Int32Array.from([...prompt, ...sampled.tokens]);
    const [scored] = await this.#score(forward, whole);
    const gap = sampled.tokens.map((_, t) =>
      Math.abs((sampled.logprobs?.[t] ?? Number.NaN) - (scored?.[prompt.length + t] as number)),
    );
    const length = answer.prompt_logprobs?.length ?? 0;
    return {
      loggedTemperature: Math.max(...gap) < EQUAL_LOGPROBS ? 'one' : 'sampling',
      promptLogprobs: length === 0 ? 'none' : length === prompt.length ? 'all' : 'after-first',
      snapshotIsolation: await this.#isolates(forward, session, before),
    };
  }

  /** Trains the probe's model, samples the snapshot of before, and looks whether either has become the other. */
  async #isolates(forward: boolean, session: string, before: Float32Array): Promise<boolean> {
    const data = [datumOf(LONG, { weights: new Float32Array(LONG.length).fill(1) })];
    const adam = { learning_rate: LEARNING_RATE, beta1: 0.9, beta2: 0.95, eps: 1e-8 };
    for (let i = 0; i < 3; i++) {
      const passes = await sendPasses(this.#model, [{ data, loss_fn: 'cross_entropy' }]);
      const step = await this.#model.submit('optim_step', { adam_params: adam }, { repeatable: true });
      await rowsOf(passes, [[{ tokens: LONG }]]);
      await step.result(stepAnswer);
    }
    const trained = (await this.#score(forward, LONG))[0] as Float32Array;
    const { prompt_logprobs } = await this.#sample(session, [...LONG], 1);
    const after = (await this.#score(forward, LONG))[0] as Float32Array;
    const old = prompt_logprobs?.slice(-(LONG.length - 1));
    if (old === undefined || old.length === 0) return false; // it cannot be seen, so it is not relied on
    const distance = (a: Float32Array, b: ArrayLike<number | null>) => {
      let sum = 0;
      for (let t = 1; t < LONG.length; t++) sum += Math.abs((a[t] as number) - (b[t - LONG.length + b.length] ?? 0));
      return sum;
    };
    const moved = distance(trained, before);
    return distance(before, old) < moved / 2 && distance(trained, after) < moved / 2;
  }

  async #snapshot(): Promise<string> {
    const body = { sampling_session_seq_id: this.#client.nextSampler() };
    const submitted = await this.#model.submit('save_weights_for_sampler', body, { repeatable: true });
    const { sampling_session_id, path } = await submitted.result(savedAnswer);
    if (typeof sampling_session_id === 'string') return sampling_session_id;
    const session = {
      session_id: await this.#client.session(),
      sampling_session_seq_id: this.#client.nextSampler(),
      model_path: path,
      type: 'create_sampling_session',
    };
    return (await this.#client.ask('create_sampling_session', session, samplingSessionAnswer)).sampling_session_id;
  }

  #requests = 0;

  async #sample(session: string, tokens: readonly number[], temperature: number) {
    const body = {
      sampling_session_id: session,
      seq_id: this.#requests++,
      num_samples: 1,
      prompt: { chunks: [{ type: 'encoded_text', tokens }] },
      sampling_params: { max_tokens: 8, seed: 1, temperature },
      prompt_logprobs: true,
      type: 'sample',
    };
    return (await this.#client.submit('asample', body, { repeatable: true })).result(sampleAnswer);
  }

  #score(forward: boolean, ...sequences: readonly Int32Array[]): Promise<Float32Array[]> {
    return score(
      this.#model,
      { forward },
      sequences.map((tokens) => ({ tokens })),
      { waiting: false },
    );
  }
}

const near = (value: number, expected: number, tolerance = TOLERANCE) =>
  Math.abs(value - expected) <= tolerance * Math.abs(expected);

/** The known server that does all that was measured as this one does, so far as it decides anything. */
function nameOf(measured: Omit<ServerProfile, 'name' | 'clipsGradients'>): keyof typeof PROFILES | undefined {
  const deciding = ['reduction', 'negativeWeights', 'forward', 'snapshotIsolation', 'errorShape'] as const;
  const names = Object.keys(PROFILES) as (keyof typeof PROFILES)[];
  return names.find((name) => deciding.every((key) => PROFILES[name][key] === measured[key]));
}
