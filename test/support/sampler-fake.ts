/**
 * A server like vLLM's or SGLang's, as far as sampling asks for it, over the embedded engine. What vLLM answers was
 * recorded of 0.32.0 on a CPU; what SGLang answers follows the sources of 0.5.23.
 */

import type { ModelHandle } from '@drmas/engine/contract';
import type { EmbeddedBackend } from '@drmas/engine/embedded';
import { messageOf } from '@drmas/engine/errors';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { listen, nodeFiles } from '@drmas/engine/platform';
import { Hono } from 'hono';

export interface SamplerFakeOptions {
  readonly type: 'vllm' | 'sglang';
  /** The model that the server was started with. */
  readonly directory: string;
}

interface SamplingFields {
  readonly prompt: number[];
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly maxTokens: number;
  readonly stopTokens: number[];
  readonly seed: number;
}

export class SamplerFake {
  readonly url: string;
  /** Every request with a body, in order. */
  readonly requests: { readonly path: string; readonly body: Record<string, unknown> }[];
  /** The authorization headers of requests. */
  readonly keys = new Set<string | undefined>();
  /** Whether it plays the whole models that it is given. */
  keeps = true;
  /** Whether its next answer was begun with other weights. */
  mixed = false;
  /** By how much its log-probs are off. */
  gap = 0;
  /** Changes the JSON text of each sampled answer; undefined leaves it honest. */
  lie: ((answer: string) => string) | undefined;
  /** So many requests from now on are answered by a server that is just coming up. */
  busy = 0;
  #adapters = new Map<string, ModelHandle>();
  #whole: ModelHandle;
  #version = 'default';
  #path: string;
  readonly #options: SamplerFakeOptions;
  readonly #backend: EmbeddedBackend;
  readonly #close: () => Promise<void>;

  private constructor(
    options: SamplerFakeOptions,
    backend: EmbeddedBackend,
    whole: ModelHandle,
    { url, requests, close }: Pick<SamplerFake, 'url' | 'requests' | 'close'>,
  ) {
    this.#options = options;
    this.#backend = backend;
    this.#whole = whole;
    this.#path = options.directory;
    this.url = url;
    this.requests = requests;
    this.#close = close;
  }

  static async start(options: SamplerFakeOptions): Promise<SamplerFake> {
    const backend = await startEmbedded({ threads: 1, files: nodeFiles });
    const whole = await opened(backend, { type: 'directory', directory: options.directory });
    const app = new Hono();
    const requests: SamplerFake['requests'] = [];
    const { url, close } = await listen({ app, guard: () => undefined }, { host: '127.0.0.1', port: 0 });
    const fake = new SamplerFake(options, backend, whole, { url, requests, close });
    app.use(async (c, next) => {
      if (fake.busy > 0) {
        fake.busy--;
        return c.text('upstream connect error', 503);
      }
      fake.keys.add(c.req.header('authorization'));
      if (c.req.method === 'POST') requests.push({ path: c.req.path, body: await c.req.json() });
      await next();
      if (fake.lie === undefined || !/completions|generate/.test(c.req.path)) return undefined;
      const { status } = c.res;
      const text = fake.lie(await c.res.text());
      c.res = undefined;
      c.res = new Response(text, { status, headers: { 'content-type': 'application/json' } });
      return undefined;
    });
    if (options.type === 'vllm') fake.#vllm(app);
    else fake.#sglang(app);
    return fake;
  }

  /** Forgets all adapters and weights, as a server does after a restart. */
  async restart(): Promise<void> {
    this.#adapters = new Map();
    this.#whole = await opened(this.#backend, { type: 'directory', directory: this.#options.directory });
    this.#version = 'default';
    this.#path = this.#options.directory;
  }

  /** The adapters that it has. */
  get adapters(): string[] {
    return [...this.#adapters.keys()];
  }

  async close(): Promise<void> {
    await this.#close();
    await this.#backend.dispose();
  }

  #vllm(app: Hono): void {
    const { directory } = this.#options;
    const error = (message: string, type: string, code: number) => ({ error: { message, type, param: null, code } });
    app.get('/v1/models', (c) => {
      const card = {
        id: directory,
        object: 'model',
        owned_by: 'vllm',
        root: directory,
        parent: null,
        max_model_len: 64,
      };
      return c.json({ object: 'list', data: [card] });
    });
    app.post('/v1/load_lora_adapter', async (c) => {
      const { lora_name: name, lora_path: path } = await c.req.json();
      if (this.#adapters.has(name))
        return c.json(error(`The lora adapter '${name}' has already been loaded.`, 'InvalidUserInput', 400), 400);
      try {
        await this.#load(name, path);
      } catch (reason) {
        return c.json(error(`Loading lora ${name} failed: ${messageOf(reason)}`, 'NotFoundError', 404), 404);
      }
      return c.text(`Success: LoRA adapter '${name}' added successfully.`);
    });
    app.post('/v1/unload_lora_adapter', async (c) => {
      const { lora_name: name } = await c.req.json();
      if (!this.#adapters.delete(name))
        return c.json(error(`The lora adapter '${name}' cannot be found.`, 'NotFoundError', 404), 404);
      return c.text(`Success: LoRA adapter '${name}' removed successfully.`);
    });
    app.post('/v1/completions', async (c) => {
      const body = await c.req.json();
      const model = this.#adapters.get(body.model);
      if (model === undefined)
        return c.json(
          error(`The model \`${body.model}\` does not exist. Valid aliases: <path>`, 'NotFoundError', 404),
          404,
        );
      const { tokens, logprobs, finishReason } = await this.#sample(model, {
        prompt: body.prompt,
        temperature: body.temperature,
        topP: body.top_p,
        topK: body.top_k,
        maxTokens: body.max_tokens,
        stopTokens: body.stop_token_ids,
        seed: body.seed,
      });
      const choice = {
        index: 0,
        text: '',
        finish_reason: finishReason,
        stop_reason: null,
        token_ids: tokens,
        logprobs: { text_offset: [], token_logprobs: logprobs, tokens: [], top_logprobs: [] },
      };
      const usage = { prompt_tokens: body.prompt.length, completion_tokens: tokens.length };
      return c.json({ id: 'cmpl-1', object: 'text_completion', model: body.model, choices: [choice], usage });
    });
  }

  #sglang(app: Hono): void {
    const { directory } = this.#options;
    app.get('/model_info', (c) =>
      c.json({ model_path: this.#path, tokenizer_path: directory, is_generation: true, weight_version: this.#version }),
    );
    app.post('/load_lora_adapter', async (c) => {
      const { lora_name: name, lora_path: path } = await c.req.json();
      try {
        await this.#load(name, path);
      } catch (error) {
        return c.json({ success: false, error_message: messageOf(error), loaded_adapters: {} }, 400);
      }
      return c.json({ success: true, error_message: null, loaded_adapters: { [name]: path } });
    });
    app.post('/unload_lora_adapter', async (c) => {
      this.#adapters.delete((await c.req.json()).lora_name);
      return c.json({ success: true, error_message: null, loaded_adapters: {} });
    });
    app.post('/update_weights_from_disk', async (c) => {
      const { model_path: path, weight_version: version } = await c.req.json();
      try {
        const whole = await opened(this.#backend, { type: 'directory', directory: path });
        if (!this.keeps) return c.json({ success: true, message: 'Succeeded to update model weights.' });
        this.#whole = whole;
      } catch (error) {
        return c.json({ success: false, message: messageOf(error), num_paused_requests: 0 }, 400);
      }
      this.#version = version;
      this.#path = path;
      return c.json({ success: true, message: 'Succeeded to update model weights.', num_paused_requests: 0 });
    });
    app.post('/generate', async (c) => {
      const { input_ids: prompt, sampling_params: wish, lora_path: name } = await c.req.json();
      const model = name === undefined ? this.#whole : this.#adapters.get(name);
      if (model === undefined)
        return c.json({ error: { message: `The following requested LoRA adapters are not loaded: ${name}` } }, 400);
      const { tokens, logprobs, finishReason } = await this.#sample(model, {
        prompt,
        temperature: wish.temperature,
        topP: wish.top_p,
        topK: wish.top_k,
        maxTokens: wish.max_new_tokens,
        seed: wish.sampling_seed,
        stopTokens: wish.ignore_eos === true ? [] : wish.stop_token_ids,
      });
      const meta = {
        id: 'r1',
        finish_reason:
          finishReason === 'stop' ? { type: 'stop', matched: tokens.at(-1) } : { type: 'length', length: 1 },
        prompt_tokens: prompt.length,
        weight_version: this.#version,
        ...(this.mixed && { weight_versions: [{ version: 'default' }, { version: this.#version }] }),
        output_token_logprobs: tokens.map((token, t) => [logprobs[t], token, null]),
      };
      this.mixed = false;
      return c.json({ text: '', output_ids: tokens, meta_info: meta });
    });
  }

  async #load(name: string, directory: string): Promise<void> {
    const base = { type: 'directory', directory: this.#options.directory } as const;
    this.#adapters.set(name, await opened(this.#backend, { type: 'saved-adapter', base, directory }));
  }

  async #sample(model: ModelHandle, { seed, topK, ...wish }: SamplingFields) {
    const generation = await model.generate({ ...wish, topK: Math.max(0, topK), key: [seed, 0] });
    return { ...generation, logprobs: generation.logprobs.map((logprob) => logprob + this.gap) };
  }
}

async function opened(backend: EmbeddedBackend, weights: Parameters<EmbeddedBackend['open']>[0]): Promise<ModelHandle> {
  const model = await backend.open(weights, 'frozen', 'served');
  await model.publish();
  return model;
}
