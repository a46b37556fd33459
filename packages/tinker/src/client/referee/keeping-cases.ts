/** Cases of the referee about saved weights, and about snapshots that are sampled. */
import { LONG, type ProbedModel, SHORT } from '../probe/probed-model.js';
import type { ServerProfile } from '../server-profile.js';
import { doneAnswer, samplingSessionAnswer, savedAnswer } from '../wire/answers.js';
import { isKind } from '../wire/tinker-failure.js';
import { define, differenceOf, NotOffered, type RefereeBench, type RefereeCase } from './referee-bench.js';

const isolation = (profile: ServerProfile) => (profile.snapshotIsolation ? undefined : 'snapshots not isolated');

/** A model, trained and saved, then trained on; the log-probs at both times; and a copy made from the saved weights. */
async function branched(bench: RefereeBench, optimizer: boolean) {
  const probed = await bench.model();
  await bench.train(probed, LONG, 3);
  const saved = await probed.model.save();
  const atSave = await bench.score(probed, LONG);
  await bench.train(probed, SHORT, 1);
  const copy = await bench.model(2);
  await copy.model.replace(saved, { optimizer });
  const loaded = await bench.score(copy, LONG);
  await bench.train(copy, SHORT, 1);
  const further = { original: await bench.score(probed, LONG), copy: await bench.score(copy, LONG) };
  return { probed, saved, atSave, loaded, further };
}

const onlyNew = differenceOf('weights are loaded only into new models', 'hosted', 'skyrl-jax', 'skyrl-train');

const weights: readonly RefereeCase[] = [
  define('weights', 'core')('load-what-was-saved', 'Loaded weights give the log-probs of saving.', async (bench) => {
    const { atSave, loaded } = await branched(bench, false);
    bench.same('after loading', loaded, atSave);
  }),
  define('weights', 'core')('optimizer-state', "The optimiser's state is saved and loaded.", async (bench) => {
    const { further } = await branched(bench, true);
    bench.same('one update later', further.copy, further.original);
  }),
  define('weights')(
    'optimizer-afresh',
    'Without `optimizer` the optimiser begins afresh.',
    async (bench) => {
      const { further } = await branched(bench, false);
      bench.changed('one update later it differs', further.copy, further.original);
    },
    differenceOf("the optimiser's state is always loaded", 'skyrl-jax'),
  ),
  define('weights')(
    'load-into-trained',
    'Weights can be loaded into a model that was trained.',
    async (bench) => {
      const { probed, saved, atSave } = await branched(bench, false);
      await probed.model.finish('load_weights', { path: saved.path, optimizer: false }, doneAnswer);
      bench.same('after loading', await bench.score(probed, LONG), atSave);
    },
    onlyNew,
  ),
  define('weights', 'core')('unknown-weights', 'Weights that were never saved cannot be loaded.', async (bench) => {
    const { model } = await bench.model();
    const path = `tinker://${model.id}/weights/none`;
    await bench.refuses('unknown weights', () => model.finish('load_weights', { path }, doneAnswer));
  }),
  define('weights')('names-are-used-once', 'A second saving under a name is refused.', async (bench) => {
    const { model } = await bench.model();
    const save = () => model.finish('save_weights', { path: 'twice' }, savedAnswer);
    await save();
    await bench.refuses('the same name', save);
  }),
  define('weights')('names-are-checked', 'A name with a slash is refused.', async (bench) => {
    const { model } = await bench.model();
    const save = () => model.finish('save_weights', { path: 'referee/name' }, savedAnswer);
    await bench.refuses('the name referee/name', save);
  }),
];

export const sampled = async (bench: RefereeBench): Promise<{ probed: ProbedModel; session: string }> => {
  const probed = await bench.model();
  await bench.train(probed, LONG, 1);
  return { probed, session: await probed.snapshot() };
};
export const PROMPT = [...SHORT];

const logprobsAt =
  (temperature: number): RefereeCase['run'] =>
  async (bench) => {
    const { probed, session } = await sampled(bench);
    const { tokens, logprobs } = await probed.sample(session, PROMPT, temperature);
    const scored = await bench.score(probed, Int32Array.from([...PROMPT, ...tokens]));
    bench.same('from a forward pass', logprobs, scored.slice(PROMPT.length));
  };

const sampling: readonly RefereeCase[] = [
  define('sampling', 'core')('sampled-log-probs', 'At temperature 1 they equal a forward pass.', logprobsAt(1)),
  define('sampling')(
    'sampled-log-probs-tempered',
    'At temperature 0.5 too: log-probs are those of temperature 1.',
    logprobsAt(0.5),
    ({ loggedTemperature }) => (loggedTemperature === 'one' ? undefined : 'log-probs at the temperature of sampling'),
  ),
  define('sampling')(
    'seeds-repeat-samples',
    'One seed gives the same tokens again, another one gives others.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      const [one, again, other] = [7, 7, 8].map((seed) => probed.sample(session, PROMPT, 1, { seed }));
      const tokens = String((await one)?.tokens);
      bench.holds('the same tokens again', String((await again)?.tokens) === tokens);
      bench.holds('other tokens with another seed', String((await other)?.tokens) !== tokens);
    },
    differenceOf('seeds ignored', 'open-rl'),
  ),
  define('sampling')('greedy', 'Temperature 0 gives the same tokens with each seed.', async (bench) => {
    const { probed, session } = await sampled(bench);
    const [one, other] = [1, 2].map((seed) => probed.sample(session, PROMPT, 0, { seed }));
    bench.holds('the same tokens', String((await one)?.tokens) === String((await other)?.tokens));
  }),
  define('sampling')('several-samples', '`num_samples` gives as many, which differ.', async (bench) => {
    const { probed, session } = await sampled(bench);
    const { sequences } = await probed.draw(session, PROMPT, { num_samples: 3 });
    bench.holds(`${sequences.length} samples of 3`, sequences.length === 3);
    bench.holds('several texts', new Set(sequences.map(({ tokens }) => String(tokens))).size > 1);
  }),
  define('sampling', 'core')('max-tokens', 'A sample ends after `max_tokens`.', async (bench) => {
    const { probed, session } = await sampled(bench);
    const { tokens } = await probed.sample(session, PROMPT, 1, { max_tokens: 3 });
    bench.holds(`${tokens.length} tokens of at most 3`, tokens.length >= 1 && tokens.length <= 3);
  }),
  define('sampling')(
    'stop-tokens',
    'A sample ends with a stop token, and says so.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      const greedy = { temperature: 0 };
      const tokens = (await probed.draw(session, PROMPT, greedy)).sequences[0]?.tokens ?? [];
      const stop = Number(tokens[Math.min(2, tokens.length - 1)]);
      const [ended] = (await probed.draw(session, PROMPT, { ...greedy, stop: [stop] })).sequences;
      const expected = tokens.slice(0, tokens.indexOf(stop) + 1);
      bench.holds('the tokens up to the stop token', String(ended?.tokens) === String(expected));
      bench.holds('the reason stop', ended?.stop_reason === 'stop');
    },
    differenceOf('stop tokens ignored', 'open-rl'),
  ),
  define('sampling')(
    'prompt-log-probs',
    'A prompt of N tokens has N log-probs, the first of them null.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      const { promptLogprobs } = await probed.sample(session, PROMPT, 1);
      if (!promptLogprobs?.length) throw new NotOffered('no log-probs of a prompt');
      const scored = await bench.score(probed, SHORT);
      bench.same('from a forward pass', promptLogprobs.slice(-(PROMPT.length - 1)), scored.slice(1));
      bench.near('entries', promptLogprobs.length, PROMPT.length, 0);
    },
    ({ promptLogprobs: has }) => (has === 'all' ? undefined : has === 'none' ? 'none' : 'N - 1, without the first'),
  ),
  define('sampling')(
    'snapshots-stay',
    'A snapshot keeps its weights while training goes on.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      const before = await bench.score(probed, SHORT);
      await bench.train(probed, LONG, 3);
      bench.changed('training changed log-probs', await bench.score(probed, SHORT), before);
      await probed.snapshot();
      const { promptLogprobs } = await probed.sample(session, PROMPT, 1);
      if (!promptLogprobs?.length) throw new NotOffered('no log-probs of a prompt');
      bench.same('of the snapshot', promptLogprobs.slice(-(PROMPT.length - 1)), before.slice(1));
    },
    isolation,
  ),
  define('sampling', 'core')(
    'sampling-leaves-training',
    'Sampling an old snapshot changes no weights in training.',
    async (bench) => {
      const { probed, session } = await sampled(bench);
      await bench.train(probed, LONG, 3);
      const before = await bench.score(probed, LONG);
      await probed.snapshot(); // some servers keep the newest snapshot in the model's own place
      await probed.sample(session, PROMPT, 1);
      bench.same('after sampling', await bench.score(probed, LONG), before);
    },
    isolation,
  ),
  define('sampling')(
    'snapshot-without-a-name',
    'A snapshot without a name is a sampling session at once.',
    async (bench) => {
      const { model } = await bench.model();
      const body = { sampling_session_seq_id: bench.client.nextSampler() };
      const { sampling_session_id: id } = await model.finish('save_weights_for_sampler', body, savedAnswer);
      if (typeof id !== 'string') throw new NotOffered('a path, on which a session must be opened');
      bench.holds('a session', id !== '');
    },
    differenceOf('a session must be opened on its path', 'hosted', 'twinkle'),
  ),
  define('sampling')('base-model', 'The base model can be sampled without an adapter.', async (bench) => {
    const probed = await bench.model();
    const body = { session_id: await bench.client.session(), sampling_session_seq_id: bench.client.nextSampler() };
    const opened = { ...body, base_model: bench.baseModel, type: 'create_sampling_session' };
    const { sampling_session_id } = await bench.client.ask('create_sampling_session', opened, samplingSessionAnswer);
    const { tokens, logprobs } = await probed.sample(sampling_session_id, PROMPT, 1);
    const scored = await bench.score(probed, Int32Array.from([...PROMPT, ...tokens]));
    bench.same('from a new adapter', logprobs, scored.slice(PROMPT.length));
  }),
  define('sampling')('samples-together', 'Concurrent samples are those that come alone.', async (bench) => {
    const { probed, session } = await sampled(bench);
    const draw = (seed: number) => probed.sample(session, PROMPT, 1, { seed });
    const alone = [await draw(3), await draw(4), await draw(5)].map(({ tokens }) => String(tokens));
    const together = (await Promise.all([3, 4, 5].map(draw))).map(({ tokens }) => String(tokens));
    bench.holds('the same tokens', String(alone) === String(together));
  }),
];

/** @throws Differs unless samples that are drawn at once have the log-probs of their models' present weights */
async function sampledFrom(bench: RefereeBench, what: string, ...drawn: readonly (readonly [ProbedModel, string])[]) {
  const samples = await Promise.all(
    drawn.map(([probed, session], seed) => probed.sample(session, PROMPT, 1, { seed })),
  );
  let got: number[] = [];
  let expected: number[] = [];
  for (const [i, { tokens, logprobs }] of samples.entries()) {
    const [probed] = drawn[i] as (typeof drawn)[number];
    const scored = await bench.score(probed, Int32Array.from([...PROMPT, ...tokens]));
    got = [...got, ...logprobs];
    expected = [...expected, ...scored.slice(PROMPT.length)];
  }
  bench.same(what, got, expected);
}

async function trainedOn(bench: RefereeBench): Promise<ProbedModel> {
  const { probed, session } = await sampled(bench);
  await sampledFrom(bench, 'of the earlier snapshot', [probed, session]);
  await bench.train(probed, LONG, 3);
  return probed;
}

const LATER = 9;
const AT_ONCE = 16;

/** Faults of samplers that hold several adapters. Training then learns from the log-probs of other weights. */
const adapters: readonly RefereeCase[] = [
  define('sampling', 'core')(
    'newer-snapshot',
    'A newer snapshot answers the same prompt with its own weights, not from a cache.',
    async (bench) => {
      const probed = await trainedOn(bench);
      await sampledFrom(bench, 'of the newer snapshot', [probed, await probed.snapshot()]);
    },
    isolation,
  ),
  define('sampling')(
    'snapshot-name-again',
    'A snapshot under a used name is refused, or has the newer weights.',
    async (bench) => {
      const { probed } = await sampled(bench);
      const session = () => probed.snapshot('again');
      await sampledFrom(bench, 'of the first snapshot', [probed, await session()]);
      await bench.train(probed, LONG, 3);
      try {
        await sampledFrom(bench, 'of the second snapshot', [probed, await session()]);
      } catch (error) {
        if (!isKind(error, 'refused', 'lost', 'failed')) throw error;
        bench.holds(`refused: ${error.message}`, true);
      }
    },
    isolation,
  ),
  define('sampling')(
    'newer-snapshot-everywhere',
    `A newer snapshot gives all of ${AT_ONCE} samples at once; no replica is behind.`,
    async (bench) => {
      const probed = await trainedOn(bench);
      const session = await probed.snapshot();
      await sampledFrom(
        bench,
        'of the newer snapshot',
        ...Array.from({ length: AT_ONCE }, () => [probed, session] as const),
      );
    },
    isolation,
  ),
  define('sampling', 'core')(
    'two-adapters-at-once',
    'Samples of two adapters that are drawn at once have the weights of their own.',
    async (bench) => {
      const [one, other] = [await bench.model(), await bench.model(2)];
      await bench.train(one, LONG, 3);
      await bench.train(other, SHORT, 3);
      const both = [[one, await one.snapshot()] as const, [other, await other.snapshot()] as const];
      await sampledFrom(bench, 'of its own adapter', ...both, ...both, ...both, ...both);
    },
  ),
  define('sampling')(
    'snapshot-after-others',
    `A snapshot has its weights after ${LATER} later ones of another adapter were sampled, which may evict it.`,
    async (bench) => {
      const { probed, session } = await sampled(bench);
      await sampledFrom(bench, 'at first', [probed, session]);
      const other = await bench.model(2);
      for (let i = 0; i < LATER; i++) {
        await bench.train(other, LONG, 1);
        await other.sample(await other.snapshot(), PROMPT, 1);
      }
      await sampledFrom(bench, 'after the others', [probed, session]);
    },
    isolation,
  ),
];

export const keepingCases: readonly RefereeCase[] = [...weights, ...sampling, ...adapters];
