/**
 * Measures the behaviour of a server, with a model of its own that it unloads afterwards. An update with learning rate
 * 0 reports the norm of the gradient, which distinguishes losses: the probe sends a batch as training would send it,
 * and compares the norm with the expected one. It sends nothing that could break an adapter: it tries negative weights
 * only if the server sums losses.
 */
import { RemoteModel } from '../remote-model.js';
import { PROFILES, type ProfileName, type ServerProfile } from '../server-profile.js';
import { passAnswer, stepAnswer } from '../wire/answers.js';
import { datumOf } from '../wire/datum.js';
import { score } from '../wire/passes.js';
import type { TinkerClient } from '../wire/tinker-client.js';
import { isKind, TinkerError } from '../wire/tinker-failure.js';
import { probeLosses } from './loss-probe.js';
import { LONG, ProbedModel } from './probed-model.js';
import { probeSampling } from './sampling-probe.js';

export interface ProbeRequest {
  readonly client: TinkerClient;
  /** The base model of the probe's adapter. */
  readonly baseModel: string;
  readonly rank: number;
}

/** @throws TinkerError when the server lacks a feature that all training needs */
export async function probeServer({ client, baseModel, rank }: ProbeRequest): Promise<ServerProfile> {
  const spec = { baseModel, rank, seed: 1, attention: true, feedForward: true };
  const model = await RemoteModel.create({
    client,
    name: 'probe',
    spec,
    idempotent: false,
    extended: false,
    onRecovery: () => {},
  });
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
    await (await client.submit('optim_step', body, { repeatable: true })).result(stepAnswer);
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

/** Whether a repeated request with the same number counts as one request. */
async function isIdempotent(client: TinkerClient, model: RemoteModel, forward: boolean): Promise<boolean> {
  const input = { data: [datumOf(LONG, { weights: new Float32Array(LONG.length) })], loss_fn: 'cross_entropy' };
  const [path, body] = forward
    ? (['forward', { forward_input: input }] as const)
    : (['forward_backward', { forward_backward_input: input }] as const);
  const request = { model_id: model.id, ...body, seq_id: model.takeNumber(), type: path };
  const first = await client.submit(path, request, { repeatable: true });
  const second = await client.submit(path, request, { repeatable: true });
  await Promise.all([first.result(passAnswer), second.result(passAnswer)]);
  return first.id === second.id;
}

/** The known server with the measured behaviour, as far as the behaviour distinguishes servers. */
function nameOf(measured: Omit<ServerProfile, 'name' | 'clipsGradients'>): ProfileName | undefined {
  const deciding = ['reduction', 'negativeWeights', 'forward', 'snapshotIsolation', 'errorShape'] as const;
  const names = Object.keys(PROFILES) as ProfileName[];
  return names.find((name) => deciding.every((key) => PROFILES[name][key] === measured[key]));
}
