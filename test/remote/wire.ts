/** The protocol as plain JSON over HTTP, without the client library: the replies of the server itself. */
import { z } from 'zod';
import { stopwatch } from '../support/time-and-chance.js';

/** A reply with its status, which may be any. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** That a future may take: first calls compile. */
const PATIENCE_SECONDS = 120;

const session = z.object({ session_id: z.string() });
const future = z.object({ request_id: z.string() });
const capabilities = z.object({ supported_models: z.tuple([z.object({ model_name: z.string() })]) });
const model = z.object({ model_id: z.string() });
const tensor = z.object({ data: z.array(z.number()), dtype: z.literal('float32'), shape: z.array(z.int()) });
const pass = z.object({ loss_fn_outputs: z.array(z.object({ elementwise_loss: tensor, logprobs: tensor })) });
const step = z.object({
  metrics: z.object({ 'skyrl.ai/grad_norm': z.number(), 'skyrl.ai/learning_rate': z.number() }),
});
const sampler = z.object({ sampling_session_id: z.string() });
const samples = z.object({
  sequences: z.array(
    z.object({ stop_reason: z.enum(['stop', 'length']), tokens: z.array(z.int()), logprobs: z.array(z.number()) }),
  ),
  prompt_logprobs: z.array(z.number()).nullable(),
});

export interface PassRequest {
  readonly data: readonly Datum[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>>;
}

export interface SampleRequest {
  readonly prompt: readonly number[];
  readonly num_samples: number;
  readonly sampling_params: Readonly<Record<string, unknown>>;
}

export class Wire {
  readonly #url: string;
  readonly session: string;
  #samplers = 0;

  private constructor(url: string, session: string) {
    this.#url = url;
    this.session = session;
  }

  static async open(url: string): Promise<Wire> {
    const body = { tags: [], user_metadata: {}, sdk_version: '0.24.1', type: 'create_session' };
    return new Wire(url, session.parse((await request(url, 'create_session', body)).body).session_id);
  }

  post(path: string, body: unknown): Promise<Answer> {
    return request(this.#url, path, body);
  }

  get(path: string): Promise<Answer> {
    return request(this.#url, path);
  }

  /** The result behind a request that was taken in; a refusal stays as it is. */
  async finish(answer: Answer): Promise<Answer> {
    if (answer.status !== 200) return answer;
    const { request_id } = future.parse(answer.body);
    const seconds = stopwatch();
    for (;;) {
      const result = await this.post('retrieve_future', { request_id });
      if (result.status !== 408) return result;
      if (seconds() > PATIENCE_SECONDS) throw new Error(`request ${request_id} is not done`);
    }
  }

  /** @throws when the server refuses, or its answer has another shape */
  async call<S extends z.ZodType>(path: string, body: unknown, schema: S): Promise<z.output<S>> {
    const { status, body: result } = await this.finish(await this.post(path, body));
    if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(result).slice(0, 500)}`);
    return schema.parse(result);
  }

  async createModel(lora: { readonly rank: number; readonly seed: number }): Promise<string> {
    const { session: session_id } = this;
    const [{ model_name: base_model }] = capabilities.parse(
      (await this.get('get_server_capabilities')).body,
    ).supported_models;
    const body = { session_id, model_seq_id: 0, base_model, lora_config: lora };
    return (await this.call('create_model', body, model)).model_id;
  }

  /** Adds to the model's gradient, or with 'forward' only looks. */
  pass(model_id: string, input: PassRequest, kind: 'forward' | 'forward_backward' = 'forward_backward') {
    return this.call(kind, { model_id, [`${kind}_input`]: input }, pass);
  }

  /** Returns the gradient's norm. */
  async optimStep(model_id: string, learning_rate: number): Promise<number> {
    const adam_params = { learning_rate, beta1: 0.9, beta2: 0.95, eps: 1e-12 };
    return (await this.call('optim_step', { model_id, adam_params }, step)).metrics['skyrl.ai/grad_norm'];
  }

  /** Samples with the weights as they are now. */
  async sample(model_id: string, { prompt, ...rest }: SampleRequest) {
    const ordinals = { sampling_session_seq_id: this.#samplers++, seq_id: 0 };
    const { sampling_session_id } = await this.call('save_weights_for_sampler', { model_id, ...ordinals }, sampler);
    const body = { sampling_session_id, seq_id: 0, prompt: modelInput(prompt), prompt_logprobs: true, ...rest };
    return this.call('asample', body, samples);
  }
}

async function request(url: string, path: string, body?: unknown): Promise<Answer> {
  const init =
    body === undefined
      ? {}
      : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(`${url}/api/v1/${path}`, init);
  const text = await response.text();
  try {
    return { status: response.status, body: JSON.parse(text) };
  } catch {
    return { status: response.status, body: text };
  }
}

const packed = (dtype: 'int64' | 'float32', data: readonly number[]) => ({ data, dtype, shape: [data.length] });

export type Datum = ReturnType<typeof datum>;

/** The next token at every position of `tokens`. The other `inputs` have one number per target. */
export function datum(tokens: readonly number[], inputs: Readonly<Record<string, readonly number[]>> = {}) {
  return {
    model_input: modelInput(tokens.slice(0, -1)),
    loss_fn_inputs: {
      target_tokens: packed('int64', tokens.slice(1)),
      ...Object.fromEntries(Object.entries(inputs).map(([name, data]) => [name, packed('float32', data)])),
    },
  };
}

export const modelInput = (tokens: readonly number[]) => ({ chunks: [{ type: 'encoded_text', tokens }] });
