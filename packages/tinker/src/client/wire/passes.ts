/** Passes of a model over samples: log-probs alone, or a gradient that the server keeps until the next update. */

import {
  correctionOf,
  countTokens,
  type ForwardBackwardOptions,
  lossKind,
  rowsOfSample,
  rowWeight,
} from '@drmas/engine/loss';
import type { TrainingSample } from '@drmas/engine/nouns';
import type { RemoteModel } from '../remote-model.js';
import type { ServerProfile } from '../server-profile.js';
import { type PassInput, passAnswer } from './answers.js';
import { chunksOf, datumOf, rowOf } from './datum.js';
import type { Submitted } from './tinker-client.js';

/**
 * The log-probs of all targets of each sequence, rows [T] with 0 for the first token; the weights and gradients do not
 * change.
 * @param waiting An update has its turn and waits for them
 */
export async function score(
  model: RemoteModel,
  { forward }: Pick<ServerProfile, 'forward'>,
  samples: readonly { readonly tokens: Int32Array }[],
  { waiting }: { readonly waiting: boolean },
): Promise<Float32Array[]> {
  if (samples.length === 0) return [];
  const chunks = chunksOf(samples);
  const send = async () => {
    const submitted: Submitted[] = [];
    for (const chunk of chunks) {
      // If the server has no pass without a gradient, a pass with weights of 0 adds nothing to the gradient.
      const data = chunk.map(({ tokens }) =>
        datumOf(tokens, { weights: new Float32Array(tokens.length).fill(forward ? 1 : 0) }),
      );
      const input = { data, loss_fn: 'cross_entropy' };
      submitted.push(
        forward
          ? await model.submit('forward', { forward_input: input })
          : await model.submit('forward_backward', { forward_backward_input: input }),
      );
    }
    return submitted;
  };
  return model.request(send, (submitted) => rowsOf(submitted, chunks), { waiting });
}

/** Sends batches whose gradients add up on the server; the caller has the model's turn. */
export async function sendPasses(model: RemoteModel, inputs: readonly PassInput[]): Promise<Submitted[]> {
  const submitted: Submitted[] = [];
  for (const input of inputs)
    submitted.push(await model.submit('forward_backward', { forward_backward_input: input }, { repeatable: false }));
  return submitted;
}

/**
 * The log-probs in the replies to requests that were sent in chunks.
 * @throws TinkerError `malformed` if one is missing
 */
export async function rowsOf(
  submitted: readonly Submitted[],
  chunks: readonly (readonly { readonly tokens: Int32Array }[])[],
): Promise<Float32Array[]> {
  const answers = await settled(submitted.map((each) => each.result(passAnswer)));
  return answers.flatMap(({ loss_fn_outputs }, c) =>
    (chunks[c] ?? []).map(({ tokens }, i) => rowOf(loss_fn_outputs[i] ?? { logprobs: { data: [] } }, tokens)),
  );
}

/** All results, or the first failure after all requests have ended. */
export async function settled<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/**
 * The samples as a batch of the server's own loss, if that equals our loss and the objective has no other part. Both
 * are proportional to the advantage, so the advantages include our divisors.
 */
export function nativePass(
  samples: readonly TrainingSample[],
  { loss, normalizer, ...terms }: ForwardBackwardOptions,
  { native, reduction }: Pick<ServerProfile, 'native' | 'reduction'>,
): PassInput | undefined {
  if (loss.type === 'demonstrations' || correctionOf(loss) !== undefined) return undefined;
  const { protocolLoss, aggregate } = lossKind(loss);
  if (protocolLoss === undefined || reduction !== 'sum' || !native.includes(protocolLoss.name)) return undefined;
  if (Object.values(terms).some((term) => term !== undefined)) return undefined;
  const data = samples.map((sample) => {
    const weighed = new Float64Array(sample.tokens.length);
    for (const { span, mask, ...wholes } of rowsOfSample(sample)) {
      const scale = rowWeight(aggregate, countTokens(mask), wholes) / normalizer;
      for (let t = span.start; t < span.end; t++)
        if (sample.mask[t] !== 0) weighed[t] = (sample.advantages[t] as number) * scale;
    }
    return datumOf(sample.tokens, { logprobs: sample.behaviourLogprobs, advantages: weighed });
  });
  const { name, low, high } = protocolLoss;
  return { data, loss_fn: name, loss_fn_config: { clip_low_threshold: low, clip_high_threshold: high } };
}
