/** The model of a probe: sequences to send to it, and its replies. */
import type { RemoteModel } from '../remote-model.js';
import { gradientNormOf } from '../remote-trainer.js';
import {
  type PassInput,
  passAnswer,
  sampleAnswer,
  samplingSessionAnswer,
  savedAnswer,
  stepAnswer,
} from '../wire/answers.js';
import { checkedSample } from '../wire/datum.js';
import { score, sendPasses } from '../wire/passes.js';
import type { TinkerClient } from '../wire/tinker-client.js';

/** Two sequences with the same beginning, which contains the token to learn. Every vocabulary has these ids. */
export const LONG = Int32Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
export const SHORT = LONG.slice(0, 6);
export const LEARNING = 3;

export class ProbedModel {
  readonly client: TinkerClient;
  readonly model: RemoteModel;
  /** Whether the server has a pass without a gradient. */
  readonly forward: boolean;
  #requests = 0;

  constructor(client: TinkerClient, model: RemoteModel, forward: boolean) {
    this.client = client;
    this.model = model;
    this.forward = forward;
  }

  /** Log-probs of all targets of each sequence. */
  score(...sequences: readonly Int32Array[]): Promise<Float32Array[]> {
    return score(
      this.model,
      { forward: this.forward },
      sequences.map((tokens) => ({ tokens })),
      { waiting: false },
    );
  }

  /** The norm of a batch's gradient, undefined if the server reports none, and the loss, NaN if it reports none. */
  async measure(inputs: readonly PassInput[]): Promise<{ readonly norm: number | undefined; readonly loss: number }> {
    const passes = await sendPasses(this.model, inputs);
    const step = await this.model.submit('optim_step', { adam_params: { learning_rate: 0 } });
    let loss = 0;
    for (const pass of passes) {
      const { metrics } = await pass.result(passAnswer);
      loss += metrics?.['loss:sum'] ?? metrics?.['total_loss:sum'] ?? Number.NaN;
    }
    return { norm: gradientNormOf((await step.result(stepAnswer)).metrics), loss };
  }

  /** A sampling session on a snapshot of the present weights, which is given a name if there is one. */
  async snapshot(name?: string): Promise<string> {
    const body = name === undefined ? { sampling_session_seq_id: this.client.nextSampler() } : { path: name };
    const { sampling_session_id, path } = await this.model.finish('save_weights_for_sampler', body, savedAnswer);
    if (typeof sampling_session_id === 'string') return sampling_session_id;
    const session = {
      session_id: await this.client.session(),
      sampling_session_seq_id: this.client.nextSampler(),
      model_path: path,
      type: 'create_sampling_session',
    };
    return (await this.client.ask('create_sampling_session', session, samplingSessionAnswer)).sampling_session_id;
  }

  /** Samples of a session as the server returns them: by default one of at most 8 tokens. */
  async draw(session: string, tokens: readonly number[], params: DrawParams = {}) {
    const { num_samples = 1, ...sampling } = params;
    const body = {
      sampling_session_id: session,
      seq_id: this.#requests++,
      num_samples,
      prompt: { chunks: [{ type: 'encoded_text', tokens }] },
      sampling_params: { max_tokens: 8, seed: 1, temperature: 1, ...sampling },
      prompt_logprobs: true,
      type: 'sample',
    };
    return this.client.finish('asample', body, sampleAnswer);
  }

  async sample(session: string, tokens: readonly number[], temperature: number, params: DrawParams = {}) {
    const answer = await this.draw(session, tokens, { ...params, temperature });
    const request = {
      prompt: tokens,
      temperature,
      topP: 1,
      topK: 0,
      maxTokens: params.max_tokens ?? 8,
      stopTokens: [],
      key: [0, 1],
    } as const;
    const source = { server: 'the server', policy: this.model.name };
    return { ...checkedSample(answer, request, ANY_MODEL, source), promptLogprobs: answer.prompt_logprobs };
  }
}

export interface DrawParams {
  readonly num_samples?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
  readonly temperature?: number;
  readonly stop?: readonly number[];
}

/** The sizes of the server's model are not known here. */
const ANY_MODEL = { vocabSize: 2 ** 31, context: 2 ** 31 };

/** Dropout and rounding may change a norm by this fraction of it. */
export const TOLERANCE = 0.25;

/** Whether a norm or a loss has the expected value. A value that the server does not report has not. */
export function isNear(value: number | undefined, expected: number, tolerance = TOLERANCE): boolean {
  return value !== undefined && Math.abs(value - expected) <= tolerance * Math.abs(expected);
}
