/** Measures the facts that a server reports about samples, and whether snapshots keep their weights. */
import type { ServerProfile } from '../server-profile.js';
import { stepAnswer } from '../wire/answers.js';
import { datumOf } from '../wire/datum.js';
import { rowsOf, sendPasses } from '../wire/passes.js';
import { LONG, type ProbedModel, SHORT } from './probed-model.js';

type SamplingProfile = Pick<ServerProfile, 'promptLogprobs' | 'loggedTemperature' | 'snapshotIsolation'>;

/**
 * Log-probs that should be equal differ by less than this in low precision. A temperature of 1/2 changes them by more.
 */
const EQUAL_LOGPROBS = 0.15;
const LEARNING_RATE = 1e-2;

export async function probeSampling(probed: ProbedModel): Promise<SamplingProfile> {
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
    const step = await model.submit('optim_step', { adam_params: adam }, { repeatable: true });
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
