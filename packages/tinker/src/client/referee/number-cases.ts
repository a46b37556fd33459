/** Cases of the referee about log-probs, losses and updates. Expected numbers follow from the server's log-probs. */
import { LEARNING, LONG, SHORT } from '../probe/probed-model.js';
import type { ServerProfile } from '../server-profile.js';
import { type PassInput, passAnswer } from '../wire/answers.js';
import {
  crossEntropy,
  define,
  lossOn,
  NotOffered,
  type RefereeBench,
  type RefereeCase,
  rowWith,
} from './referee-bench.js';

const OTHER = Int32Array.from([9, 4, 7, 2, 8, 3, 6]);

type Known = NonNullable<RefereeCase['known']>;

const sums: Known = ({ reduction }) => (reduction === 'sum' ? undefined : `losses reduced by ${reduction}`);
const negative: Known = (profile) => (profile.negativeWeights ? undefined : 'no negative weights of a cross-entropy');
const ownLoss =
  (name: 'ppo' | 'cispo'): Known =>
  (profile) =>
    sums(profile) ?? (profile.native.includes(name) ? undefined : `no ${name} as the protocol has it`);
const hasForward: Known = ({ forward }) => (forward ? undefined : 'no forward pass');

/** Batches between two updates, with the expected norm and loss. `row` has the server's log-probs of `LONG`. */
interface LossLaw {
  readonly batches: (row: Float32Array) => readonly PassInput[];
  /** The norm of the gradient, as a multiple of the norm that the log-prob of token `LEARNING` alone gives. */
  readonly norm?: number;
  readonly loss: (row: Float32Array) => number;
}

const ofLoss =
  ({ batches, norm, loss }: LossLaw): RefereeCase['run'] =>
  async (bench) => {
    const probed = await bench.model();
    const row = await bench.score(probed, LONG);
    const unit = await probed.measure([weighed(1)]);
    const got = await probed.measure(batches(row));
    if (unit.norm === undefined && Number.isNaN(got.loss))
      throw new NotOffered('neither the norm of the gradient nor the loss is reported');
    if (unit.norm !== undefined && got.norm !== undefined && norm !== undefined)
      bench.nearly('norm', got.norm / unit.norm, norm);
    if (!Number.isNaN(got.loss)) bench.nearly('loss', got.loss, loss(row));
    else if (norm === undefined) throw new NotOffered('the loss is not reported');
  };

const lossCase = (name: string, about: string, row: LossLaw, known: Known = sums) =>
  define('losses')(name, about, ofLoss(row), known);
const coreLossCase = (name: string, about: string, row: LossLaw) =>
  define('losses', 'core')(name, about, ofLoss(row), sums);

const at = (value: number, tokens = LONG) => rowWith(tokens, { [LEARNING]: value });
const weighed = (value: number, tokens = LONG) => lossOn(tokens, 'cross_entropy', { weights: at(value, tokens) });
const here = (row: Float32Array) => row[LEARNING] as number;

type RatioLoss = 'importance_sampling' | 'ppo' | 'cispo';
type RatioRow = { readonly shift?: number; readonly advantage?: number; readonly bounds?: readonly [number, number] };

/** A ratio of e^shift, with an advantage at the token `LEARNING`. */
const ratio = (loss: RatioLoss, row: Float32Array, { shift = 0, advantage = 1, bounds }: RatioRow) => {
  const inputs = { logprobs: row.map((logprob) => logprob - shift), advantages: at(advantage) };
  return [lossOn(LONG, loss, inputs, bounds && { clip_low_threshold: bounds[0], clip_high_threshold: bounds[1] })];
};
const RATIO = Math.exp(0.5);

const losses: readonly RefereeCase[] = [
  coreLossCase('weights-scale', 'Twice the weight of a token gives twice the loss and twice the gradient.', {
    batches: () => [weighed(2)],
    norm: 2,
    loss: (row) => -2 * here(row),
  }),
  coreLossCase('datums-add', 'The sequences of a batch add up.', {
    batches: () => [{ data: [...weighed(1).data, ...weighed(2, SHORT).data], loss_fn: 'cross_entropy' }],
    norm: 3,
    loss: (row) => -3 * here(row),
  }),
  coreLossCase('batches-add', 'Batches add up until the next update.', {
    batches: () => [weighed(1), weighed(2, SHORT)],
    norm: 3,
    loss: (row) => -3 * here(row),
  }),
  lossCase('weights-of-tokens', 'The loss is the sum of the weighted tokens; weights may be fractions.', {
    batches: () => [lossOn(LONG, 'cross_entropy', { weights: rowWith(LONG, { 2: 0.5, 3: 1, 7: 1.5 }) })],
    loss: (row) => -(0.5 * (row[2] as number) + (row[3] as number) + 1.5 * (row[7] as number)),
  }),
  lossCase('weights-zero', 'A batch of weights 0 gives the loss 0 and no gradient.', {
    batches: () => [weighed(0)],
    norm: 0,
    loss: () => 0,
  }),
  lossCase(
    'weights-negative',
    'A negative weight turns the gradient around.',
    { batches: () => [weighed(3), weighed(-1, SHORT)], norm: 2, loss: (row) => -2 * here(row) },
    negative,
  ),
  lossCase('weights-missing', 'Without weights all targets count once.', {
    batches: () => [lossOn(LONG, 'cross_entropy', {})],
    loss: (row) => -row.reduce((sum, logprob) => sum + logprob, 0),
  }),
  coreLossCase('importance-sampling', 'At ratio 1 the gradient is the advantage times that of the log-prob.', {
    batches: (row) => ratio('importance_sampling', row, { advantage: 2 }),
    norm: 2,
    loss: () => -2,
  }),
  coreLossCase('importance-sampling-ratio', 'A token whose ratio is e^0.5 counts as often.', {
    batches: (row) => ratio('importance_sampling', row, { shift: 0.5 }),
    norm: RATIO,
    loss: () => -RATIO,
  }),
  coreLossCase('importance-sampling-negative', 'A negative advantage turns the gradient around.', {
    batches: (row) => ratio('importance_sampling', row, { advantage: -1 }),
    norm: 1,
    loss: () => 1,
  }),
  lossCase(
    'ppo-inside',
    'Between its bounds, which are ratios, ppo is importance sampling.',
    { batches: (row) => ratio('ppo', row, { shift: 0.5, bounds: [0.5, 2] }), norm: RATIO, loss: () => -RATIO },
    ownLoss('ppo'),
  ),
  lossCase(
    'ppo-above',
    'Above the upper bound a positive advantage has no gradient.',
    { batches: (row) => ratio('ppo', row, { shift: 0.5, bounds: [0.8, 1.5] }), norm: 0, loss: () => -1.5 },
    ownLoss('ppo'),
  ),
  lossCase(
    'ppo-below',
    'Below the lower bound a negative advantage has no gradient.',
    {
      batches: (row) => ratio('ppo', row, { shift: -0.5, advantage: -1, bounds: [0.7, 1.2] }),
      norm: 0,
      loss: () => 0.7,
    },
    ownLoss('ppo'),
  ),
  lossCase(
    'ppo-negative-above',
    'Above the upper bound a negative advantage keeps its gradient.',
    { batches: (row) => ratio('ppo', row, { shift: 0.5, advantage: -1 }), norm: RATIO, loss: () => RATIO },
    ownLoss('ppo'),
  ),
  lossCase(
    'cispo',
    'cispo multiplies the log-prob by the clipped ratio.',
    {
      batches: (row) => ratio('cispo', row, { shift: 0.5, bounds: [0, 1.1] }),
      norm: 1.1,
      loss: (row) => -1.1 * here(row),
    },
    ownLoss('cispo'),
  ),
];

const logprobs: readonly RefereeCase[] = [
  define('log-probs', 'core')(
    'forward',
    'A pass without a gradient gives one log-prob for each target.',
    async (bench) => {
      const { model } = await bench.model();
      const { loss_fn_outputs } = await model.finish('forward', { forward_input: crossEntropy(LONG) }, passAnswer);
      const row = loss_fn_outputs[0]?.logprobs.data ?? [];
      const areLogprobs = row.every((logprob) => logprob !== null && logprob <= 1e-6 && logprob > -1e4);
      bench.holds(`${row.length} log-probs of at most 0`, row.length === LONG.length - 1 && areLogprobs);
    },
    hasForward,
  ),
  define('log-probs', 'core')(
    'forward-leaves-no-gradient',
    'A pass without a gradient changes no update.',
    async (bench) => {
      const probed = await bench.model();
      const before = await bench.score(probed, LONG);
      await probed.model.finish('forward', { forward_input: crossEntropy(LONG) }, passAnswer);
      await bench.update(probed, [weighed(0)], { learning_rate: 0.1, beta1: 0, beta2: 0 });
      bench.same('after an update', await bench.score(probed, LONG), before);
    },
    hasForward,
  ),
  define('log-probs', 'core')(
    'new-adapters-change-nothing',
    'New adapters of two seeds give the same log-probs.',
    async (bench) => {
      const [one, two] = [await bench.model(1), await bench.model(2)];
      bench.same('of two adapters', await bench.score(one, LONG), await bench.score(two, LONG));
    },
  ),
  define('log-probs')(
    'log-probs-of-the-model',
    'The log-probs equal those that drmas computes with the same files (`--reference`).',
    async (bench) => {
      if (bench.reference === undefined) throw new NotOffered('needs --reference');
      const probed = await bench.model();
      const [long, other] = await bench.reference([LONG, OTHER]);
      bench.same('of one sequence', await bench.score(probed, LONG), long as Float32Array);
      bench.same('of another', await bench.score(probed, OTHER), other as Float32Array);
    },
  ),
  define('log-probs', 'core')(
    'only-earlier-tokens',
    'The log-prob of a token depends only on the tokens before it.',
    async (bench) => {
      const probed = await bench.model();
      const beginning = (await bench.score(probed, LONG)).slice(0, SHORT.length);
      bench.same('of a beginning', await bench.score(probed, SHORT), beginning);
    },
  ),
  define('log-probs')(
    'alone-and-together',
    'A sequence has the same log-probs alone and beside others.',
    async (bench) => {
      const probed = await bench.model();
      const [, together] = await probed.score(LONG, OTHER, SHORT);
      bench.same('of a sequence', together as Float32Array, await bench.score(probed, OTHER));
    },
  ),
];

const rise = (after: Float32Array, before: Float32Array) =>
  after.reduce((sum, logprob, t) => sum + logprob - (before[t] as number), 0);

/**
 * One update with an epsilon so large that Adam moves along the gradient. To the first order the loss falls by the
 * squared norm times the step. Checks that a gradient clipped to `share` of its norm lowers it by `share` of that.
 */
const falls =
  (share: number): RefereeCase['run'] =>
  async (bench: RefereeBench) => {
    const probed = await bench.model();
    const { norm } = await probed.measure([crossEntropy(LONG)]);
    if (norm === undefined) throw new NotOffered('the norm of the gradient is not reported');
    const before = await bench.score(probed, LONG);
    const [eps, fall] = [1e6, 0.02 + 20 * bench.tolerance];
    const step = { learning_rate: (eps * fall) / norm ** 2, beta1: 0, beta2: 0, eps };
    const clip = share === 1 ? {} : { grad_clip_norm: share * norm };
    const again = await bench.update(probed, [crossEntropy(LONG)], { ...step, ...clip });
    bench.nearly('norm before clipping, repeated', (again ?? Number.NaN) / norm, 1);
    bench.near('fall / expected', rise(await bench.score(probed, LONG), before) / fall, share, 0.1 * share);
  };

const optimiser: readonly RefereeCase[] = [
  define('optimiser', 'core')(
    'learning-rate-zero',
    'An update with learning rate 0 changes no weights, and clears the gradient.',
    async (bench) => {
      const probed = await bench.model();
      const before = await bench.score(probed, LONG);
      const [first, second] = [await probed.measure([weighed(1)]), await probed.measure([weighed(1)])];
      bench.same('after updates', await bench.score(probed, LONG), before);
      if (first.norm !== undefined) bench.nearly('second norm', (second.norm ?? Number.NaN) / first.norm, 1);
    },
  ),
  define('optimiser', 'core')(
    'training-learns',
    'Three updates raise the log-probs of the sequence that they learn.',
    async (bench) => {
      const probed = await bench.model();
      const before = await bench.score(probed, LONG);
      await bench.train(probed, LONG, 3);
      const by = rise(await bench.score(probed, LONG), before);
      bench.holds(`log-prob higher by ${by.toPrecision(3)}`, by > 4 * bench.tolerance);
    },
  ),
  define('optimiser')(
    'norm-predicts-the-fall',
    'A small step along the gradient lowers the loss by the squared norm times the step.',
    falls(1),
    sums,
  ),
  define('optimiser')(
    'gradient-clipping',
    '`grad_clip_norm` shortens the gradient; the reported norm is the one before.',
    falls(0.25),
    (profile: ServerProfile) => (profile.clipsGradients ? sums(profile) : '`grad_clip_norm` ignored'),
  ),
  define('optimiser')(
    'adam-ignores-scale',
    'With a small epsilon the scale of the loss does not change an update of Adam.',
    async (bench) => {
      const [one, eight] = [await bench.model(), await bench.model()];
      for (const [probed, weight] of [
        [one, 1],
        [eight, 8],
      ] as const)
        await bench.update(probed, [crossEntropy(LONG, weight)], { eps: 1e-12 });
      const gaps = rowGaps(await bench.score(one, LONG), await bench.score(eight, LONG));
      bench.near('largest difference of log-probs', gaps, 0, 0.01 + bench.tolerance);
    },
  ),
  define('optimiser')(
    'weight-decay',
    'A decay of 1 / learning rate takes the adapter back to 0, if there is no gradient.',
    async (bench) => {
      const probed = await bench.model();
      const before = await bench.score(probed, LONG);
      await bench.train(probed, LONG, 2);
      bench.changed('trained', await bench.score(probed, LONG), before);
      await bench.update(probed, [weighed(0)], { learning_rate: 0.01, beta1: 0, beta2: 0, weight_decay: 100 });
      bench.same('from the base', await bench.score(probed, LONG), before);
    },
  ),
  define('optimiser')('seeds-repeat', 'Two adapters of one seed learn the same.', async (bench) => {
    const [one, two] = [await bench.model(5), await bench.model(5)];
    for (const probed of [one, two]) await bench.train(probed, LONG, 2);
    bench.same('of two models', await bench.score(one, LONG), await bench.score(two, LONG));
  }),
];

const rowGaps = (a: Float32Array, b: Float32Array) => Math.max(...a.map((x, t) => Math.abs(x - (b[t] as number))));

export const numberCases: readonly RefereeCase[] = [...logprobs, ...losses, ...optimiser];
