/**
 * SGLang's server: token ids in and out of `/generate`, whole models through `/update_weights_from_disk` under a
 * version that every answer names, adapters through `/load_lora_adapter` (docs.sglang.io, "SGLang for RL" and "LoRA
 * serving"; fields as of SGLang 0.5).
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

/** `model_path` is the path of the weights last pushed. The tokenizer's path stays. */
const modelAnswer = z.object({ model_path: z.string(), tokenizer_path: z.string().nullish() });
const doneAnswer = z.object({
  success: z.boolean(),
  message: z.string().nullish(),
  error_message: z.string().nullish(),
});
/** [log-prob, token id, text or null] for each token. */
const tokenLogprob = z.tuple([z.unknown(), z.unknown()]).rest(z.unknown());
const version = z.union([z.string(), z.number()]);
const generated = z.object({
  meta_info: z.object({
    finish_reason: z.object({ type: z.string() }),
    output_token_logprobs: z.array(tokenLogprob),
    weight_version: version.nullish(),
    /** One entry for each part of a response, if an update came in between. */
    weight_versions: z.array(z.object({ version })).nullish(),
  }),
});

const ALREADY = /already (loaded|exists)/i;
/** The server's reply for an unknown adapter: the server was restarted. */
const NOT_LOADED = /not loaded|not registered|has been unloaded/i;

export class SglangEngine implements SamplingEngine {
  readonly kinds = ['adapter', 'whole'] as const;
  readonly source: EngineSource;
  readonly #http: EngineHttp;

  constructor(http: EngineHttp) {
    this.#http = http;
    this.source = {
      server: `SGLang at ${http.root}`,
      tokenField: (t) => `meta_info.output_token_logprobs[${t}][1]`,
      logprobField: (t) => `meta_info.output_token_logprobs[${t}][0]`,
    };
  }

  async served(): Promise<readonly string[]> {
    const { model_path: model, tokenizer_path: tokenizer } = await this.#http.read('/model_info', modelAnswer);
    return tokenizer ? [model, tokenizer] : [model];
  }

  async load({ name, directory, kind }: PushedWeights): Promise<void> {
    const [path, body] =
      kind === 'adapter'
        ? ['/load_lora_adapter', { lora_name: name, lora_path: directory }]
        : ['/update_weights_from_disk', { model_path: directory, weight_version: name, flush_cache: true }];
    const answer = await this.#http.ask(path, body);
    const done = doneAnswer.safeParse(answer.body).data;
    if (done?.success === true || ALREADY.test(errorText(answer.body))) return;
    const reason = done?.error_message ?? done?.message ?? errorText(answer.body);
    throw new BackendError(`${path}: SGLang took no weights from ${directory} (${answer.status}: ${reason})`);
  }

  async unload({ name, kind }: PushedWeights, signal?: AbortSignal): Promise<void> {
    if (kind === 'adapter') await this.#http.ask('/unload_lora_adapter', { lora_name: name }, signal);
  }

  async generate(request: EngineRequest, { name, kind }: PushedWeights, signal: AbortSignal): Promise<EngineAnswer> {
    const { prompt, stopTokens, temperature, topP, topK, maxTokens, seed } = request;
    const body = {
      input_ids: prompt,
      sampling_params: {
        temperature,
        top_p: topP,
        top_k: topK === 0 ? -1 : topK,
        min_p: 0,
        max_new_tokens: maxTokens,
        // Not `ignore_eos`, which switches these off too.
        stop_token_ids: stopTokens,
        skip_special_tokens: false,
        sampling_seed: seed,
      },
      return_logprob: true,
      ...(kind === 'adapter' && { lora_path: name }),
    };
    const path = '/generate';
    const answer = await this.#http.ask(path, body, signal);
    if (answer.status >= 400 && kind === 'adapter' && NOT_LOADED.test(errorText(answer.body)))
      throw new StaleWeights(`SGLang has no adapter '${name}': ${errorText(answer.body)}`);
    const { meta_info: meta } = this.#http.parse(path, generated, answer);
    const versions = meta.weight_versions?.map((each) => each.version) ?? [meta.weight_version];
    const others = versions.filter((each) => String(each) !== name);
    if (kind === 'whole' && others.length > 0)
      throw new StaleWeights(`SGLang answered with the weights '${others[0]}', not with '${name}'`);
    const { type } = meta.finish_reason;
    if (type !== 'stop' && type !== 'length') throw new BackendError(`${path}: SGLang ended a response by '${type}'`);
    return {
      tokens: meta.output_token_logprobs.map(([, token]) => token),
      logprobs: meta.output_token_logprobs.map(([logprob]) => logprob),
      finishReason: type,
    };
  }
}
