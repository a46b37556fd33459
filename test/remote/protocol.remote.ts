/** The behaviour of SkyRL 0.3.0 on the wire. The client and the protocol fake rely on these facts. */
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, datum, modelInput, Wire } from './wire.js';

const remote = inject('remote');
const tokens = [257, 12, 200, 7, 99, 31, 64, 5, 150, 258]; // [10], nine targets
const ones = new Array<number>(9).fill(1);
const on = (...positions: readonly number[]) => ones.map((_, i) => Number(positions.includes(i)));
const close = (a: number, b: number, tolerance: number) => expect(Math.abs(a - b)).toBeLessThan(tolerance);
const detail = ({ status, body }: Answer) => ({ status, detail: (body as { detail?: unknown }).detail });

describe.skipIf('unavailable' in remote)('the wire of SkyRL 0.3.0', () => {
  let wire: Wire;
  let model: string;
  beforeAll(async () => {
    if ('unavailable' in remote) return;
    wire = await Wire.open(remote.url);
    model = await wire.createModel({ rank: 4, seed: 1 });
  });

  describe('shapes', () => {
    it('of a model', async () => {
      const body = {
        session_id: wire.session,
        model_seq_id: 1,
        base_model: await baseModel(),
        lora_config: { rank: 4 },
      };
      const promise = await wire.post('create_model', body);
      expect(promise).toEqual({
        status: 200,
        body: {
          model_id: expect.stringMatching(/^model_/),
          base_model: body.base_model,
          lora_config: expect.objectContaining({ rank: 4 }),
          status: 'created',
          request_id: expect.stringMatching(/^\d+$/),
        },
      });
      const created = await wire.finish(promise);
      const { model_id } = promise.body as { model_id: string };
      expect(created.body).toEqual({
        model_id,
        base_model: body.base_model,
        lora_config: expect.objectContaining({
          rank: 4,
          alpha: 32,
          train_attn: true,
          train_mlp: true,
          train_unembed: false,
        }),
      });
      await wire.finish(await wire.post('unload_model', { model_id }));
    });

    it('of a pass, an optimiser step and saved weights', async () => {
      const input = { data: [datum(tokens, { weights: ones })], loss_fn: 'cross_entropy' };
      const promise = await wire.post('forward_backward', {
        model_id: model,
        forward_backward_input: input,
        seq_id: 1,
      });
      expect(promise.body).toEqual({
        future_id: expect.any(String),
        status: 'pending',
        request_id: expect.any(String),
      });
      const row = { data: expect.any(Array), dtype: 'float32', shape: [9] };
      expect((await wire.finish(promise)).body).toEqual({
        loss_fn_output_type: 'scalar',
        loss_fn_outputs: [{ elementwise_loss: row, logprobs: row }],
        metrics: {},
      });
      const adam_params = { learning_rate: 0, beta1: 0.9, beta2: 0.95, eps: 1e-12 };
      const stepped = await wire.finish(await wire.post('optim_step', { model_id: model, adam_params, seq_id: 2 }));
      expect(stepped.body).toEqual({
        metrics: { 'skyrl.ai/grad_norm': expect.any(Number), 'skyrl.ai/learning_rate': 0 },
      });
      const saved = await wire.finish(await wire.post('save_weights', { model_id: model, path: 'first' }));
      expect(saved.body).toEqual({ path: `tinker://${model}/weights/first`, type: 'save_weights' });
      const again = await wire.post('save_weights', { model_id: model, path: 'first' });
      expect(detail(again)).toEqual({
        status: 409,
        detail: `Checkpoint 'first' already exists for model '${model}'`,
      });
      const snapshot = await wire.finish(await wire.post('save_weights_for_sampler', { model_id: model, path: 's1' }));
      expect(snapshot.body).toEqual({
        path: `tinker://${model}/s1`, // without the segment `sampler_weights`
        type: 'save_weights_for_sampler',
        sampling_session_id: null,
      });
    });

    it('of samples: seeded, one prompt log-prob fewer than the prompt has tokens', async () => {
      const request = { prompt: tokens, num_samples: 2, sampling_params: { max_tokens: 4, seed: 7, temperature: 1 } };
      const first = await wire.sample(model, request);
      expect(first.sequences.map(({ tokens, logprobs }) => [tokens.length, logprobs.length])).toEqual([
        [4, 4],
        [4, 4],
      ]);
      expect(first.prompt_logprobs?.length).toBe(tokens.length - 1);
      expect((await wire.sample(model, request)).sequences).toEqual(first.sequences);
    });
  });

  describe('what a loss means', () => {
    /** Norm of the gradient of some passes; the weights stay as they are. */
    const norm = async (...passes: readonly Parameters<Wire['pass']>[1][]) => {
      for (const each of passes) await wire.pass(model, each);
      return wire.optimStep(model, 0);
    };
    const crossEntropy = (...weights: readonly (readonly number[])[]) => ({
      data: weights.map((each) => datum(tokens, { weights: each })),
      loss_fn: 'cross_entropy',
    });

    it('cross-entropy is divided by the sum of its weights, and by the number of data since the last step', async () => {
      const some = on(4, 5);
      const once = await norm(crossEntropy(some));
      close(await norm(crossEntropy(some.map((w) => 2 * w))), once, 1e-3 * once);
      close(await norm(crossEntropy(some, some)), once, 1e-3 * once);
      close(await norm(crossEntropy(some), crossEntropy(some)), once, 1e-3 * once);
      const apart = [await norm(crossEntropy(on(4))), await norm(crossEntropy(on(5)))];
      expect(once).toBeLessThan(Math.max(...apart));
    });

    it('a negative weight of cross-entropy explodes without an error', async () => {
      expect(await norm(crossEntropy(on(4, 5).map((w) => -w)))).toBeGreaterThan(1e6);
    });

    it('importance sampling with scaled advantages is an exact sum', async () => {
      const { loss_fn_outputs } = await wire.pass(model, crossEntropy(ones), 'forward');
      const logprobs = loss_fn_outputs[0]?.logprobs.data ?? [];
      const mean = await norm(crossEntropy(on(4, 5)));
      const scaled = (sign: number) => ({
        data: [datum(tokens, { logprobs, advantages: on(4, 5).map((a) => sign * a * ones.length) })],
        loss_fn: 'importance_sampling',
      });
      close(await norm(scaled(1)), 2 * mean, 2e-3 * mean);
      close(await norm(scaled(-1)), 2 * mean, 2e-3 * mean);
    });
  });

  it('logs log-probs at temperature 1, equal for forward, prompt and sample', async () => {
    const prompt = tokens.slice(0, 6);
    const sampling_params = { max_tokens: 6, seed: 3, temperature: 0.5 };
    const { sequences, prompt_logprobs } = await wire.sample(model, { prompt, num_samples: 1, sampling_params });
    const [sequence] = sequences;
    const whole = [...prompt, ...(sequence?.tokens ?? [])];
    const { loss_fn_outputs } = await wire.pass(model, { data: [datum(whole)], loss_fn: 'cross_entropy' }, 'forward');
    const forward = loss_fn_outputs[0]?.logprobs.data ?? [];
    const sampled = [...(prompt_logprobs ?? []), ...(sequence?.logprobs ?? [])];
    expect(sampled.length).toBe(forward.length);
    for (const [i, logprob] of forward.entries()) close(logprob, sampled[i] ?? Number.NaN, 1e-4);
  });

  it('sampling an older snapshot rolls training back', async () => {
    const model = await wire.createModel({ rank: 4, seed: 2 });
    const input = { data: [datum(tokens)], loss_fn: 'cross_entropy' };
    const loss = async () => {
      const { loss_fn_outputs } = await wire.pass(model, input, 'forward');
      return (loss_fn_outputs[0]?.elementwise_loss.data ?? []).reduce((a, b) => a + b, 0);
    };
    const train = async () => {
      await wire.pass(model, input);
      await wire.optimStep(model, 1e-2);
    };
    await train();
    await wire.finish(await wire.post('save_weights_for_sampler', { model_id: model, path: 'old' }));
    const then = await loss();
    await train();
    await train();
    expect(await loss()).toBeLessThan(then - 0.1);
    const model_path = `tinker://${model}/sampler_weights/old`;
    const opened = await wire.post('create_sampling_session', {
      session_id: wire.session,
      sampling_session_seq_id: 50,
      model_path,
    });
    const { sampling_session_id } = opened.body as { sampling_session_id: string };
    const sampling_params = { max_tokens: 1, seed: 1, temperature: 1 };
    const body = { sampling_session_id, seq_id: 0, prompt: modelInput(tokens), num_samples: 1, sampling_params };
    await wire.finish(await wire.post('asample', body));
    close(await loss(), then, 1e-3);
    await wire.finish(await wire.post('unload_model', { model_id: model }));
  });

  describe('refusals', () => {
    const whole = { data: [datum(tokens)], loss_fn: 'cross_entropy' };
    const create = async (lora_config: unknown) =>
      wire.finish(
        await wire.post('create_model', {
          session_id: wire.session,
          model_seq_id: 2,
          base_model: await baseModel(),
          lora_config,
        }),
      );

    it('at once', async () => {
      const pass = (model_id: string, forward_backward_input: unknown) =>
        wire.post('forward_backward', { model_id, forward_backward_input });
      expect(detail(await pass('model_none', whole))).toEqual({ status: 404, detail: 'Model not found' });
      expect(detail(await wire.post('retrieve_future', { request_id: '999999' }))).toEqual({
        status: 404,
        detail: 'Future not found',
      });
      expect(await wire.post('retrieve_future', { request_id: 'x' })).toEqual({
        status: 500,
        body: 'Internal Server Error',
      });
      const unknown = await pass(model, { ...whole, loss_fn: 'no_such_loss' });
      expect(unknown.status).toBe(422);
      expect(detail(unknown).detail).toEqual([
        expect.objectContaining({ loc: expect.any(Array), msg: expect.any(String) }),
      ]);
      expect((await wire.post('optim_step', { model_id: model })).status).toBe(422);
    });

    it('when the result is asked for', async () => {
      expect(detail(await create({ rank: 64 }))).toEqual({
        status: 400,
        detail: 'LoRA rank 64 must be between 1 and 8',
      });
      const refused = await wire.finish(
        await wire.post('forward_backward', { model_id: model, forward_backward_input: { ...whole, loss_fn: 'dppo' } }),
      );
      expect(detail(refused)).toEqual({ status: 400, detail: "'dppo'" });
    });

    it('a model that was given back', async () => {
      const gone = await wire.createModel({ rank: 1, seed: 1 });
      await wire.finish(await wire.post('unload_model', { model_id: gone }));
      const answer = await wire.finish(
        await wire.post('forward_backward', { model_id: gone, forward_backward_input: whole }),
      );
      expect(detail(answer)).toEqual({ status: 400, detail: `Model ${gone} not loaded` });
    });
  });

  async function baseModel(): Promise<string> {
    const { body } = await wire.get('get_server_capabilities');
    return (body as { supported_models: [{ model_name: string }] }).supported_models[0].model_name;
  }
});
