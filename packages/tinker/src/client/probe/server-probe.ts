/**
 * Measures the behaviour of a server, with a model of its own that it unloads afterwards. An update with learning rate
 * 0 reports the norm of the gradient, which distinguishes losses: the probe sends a batch as training would send it,
 * and compares the norm with the expected one. It sends nothing that could break an adapter: it tries negative weights
 * only if the server sums losses.
 */
import { RemoteModel } from '../remote-model.js';
import { type GradientPath, PROFILES, type ProfileName, type ServerProfile } from '../server-profile.js';
import { passAnswer, stepAnswer } from '../wire/answers.js';
import { datumOf, gradientPass } from '../wire/datum.js';
import { rowsOf, score, sendPasses } from '../wire/passes.js';
import type { TinkerClient } from '../wire/tinker-client.js';
import { isKind, TinkerError } from '../wire/tinker-failure.js';
import { isNear, LEARNING, LONG, ProbedModel, SHORT, TOLERANCE } from './probed-model.js';

export interface ProbeRequest {
  readonly client: TinkerClient;
  readonly baseModel: string;
  readonly rank: number;
}

/** @throws TinkerError when the server lacks a feature that all training needs */
export async function probeServer({ client, baseModel, rank }: ProbeRequest): Promise<ServerProfile> {
  const spec = { baseModel, rank, seed: 1, attention: true, feedForward: true };
  const model = await RemoteModel.create({ client, name: 'probe', spec });
  try {
    const errorShape = await probeErrors(client);
    const forward = await hasForward(model);
    const seqIdIdempotent = await isIdempotent(client, model, forward);
    const probed = new ProbedModel(client, model, forward);
    const losses = await probeLosses(probed);
    const measured = {
      extended: false,
      errorShape,
      forward,
      seqIdIdempotent,
      ...losses,
      ...(await probeSampling(probed)),
    };
    const name = nameOf(measured);
    const clipsGradients = name !== undefined && PROFILES[name].clipsGradients;
    return { ...measured, name: name ?? 'unknown', clipsGradients };
  } finally {
    await model.unload();
  }
}

/** The form of the server's error for a model that does not exist. */
async function probeErrors(client: TinkerClient): Promise<ServerProfile['errorShape']> {
  try {
    const body = { model_id: 'drmas-no-such-model', adam_params: { learning_rate: 0 }, type: 'optim_step' };
    await client.finish('optim_step', body, stepAnswer);
  } catch (error) {
    if (error instanceof TinkerError && error.shape !== undefined) return error.shape;
    throw error;
  }
  throw new TinkerError('malformed', 'the server updated a model that does not exist');
}

async function hasForward(model: RemoteModel): Promise<boolean> {
  try {
    await score(model, { forward: true }, [{ tokens: LONG }], { waiting: false });
    return true;
  } catch (error) {
    if (isKind(error, 'refused', 'lost') && (error.status === 404 || error.status === 405)) return false;
    throw error;
  }
}

async function isIdempotent(client: TinkerClient, model: RemoteModel, forward: boolean): Promise<boolean> {
  const input = { data: [datumOf(LONG, { weights: new Float32Array(LONG.length) })], loss_fn: 'cross_entropy' };
  const [path, body] = forward
    ? (['forward', { forward_input: input }] as const)
    : (['forward_backward', { forward_backward_input: input }] as const);
  const request = { model_id: model.id, ...body, seq_id: model.takeNumber(), type: path };
  const first = await client.submit(path, request);
  const second = await client.submit(path, request);
  await Promise.all([first.result(passAnswer), second.result(passAnswer)]);
  return first.id === second.id;
}

/** The known server with the measured behaviour, as far as the behaviour distinguishes servers. */
function nameOf(measured: Omit<ServerProfile, 'name' | 'clipsGradients'>): ProfileName | undefined {
  const deciding = ['reduction', 'negativeWeights', 'forward', 'snapshotIsolation', 'errorShape'] as const;
  const names = Object.keys(PROFILES) as ProfileName[];
  return names.find((name) => deciding.every((key) => PROFILES[name][key] === measured[key]));
}

type LossProfile = Pick<ServerProfile, 'reduction' | 'negativeWeights' | 'native'>;

async function probeLosses(probed: ProbedModel): Promise<LossProfile> {
  const [long, short] = (await probed.score(LONG, SHORT)) as [Float32Array, Float32Array];
  const row = (tokens: Int32Array, logprobs: Float32Array, gradient: number) => ({
    tokens,
    logprobs,
    gradient: Float32Array.from(tokens, (_, t) => (t === LEARNING ? gradient : 0)),
  });
  // One token's cross-entropy is the same for all kinds of averaging.
  const alone = datumOf(LONG, { weights: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)) });
  const unit = (await probed.measure([{ data: [alone], loss_fn: 'cross_entropy' }])).norm;
  // Gradients of the same log-prob add up, and so do the losses. At ratio 1 the losses equal the gradients, otherwise
  // the gradients times the log-prob.
  const works = async (path: GradientPath, one: number, other: number) => {
    const { norm, loss } = await probed.measure([
      gradientPass([row(LONG, long, one), row(SHORT, short, other)], path, 2),
    ]);
    const sum = one + other;
    if (norm !== undefined && unit !== undefined) return isNear(norm, Math.abs(sum) * unit);
    return path !== 'scaled-ratio' && isNear(loss, path === 'ratio' ? sum : sum * (long[LEARNING] ?? 0));
  };
  if (await works('ratio', -1, -2)) {
    const negativeWeights = await works('weights', 3, -1);
    return { reduction: 'sum', negativeWeights, native: await nativeLosses(probed, long, unit) };
  }
  const reduction = (await works('scaled-ratio', -1, -2)) ? 'sequence-mean' : 'other';
  return { reduction, negativeWeights: false, native: [] };
}

/** A ratio of e^1/2, with bounds that clip it and with bounds that do not. */
async function nativeLosses(
  probed: ProbedModel,
  logprobs: Float32Array,
  unit: number | undefined,
): Promise<ServerProfile['native']> {
  if (unit === undefined) return [];
  const ratio = Math.exp(0.5);
  const norm = async (loss: 'ppo' | 'cispo', low: number, high: number) => {
    const datum = datumOf(LONG, {
      logprobs: logprobs.map((logprob) => logprob - 0.5),
      advantages: Float32Array.from(LONG, (_, t) => (t === LEARNING ? 1 : 0)),
    });
    const config = { clip_low_threshold: low, clip_high_threshold: high };
    try {
      return (await probed.measure([{ data: [datum], loss_fn: loss, loss_fn_config: config }])).norm;
    } catch (error) {
      if (isKind(error, 'refused', 'failed')) return undefined; // the server does not have this loss or setting
      throw error;
    }
  };
  const native: ('ppo' | 'cispo')[] = [];
  const clipsPpo = async () => ((await norm('ppo', 0.8, 1.2)) ?? unit) < TOLERANCE * unit;
  if (isNear(await norm('ppo', 0.5, 2), ratio * unit) && (await clipsPpo())) native.push('ppo');
  if (isNear(await norm('cispo', 0, 2), ratio * unit) && isNear(await norm('cispo', 0, 1.1), 1.1 * unit, 0.1))
    native.push('cispo');
  return native;
}

type SamplingProfile = Pick<ServerProfile, 'promptLogprobs' | 'loggedTemperature' | 'snapshotIsolation'>;

/**
 * Log-probs that should be equal differ by less than this in low precision. A temperature of 1/2 changes them by more.
 */
const EQUAL_LOGPROBS = 0.15;
const LEARNING_RATE = 1e-2;

async function probeSampling(probed: ProbedModel): Promise<SamplingProfile> {
  const prompt = [...SHORT];
  const before = (await probed.score(LONG))[0] as Float32Array;
  const session = await probed.snapshot();
  const answer = await probed.sample(session, prompt, 0.5);
  const [scored] = await probed.score(Int32Array.from([...prompt, ...answer.tokens]));
  const gaps = answer.logprobs.map((logprob, t) => Math.abs(logprob - (scored?.[prompt.length + t] as number)));
  const length = answer.promptLogprobs?.length ?? 0;
  return {
    loggedTemperature: Math.max(...gaps) < EQUAL_LOGPROBS ? 'one' : 'sampling',
    promptLogprobs: length === 0 ? 'none' : length === prompt.length ? 'all' : 'after-first',
    snapshotIsolation: await isolates(probed, session, before),
  };
}

/** Trains the probe's model, samples its earlier snapshot, and checks whether either has changed the other. */
async function isolates(probed: ProbedModel, session: string, before: Float32Array): Promise<boolean> {
  const { model } = probed;
  const data = [datumOf(LONG, { weights: new Float32Array(LONG.length).fill(1) })];
  const adam = { learning_rate: LEARNING_RATE, beta1: 0.9, beta2: 0.95, eps: 1e-8 };
  for (let i = 0; i < 3; i++) {
    const passes = await sendPasses(model, [{ data, loss_fn: 'cross_entropy' }]);
    const step = await model.submit('optim_step', { adam_params: adam });
    await rowsOf(passes, [[{ tokens: LONG }]]);
    await step.result(stepAnswer);
  }
  const trained = (await probed.score(LONG))[0] as Float32Array;
  const { promptLogprobs } = await probed.sample(session, [...LONG], 1);
  const after = (await probed.score(LONG))[0] as Float32Array;
  const old = promptLogprobs?.slice(-(LONG.length - 1));
  if (old === undefined || old.length === 0) return false; // cannot be measured, so drmas does not rely on it
  const distance = (a: Float32Array, b: ArrayLike<number | null>) => {
    let sum = 0;
    for (let t = 1; t < LONG.length; t++) sum += Math.abs((a[t] as number) - (b[t - LONG.length + b.length] ?? 0));
    return sum;
  };
  const moved = distance(trained, before);
  return distance(before, old) < moved / 2 && distance(trained, after) < moved / 2;
}
