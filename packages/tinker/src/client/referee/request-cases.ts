/** Cases of the referee about models, repeated requests, results that are fetched later, and wrong requests. */
import { z } from 'zod';
import { LONG, SHORT } from '../probe/probed-model.js';
import type { RemoteModel } from '../remote-model.js';
import type { ServerProfile } from '../server-profile.js';
import { doneAnswer, modelAnswer, passAnswer, stepAnswer } from '../wire/answers.js';
import { datumOf } from '../wire/datum.js';
import type { Submitted } from '../wire/tinker-client.js';
import { PROMPT, sampled } from './keeping-cases.js';
import {
  ADAM,
  crossEntropy,
  define,
  differenceOf,
  lossOn,
  RANK,
  type RefereeBench,
  type RefereeCase,
} from './referee-bench.js';

const repeats = (profile: ServerProfile) => (profile.seqIdIdempotent ? undefined : 'requests do not repeat safely');
const reorders = differenceOf('requests sent at once run in another order', 'skyrl-jax');
const silent = differenceOf('wrong lengths are padded, missing inputs are 0', 'skyrl-jax', 'open-rl', 'twinkle');

const create = (bench: RefereeBench, session_id: string, changes: object, lora: object = {}) => {
  const lora_config = { rank: RANK, seed: 1, train_attn: true, train_mlp: true, train_unembed: false, ...lora };
  const numbered = { session_id, model_seq_id: bench.client.nextModel(), base_model: bench.baseModel };
  return bench.finish('create_model', { ...numbered, lora_config, ...changes }, modelAnswer);
};

const service: readonly RefereeCase[] = [
  define('service', 'core')('models-listed', 'The server lists the model that it trains.', async (bench) => {
    const { names } = await bench.client.baseModels();
    bench.holds(`${names.length} models, with ${bench.baseModel}`, names.includes(bench.baseModel));
  }),
  define('service', 'core')('two-models', 'Training one model leaves another alone.', async (bench) => {
    const [one, other] = [await bench.model(), await bench.model()];
    const before = await bench.score(other, LONG);
    await bench.train(one, LONG, 2);
    bench.changed('the trained model changed', await bench.score(one, LONG), before);
    bench.same('of the other', await bench.score(other, LONG), before);
  }),
  define('service')('model-info', '`get_info` names the base model, and the rank if it has it.', async (bench) => {
    const { model } = await bench.model();
    const schema = z.looseObject({
      model_data: z.looseObject({ model_name: z.string() }),
      lora_rank: z.int().nullish(),
    });
    const info = await bench.client.ask('get_info', { model_id: model.id, type: 'get_info' }, schema);
    bench.holds(`the model ${info.model_data.model_name}`, info.model_data.model_name !== '');
    bench.near('rank', info.lora_rank ?? RANK, RANK, 0);
  }),
  define('service')(
    'unloaded-models-are-gone',
    'A model that was unloaded takes no more requests.',
    async (bench) => {
      const { model } = await bench.model();
      await bench.finish('unload_model', { model_id: model.id }, doneAnswer);
      await bench.refuses('an update', () => stepOf(model));
    },
    differenceOf('no unloading', 'open-rl'),
  ),
];

const stepOf = (model: RemoteModel, adam: object = {}) =>
  model.finish('optim_step', { adam_params: { learning_rate: 0, ...adam } }, stepAnswer);

const numbered = (model: RemoteModel, seq_id: number, tokens: Int32Array) => ({
  model_id: model.id,
  seq_id,
  type: 'forward_backward',
  forward_backward_input: crossEntropy(tokens),
});

/** Sends two updates without waiting, then asks for log-probs: after the updates have ended, or behind them at once. */
async function inOrder(bench: RefereeBench, waits: boolean): Promise<void> {
  const [oneByOne, atOnce] = [await bench.model(), await bench.model()];
  await bench.train(oneByOne, LONG, 2);
  const pending: Submitted[] = [];
  for (let i = 0; i < 2; i++) {
    const pass = { forward_backward_input: crossEntropy(LONG) };
    pending.push(await atOnce.model.submit('forward_backward', pass));
    pending.push(await atOnce.model.submit('optim_step', { adam_params: ADAM }));
  }
  const ended = async () => {
    for (const each of pending) await each.result(doneAnswer);
  };
  if (waits) await ended();
  const row = await bench.score(atOnce, LONG);
  if (!waits) await ended();
  bench.same('from updates one by one', row, await bench.score(oneByOne, LONG));
}

const requests: readonly RefereeCase[] = [
  define('requests')(
    'repeated-number',
    'A training request that is sent again with its number runs once.',
    async (bench) => {
      const probed = await bench.model();
      const once = await probed.measure([crossEntropy(LONG)]);
      const body = numbered(probed.model, probed.model.takeNumber(), LONG);
      const [first, again] = [
        await bench.client.submit('forward_backward', body),
        await bench.client.submit('forward_backward', body),
      ];
      await Promise.all([first.result(passAnswer), again.result(passAnswer)]);
      const { norm } = await probed.measure([]);
      if (norm !== undefined && once.norm !== undefined) bench.nearly('norm', norm / once.norm, 1);
      bench.holds('one result for both', first.id === again.id);
    },
    repeats,
  ),
  define('requests')(
    'reused-number',
    'Another request under a number that was used is refused.',
    async (bench) => {
      const { model } = await bench.model();
      const number = model.takeNumber();
      const send = (tokens: Int32Array) =>
        bench.finish('forward_backward', numbered(model, number, tokens), passAnswer);
      await send(LONG);
      await bench.refuses('the used number', () => send(SHORT));
    },
    repeats,
  ),
  define('requests', 'core')(
    'updates-in-order',
    'Updates sent at once are those sent one by one.',
    (bench) => inOrder(bench, true),
    reorders,
  ),
  define('requests')(
    'forward-in-order',
    'A pass without a gradient that is sent behind updates sees their weights.',
    (bench) => inOrder(bench, false),
    reorders,
  ),
  define('requests', 'core')('result-twice', 'A result can be fetched a second time.', async (bench) => {
    const { model } = await bench.model();
    const body = { forward_backward_input: crossEntropy(LONG) };
    const submitted = await model.submit('forward_backward', body);
    const [first, again] = [await submitted.result(passAnswer), await submitted.result(passAnswer)];
    bench.holds('the same result', JSON.stringify(first) === JSON.stringify(again));
  }),
  define('requests', 'core')(
    'abandoned-poll',
    'A client that gives up waiting finds the result later, and the work is done once.',
    async (bench) => {
      const probed = await bench.model();
      const once = await probed.measure([crossEntropy(LONG)]);
      const body = { forward_backward_input: crossEntropy(LONG) };
      const submitted = await probed.model.submit('forward_backward', body);
      const leaving = AbortSignal.timeout(1);
      await bench.raw('retrieve_future', JSON.stringify({ request_id: submitted.id }), leaving).catch(() => undefined);
      const { loss_fn_outputs } = await submitted.result(passAnswer);
      bench.holds('the result', loss_fn_outputs.length === 1);
      const { norm } = await probed.measure([]);
      if (norm !== undefined && once.norm !== undefined) bench.nearly('norm', norm / once.norm, 1);
    },
  ),
  define('requests', 'core')('unknown-result', 'A result that nobody asked for is an error.', async (bench) => {
    const ask = () => bench.client.result('987654321', 'an unknown request', doneAnswer);
    await bench.refuses('an unknown request', ask);
  }),
];

/** A wrong batch: refused, and the model is as before. */
const wrongBatch =
  (input: () => object): RefereeCase['run'] =>
  async (bench) => {
    const probed = await bench.model();
    const before = await bench.score(probed, LONG);
    const send = () => probed.model.finish('forward_backward', { forward_backward_input: input() }, passAnswer);
    await bench.refuses('the batch', send);
    await bench.update(probed, [crossEntropy(LONG, 0)], { beta1: 0, beta2: 0 });
    bench.same('after the error', await bench.score(probed, LONG), before);
  };

const changed =
  (inputs: (data: ReturnType<typeof datumOf>) => object, loss_fn = 'cross_entropy') =>
  () => ({
    data: [inputs(datumOf(LONG, {}))],
    loss_fn,
  });
const tensor = (data: readonly number[]) => ({ data, dtype: 'int64', shape: [data.length] });

const errors: readonly RefereeCase[] = [
  define('errors', 'core')('unknown-model', 'A model that does not exist is an error.', (bench) =>
    bench.refuses('an update of it', () =>
      bench.finish('optim_step', { model_id: 'drmas-no-such-model', adam_params: { learning_rate: 0 } }, stepAnswer),
    ),
  ),
  define('errors')(
    'unknown-base-model',
    'A base model that the server does not have is an error.',
    async (bench) => {
      const session = await bench.client.session();
      await bench.refuses('it', () => create(bench, session, { base_model: 'drmas/no-such-model' }));
    },
    differenceOf("the server's own model instead", 'skyrl-jax', 'skyrl-train'),
  ),
  define('errors')('rank-too-large', 'A rank of a million is refused.', async (bench) => {
    const session = await bench.client.session();
    await bench.refuses('it', () => create(bench, session, {}, { rank: 1_000_000 }));
  }),
  define('errors', 'core')(
    'unknown-loss',
    'A loss that the server does not have is an error.',
    wrongBatch(changed((datum) => datum, 'no_such_loss')),
  ),
  define('errors')(
    'empty-batch',
    'A batch without sequences is refused at once.',
    wrongBatch(() => ({ data: [], loss_fn: 'cross_entropy' })),
    (profile) =>
      differenceOf('no answer', 'skyrl-jax')(profile) ??
      differenceOf('accepted', 'open-rl', 'hosted', 'twinkle')(profile),
  ),
  define('errors')(
    'targets-too-short',
    'Fewer targets than inputs are refused.',
    wrongBatch(changed((datum) => ({ ...datum, loss_fn_inputs: { target_tokens: tensor([2, 3, 4]) } }))),
    silent,
  ),
  define('errors')(
    'targets-missing',
    'A batch without targets is refused.',
    wrongBatch(changed((datum) => ({ ...datum, loss_fn_inputs: {} }))),
    differenceOf('an internal error', 'skyrl-jax'),
  ),
  define('errors')(
    'advantages-missing',
    'Importance sampling without advantages is refused.',
    wrongBatch(() => lossOn(LONG, 'importance_sampling', { logprobs: new Float32Array(LONG.length) })),
    silent,
  ),
  define('errors')('negative-learning-rate', 'A negative learning rate is refused.', async (bench) => {
    const { model } = await bench.model();
    await bench.refuses('it', () => stepOf(model, { learning_rate: -1 }));
  }),
  define('errors')(
    'negative-temperature',
    'A negative temperature is refused.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      await bench.refuses('it', () => probed.draw(session, PROMPT, { temperature: -1 }));
    },
    differenceOf('accepted', 'skyrl-jax'),
  ),
  define('errors')('unknown-sampler', 'A sampling session that does not exist is an error.', async (bench) => {
    const probed = await bench.model();
    await bench.refuses('it', () => probed.draw('drmas-no-such-session', PROMPT));
  }),
  define('errors')('broken-body', 'A body that is no JSON gets a status from 400 to 499.', async (bench) => {
    const status = await bench.raw('create_session', '{"tags": [');
    bench.holds(`status ${status}`, status >= 400 && status < 500);
  }),
  {
    ...define('errors')(
      'token-outside-vocabulary',
      'A token outside the vocabulary is refused, and the model is as before.',
      wrongBatch(() => lossOn(Int32Array.of(1, 2, 3, 2 ** 30, 4), 'cross_entropy', {})),
      differenceOf('not-a-number reaches the weights', 'skyrl-jax', 'twinkle'),
    ),
    hostile: true,
  },
];

export const requestCases: readonly RefereeCase[] = [...service, ...requests, ...errors];
