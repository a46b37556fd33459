/**
 * vLLM's OpenAI-compatible server: token ids in and out of `/v1/completions`, adapters through `/v1/load_lora_adapter`
 * (documented at docs.vllm.ai, features/lora; fields as of vLLM 0.11 and later). Its log-probs are raw ones by default.
 */
import { z } from 'zod';
import { BackendError } from '../errors.js';
import { type EngineHttp, errorText } from './engine-http.js';
import {
  type EngineAnswer,
  type EngineRequest,
  type EngineSource,
  type PushedWeights,
  type SamplingEngine,
  StaleWeights,
} from './sampling-engine.js';

const modelsAnswer = z.object({ data: z.array(z.object({ id: z.string(), root: z.string().nullish() })) });
const completion = z.object({
  model: z.string(),
  choices: z
    .array(
      z.object({
        token_ids: z.array(z.unknown()),
        logprobs: z.object({ token_logprobs: z.array(z.unknown()) }),
        finish_reason: z.enum(['stop', 'length']),
      }),
    )
    .length(1),
});

/** The server's reply if it already has the adapter, and its status if it does not know the adapter. */
const ALREADY = /already been loaded/i;
const UNKNOWN = 404;
/** The server's reply if it cannot load adapters at run time. The reply for a missing adapter is longer. */
const NO_ROUTE = /"detail":"Not Found"/i;

export class VllmEngine implements SamplingEngine {
  readonly kinds = ['adapter'] as const;
  readonly source: EngineSource;
  readonly #http: EngineHttp;

  constructor(http: EngineHttp) {
    this.#http = http;
    this.source = {
      server: `vLLM at ${http.root}`,
      tokenField: (t) => `choices[0].token_ids[${t}]`,
      logprobField: (t) => `choices[0].logprobs.token_logprobs[${t}]`,
    };
  }

  async served(): Promise<readonly string[]> {
    const { data } = await this.#http.read('/v1/models', modelsAnswer);
    return data.flatMap(({ id, root }) => (root ? [id, root] : [id]));
  }

  async load({ name, directory }: PushedWeights): Promise<void> {
    const path = '/v1/load_lora_adapter';
    const { status, body } = await this.#http.ask(path, { lora_name: name, lora_path: directory });
    if (status === 200 || ALREADY.test(errorText(body))) return;
    const how = NO_ROUTE.test(errorText(body))
      ? '; start it with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True'
      : '';
    throw new BackendError(`${path}: vLLM took no adapter from ${directory} (${status}: ${errorText(body)})${how}`);
  }

  async unload({ name }: PushedWeights, signal?: AbortSignal): Promise<void> {
    await this.#http.ask('/v1/unload_lora_adapter', { lora_name: name }, signal);
  }

  async generate(request: EngineRequest, { name }: PushedWeights, signal: AbortSignal): Promise<EngineAnswer> {
    const { prompt, stopTokens, temperature, topP, topK, maxTokens, seed } = request;
    const body = {
      model: name,
      prompt,
      max_tokens: maxTokens,
      // All settings: the server fills in missing ones from the model's generation_config.json.
      temperature,
      top_p: topP,
      top_k: topK === 0 ? -1 : topK,
      min_p: 0,
      repetition_penalty: 1,
      seed,
      stop_token_ids: stopTokens,
      ignore_eos: true,
      logprobs: 0,
      return_token_ids: true,
      skip_special_tokens: false,
    };
    const path = '/v1/completions';
    const answer = await this.#http.ask(path, body, signal);
    if (answer.status === UNKNOWN) throw new StaleWeights(`vLLM has no adapter '${name}': ${errorText(answer.body)}`);
    const { model, choices } = this.#http.parse(path, completion, answer);
    if (model !== name) throw new StaleWeights(`vLLM answered with '${model}', not with '${name}'`);
    const [{ token_ids: tokens, logprobs, finish_reason: finishReason }] = choices as [(typeof choices)[number]];
    return { tokens, logprobs: logprobs.token_logprobs, finishReason };
  }
}
