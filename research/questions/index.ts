/** The questions, in the order in which they are worked through: each is usable alone. */
import { curveScore, highest, lastScore, PartResults } from '../harness/analysis.js';
import { candidatesOf, chooseSpread } from '../harness/blind.js';
import {
  FRESH_PAIRS,
  jobsOf,
  type OwnRates,
  PAIRS,
  type Part,
  type Primary,
  type Question,
  type Regime,
  type Variant,
} from '../harness/declaration.js';
import type { Results } from '../harness/stored-result.js';
import {
  CANDIDATES,
  DEFAULT_REGIMES,
  drawn,
  escalation,
  LEMMA_SEEDS,
  mixture,
  paperEscalation,
  paperMath,
  paperSearch,
  paperSizes,
  RATES,
  repair,
  SEEDS,
  SHARING_MODELS,
  SHORT_SWEEP_SEEDS,
  SIZES,
  SWEEP_SEEDS,
  searchModels,
  shipped,
  sized,
  stories,
  sums,
  timedRepair,
  tunedRepair,
  withSharing,
  words,
  wordsMore,
  wordsOwnRates,
} from './regimes.js';
import {
  at,
  atGrpo,
  drGrpo,
  drmas,
  drmasBatch,
  drmasEpisode,
  drmasMean,
  drmasNoSpread,
  drmasSingletonBatch,
  drmasSingletonRaw,
  drmasSingletonZero,
  drmasStd,
  ema,
  gae,
  gigpo,
  gigpoByAgent,
  grpo,
  grpoClipHigher,
  grpoEntropy,
  grpoFiltered,
  grpoKl,
  grpoRefilled,
  grpoTurn,
  having,
  magrpo,
  maxrl,
  maxrlByAgent,
  reinforce,
  reinforceBaseline,
  reinforceByAgent,
  rejection,
  rloo,
  rlooByAgent,
  shrinkage,
  supervised,
  withDefaultSingleton,
} from './variants.js';

const quarter = escalation('escalation', {}, { label: 'called in 25 %', value: 0.25 });

const part = (
  id: string,
  title: string,
  rest: Omit<Part, 'id' | 'title' | 'seeds' | 'baseline'> & Partial<Part>,
): Part => ({
  id,
  title,
  seeds: PAIRS,
  baseline: grpo.id,
  ...rest,
});

/** Dr. MAS as the package ships it, also in a recipe that sets another rule for groups of one. */
const drmasBatchSingleton = { ...drmasSingletonBatch, id: drmas.id };

const SWEPT = [3e-4, 1e-3, 2e-3, 4e-3];

const rates: Question = {
  id: 'rates',
  heading: 'The learning rate of the baseline',
  asks: 'At which learning rate does the baseline end highest?',
  parts: [
    part('sweep', 'Learning rates of both sides, on seeds 901 to 903', {
      regimes: [quarter],
      variants: SWEPT.flatMap((rate) => [at(grpo, rate), at(drmas, rate)]),
      baseline: at(grpo, 1e-3).id,
      seeds: SWEEP_SEEDS,
    }),
  ],
};

const percentLabel = (share: number) => `${Number((100 * share).toFixed(1))} %`;

const dose: Question = {
  id: 'dose',
  heading: 'The gain and the predicted inflation',
  asks: 'Does the gain follow the inflation that the probe predicts?',
  parts: [
    part('mismatch', 'Called in a quarter of the episodes; the others succeed more or less often', {
      regimes: [
        { ...quarter, dose: { label: 'others succeed in 100 %', value: 1 } },
        ...[0.125, 0.7, 0.85, 0.5, 0.3].map((common) =>
          escalation(
            `common-${Math.round(1000 * common)}`,
            { common },
            { label: `others succeed in ${percentLabel(common)}`, value: common },
          ),
        ),
      ],
      variants: [grpo, drmas],
      figure: 'dose',
      probe: true,
    }),
    part('frequency', 'Called after a failure, in more or fewer episodes', {
      regimes: [
        quarter,
        ...[0.1, 0.5, 0.15, 1].map((rare) =>
          escalation(
            `rare-${Math.round(100 * rare)}`,
            { rare },
            { label: `called in ${percentLabel(rare)}`, value: rare },
          ),
        ),
      ],
      variants: [grpo, drmas],
      probe: true,
    }),
    part('scale', "An agent whose own reward is worth more or less than the team's", {
      regimes: [0.1, 1, 0.03, 0.3, 3].map((scale) =>
        escalation(
          `scale-${Math.round(100 * scale)}`,
          { rare: 1, common: 0.5, scale },
          { label: `reward worth ${scale}`, value: scale },
        ),
      ),
      variants: [grpo, drmas, grpoTurn],
      probe: true,
    }),
    part('drift', 'The recipe `repair` at other shares of renamed commands', {
      regimes: [0.25, 0.1, 0.5].map(repair),
      variants: [grpo, drmas],
      probe: true,
    }),
  ],
};

const thrice = escalation('tries-3', { tries: 3 }, { label: 'up to three tries', value: 3 });

const identity: Question = {
  id: 'identity',
  heading: 'Mean or spread, agent or frequency',
  asks: 'Identity or frequency, mean or spread?',
  parts: [
    part('two-by-two', 'Who shares the mean and who the spread, one call an episode', {
      regimes: [quarter],
      variants: [grpo, drmas, grpoTurn, drmasMean, drmasStd, drGrpo, drmasNoSpread, drmasEpisode, drmasBatch],
    }),
    part('three-tries', 'The same where the expert may try three times', {
      regimes: [thrice],
      variants: [grpo, drmas, grpoTurn, drmasEpisode, drmasBatch, drmasMean, drmasStd],
    }),
    part('baselines', 'The strongest baselines', {
      regimes: [quarter],
      variants: [grpo, grpoFiltered, grpoClipHigher, rloo, ema, at(grpo, 2e-3), at(grpo, 3e-4), drmas, at(drmas, 2e-3)],
    }),
  ],
};

const limits: Question = {
  id: 'limits',
  heading: 'Where Dr. MAS gains little',
  asks: 'Where does Dr. MAS lose, or gain nothing?',
  parts: [
    part('group-size', 'The same episodes in groups of other sizes', {
      regimes: [4, 2, 8, 32].map((groupSize) =>
        escalation(`groups-${groupSize}`, { groupSize }, { label: `groups of ${groupSize}`, value: groupSize }),
      ),
      variants: [grpo, drmas, drmasSingletonRaw, drmasSingletonBatch, drmasBatch],
    }),
    part('natural', 'Recipes that ship', {
      regimes: [shipped('desk', 'router'), shipped('shop', 'verifier'), shipped('math', 'verifier')],
      variants: [grpo, drmas, grpoTurn],
      probe: true,
      ownReward: true,
    }),
  ],
};

/** Evaluated before the first step and after the last alone. */
const brief = { every: 100 };
const zeros = { ...brief, family: 'zero', groupSize: 2 };

const small: Question = {
  id: 'small-groups',
  heading: 'Groups of two and four',
  asks: 'What is a turn compared with if its group is small?',
  parts: [
    part('singletons', 'Groups of 2 whose rewards have another zero', {
      regimes: [
        escalation('zero-1', { ...zeros, zero: -1 }, { label: 'rewards of -1 and 0', value: -1 }),
        escalation('zero-2', { ...zeros, zero: 1 }, { label: 'rewards of 1 and 2', value: 1 }),
      ],
      variants: [drmasSingletonZero, drmasSingletonRaw, drmasSingletonBatch],
      baseline: drmasSingletonZero.id,
      seeds: FRESH_PAIRS,
    }),
    part('shrinkage', "The group's mean, or the mean of the group and of the agent's other tasks", {
      regimes: [2, 4, 8].map((groupSize) =>
        escalation(
          `small-${groupSize}`,
          { ...brief, family: 'small', groupSize },
          { label: `groups of ${groupSize}`, value: groupSize },
        ),
      ),
      variants: [drmasSingletonZero, shrinkage],
      baseline: drmasSingletonZero.id,
      seeds: FRESH_PAIRS,
    }),
  ],
};

/** GRPO and Dr. MAS with another optimiser for every policy. */
const withOptimiser = (variant: Variant, type: string, rate: number) =>
  having(
    variant,
    `${type}-${rate}`,
    quarter.policies.map((policy) => `policies.${policy}.optimizer.type=${type}`),
    { learningRate: rate },
  );
const swept = (type: string, rates: readonly number[]) =>
  rates.flatMap((rate) => [grpo, drmas].map((variant) => withOptimiser(variant, type, rate)));

const long = escalation('long', { steps: 400, every: 40 }, { label: '400 steps', value: 400 });

const scale: Question = {
  id: 'noise',
  heading: 'Scale or noise of the gradient',
  asks: 'Is it the scale of the gradient or its noise?',
  parts: [
    part('optimiser-sweep', 'Learning rates of SGD and N-PG-IGT, on seeds 901 to 903', {
      regimes: [quarter],
      variants: [...swept('sgd', [0.1, 0.3, 1]), ...swept('nigt', [0.02, 0.05, 0.1])],
      baseline: `${grpo.id}-sgd-0.1`,
      seeds: SWEEP_SEEDS,
    }),
    part('optimiser-sweep-400', 'The same with four times the steps', {
      regimes: [long],
      variants: [...swept('sgd', [0.1, 0.3, 1]), ...swept('nigt', [0.01, 0.02, 0.05])],
      baseline: `${grpo.id}-sgd-0.1`,
      seeds: SWEEP_SEEDS,
    }),
    part('optimisers', 'SGD, AdamW and a normalised step, with and without agent-wise statistics', {
      regimes: [long],
      variants: [
        grpo,
        drmas,
        withOptimiser(grpo, 'sgd', RATES.sgd.grpo),
        withOptimiser(drmas, 'sgd', RATES.sgd.drmas),
        withOptimiser(grpo, 'nigt', RATES.nigt.grpo),
        withOptimiser(drmas, 'nigt', RATES.nigt.drmas),
      ],
    }),
  ],
};

const shared = (variant: Variant) => having(variant, 'shared', ['assign=shared'], { policies: ['shared'] });

const teams: Question = {
  id: 'teams',
  heading: 'Shared policies, more agents, units of the loss',
  asks: 'Shared or separate policies, how many agents, what unit?',
  parts: [
    part('sharing', 'One policy for all agents or one each', {
      regimes: [quarter],
      variants: [grpo, drmas, shared(grpo), shared(drmas)],
    }),
    part('experts', 'Two to eight experts', {
      regimes: [2, 4, 8].map((experts) =>
        escalation(`experts-${experts}`, { experts, rare: 0.25 }, { label: `${experts} experts`, value: experts }),
      ),
      variants: [grpo, drmas],
      probe: true,
    }),
    part('units', 'The unit that counts once: a turn or an episode', {
      regimes: [thrice],
      variants: [
        drmas,
        having(drmas, 'episode-mean', ['loss.aggregate=episode-mean']),
        having(grpo, 'episode-mean', ['loss.aggregate=episode-mean']),
        grpo,
      ],
    }),
  ],
};

const cliffs: Question = {
  id: 'cliffs',
  heading: 'Falls after the best score',
  asks: 'Do separate policies peak higher and fall off a cliff?',
  parts: [
    part('long', 'Four times as long', {
      regimes: [long],
      variants: [shared(grpo), grpo, shared(drmas), drmas, at(grpo, 2e-3), at(drmas, 2e-3)],
      baseline: shared(grpo).id,
    }),
  ],
};

/** A regime whose runs measure the lemma's factor every ten steps. */
const measured = (regime: Regime): Regime => ({
  ...regime,
  id: `lemma-${regime.id}`,
  family: 'lemma',
  set: [...regime.set, 'training.measureInflation=10'],
});

const lemma: Question = {
  id: 'lemma',
  heading: 'The inflation of measured gradients',
  asks: 'Do gradients have the predicted inflation?',
  parts: [
    part('measured', 'The factor of Lemma 4.2, measured', {
      regimes: [quarter, shipped('desk', 'router'), shipped('repair', 'fixer')].map(measured),
      variants: [grpo, drmas],
      seeds: LEMMA_SEEDS,
    }),
  ],
};

/** The team of the other questions, for one table of estimators: research/plans/league.md. */
const leagueTeam: Regime = { ...escalation('league', { every: 25 }), family: 'league' };
const LEAGUE_RATES = [3e-4, 1e-3, 2e-3, 4e-3, 8e-3];
const leagueVariants: readonly Variant[] = [
  ...[grpo, grpoRefilled, grpoEntropy(leagueTeam.policies), grpoKl(leagueTeam.policies), grpoTurn, drGrpo, rloo],
  ...[reinforce, reinforceBaseline, maxrl, rejection],
  ...[
    drmas,
    drmasNoSpread,
    drmasBatch,
    shrinkage,
    atGrpo,
    magrpo,
    rlooByAgent,
    reinforceByAgent,
    maxrlByAgent,
    ema,
    gae,
  ],
].map(withDefaultSingleton);

/** The rate of each variant: its highest in the sweep. */
const LEAGUE_CHOSEN: Readonly<Record<string, number>> = {
  grpo: 1e-3,
  'grpo-refilled': 2e-3,
  'grpo-entropy': 1e-3,
  'grpo-kl': 2e-3,
  'grpo-turn': 2e-3,
  'dr-grpo': 4e-3,
  rloo: 4e-3,
  'reinforce++': 2e-3,
  'reinforce++-baseline': 1e-3,
  maxrl: 2e-3,
  rejection: 4e-3,
  drmas: 4e-3,
  'drmas-no-spread': 4e-3,
  'drmas-batch': 4e-3,
  shrinkage: 2e-3,
  'at-grpo': 4e-3,
  magrpo: 2e-3,
  'rloo-by-agent': 2e-3,
  'reinforce++-baseline-by-agent': 2e-3,
  'maxrl-by-agent': 4e-3,
  ema: 4e-3,
  gae: 4e-3,
};
const leagueRates = (variant: Variant) => LEAGUE_RATES.map((rate) => at(variant, rate));
const atChosenRate = (variant: Variant) => at(variant, LEAGUE_CHOSEN[variant.id] ?? Number.NaN);

const league: Question = {
  id: 'league',
  heading: '22 estimators at their own rates',
  asks: 'Which estimator ends highest, each at its own best rate?',
  parts: [
    part('league-sweep', 'Five learning rates of each estimator, on seeds 901 to 903', {
      regimes: [leagueTeam],
      variants: leagueVariants.flatMap(leagueRates),
      baseline: at(grpo, 1e-3).id,
      seeds: SWEEP_SEEDS,
    }),
    part('league-pairs', 'Twenty pairs of each estimator, at its own best rate', {
      regimes: [leagueTeam],
      variants: leagueVariants.map(atChosenRate),
      baseline: atChosenRate(drmas).id,
      seeds: SEEDS.league,
      ranked: { pairs: SEEDS.league.length },
    }),
  ],
};

const tunedTeam = ['coder', 'fixer'];
/** The ways of learning `repair`: with a mean of all agents, without a mean, with the agent's own. */
const tunedVariants: readonly Variant[] = [
  ...[grpo, grpoEntropy(tunedTeam), grpoKl(tunedTeam), grpoTurn, reinforce, rejection],
  drmasBatchSingleton, // the recipe's own choice is the older default
  ...[rlooByAgent, ema, gae].map(withDefaultSingleton),
];
const TUNED_RATES = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2];

/** The rate of the fixer in each variant: its highest in the sweep. */
const TUNED_CHOSEN: Readonly<Record<string, number>> = {
  grpo: 1e-4,
  'grpo-entropy': 1e-4,
  'grpo-kl': 1e-4,
  'grpo-turn': 1e-3,
  'reinforce++': 1e-3,
  rejection: 1e-3,
  drmas: 1e-3,
  'rloo-by-agent': 1e-3,
  ema: 1e-3,
  gae: 1e-3,
};
const tunedRates = (variant: Variant) => TUNED_RATES.map((rate) => at(variant, rate));
const atTunedRate = (variant: Variant) => at(variant, TUNED_CHOSEN[variant.id] ?? Number.NaN);

/** The team that the README shows: research/plans/tuned.md. */
const tuned: Question = {
  id: 'tuned',
  heading: 'A tuned GRPO on the team of README',
  asks: 'Does a tuned baseline close the gap on the team of the README?',
  parts: [
    part('tuned-sweep', 'Five learning rates of the fixer under each estimator', {
      regimes: [tunedRepair],
      variants: tunedVariants.flatMap(tunedRates),
      baseline: at(grpo, 1e-3).id,
      seeds: SHORT_SWEEP_SEEDS,
    }),
    part('tuned-pairs', 'Twenty pairs of each estimator, at its own best rate', {
      regimes: [tunedRepair],
      variants: tunedVariants.map(atTunedRate),
      baseline: atTunedRate(drmas).id,
      seeds: SEEDS.tuned,
      ranked: { pairs: SEEDS.tuned.length },
    }),
  ],
};

/** The steps after which a run that has not caught up ends. */
const LONGEST = 1500;
const caughtUp = 0.9;

/** The team `escalation` with other batches, until a run is as good as wanted: research/plans/catch-up.md. */
const timed = (batch: number, rates: readonly number[]): Part => {
  const tasksPerStep = 4 * batch;
  const of = escalation(`catch-up-${batch}`, { family: 'catch-up', steps: LONGEST, every: 25, tasksPerStep });
  return part(`catch-up-${batch}`, `\`escalation\`, ${tasksPerStep} tasks a step`, {
    regimes: [{ ...of, set: [...of.set, `training.stopWhen.score=${caughtUp}`] }],
    variants: rates.flatMap((rate) => [grpo, drmas].map((variant) => at(withDefaultSingleton(variant), rate))),
    baseline: at(grpo, 1e-3).id,
    seeds: SEEDS.catchUp,
    ...(batch === 4 ? { figure: 'curves' } : {}),
    waiting: { score: caughtUp, most: LONGEST, episodes: 16 * tasksPerStep, enough: SEEDS.catchUp.length - 1 },
  });
};
const catchUp: Question = {
  id: 'catch-up',
  heading: 'The steps that GRPO needs',
  asks: 'Does GRPO catch up with more steps, larger batches or smaller rates?',
  parts: [timed(4, [1e-4, 3e-4, 1e-3]), timed(1, [1e-4, 3e-4, 1e-3]), timed(16, [1e-3])],
};

/** README's team at equal rates, until a run is as good as wanted: research/plans/catch-up-repair.md. */
const catchUpRepair: Question = {
  id: 'catch-up-repair',
  heading: 'The fixer of README with more steps',
  asks: 'Does the fixer of README learn under GRPO with more steps?',
  parts: [
    part('repair-timed', 'The fixer of `repair`', {
      regimes: [timedRepair],
      variants: [1e-4, 3e-4, 1e-3].flatMap((rate) => [grpo, drmasBatchSingleton].map((variant) => at(variant, rate))),
      baseline: at(grpo, 1e-3).id,
      seeds: SEEDS.catchUpRepair,
      waiting: { score: caughtUp, most: 900, episodes: 16 * 16, enough: SEEDS.catchUpRepair.length - 1 },
    }),
  ],
};

const sharingModels = SHARING_MODELS.map((model) => ({ model, regime: withSharing(model) }));
const sharingSweep = (id: string) => `${id}-sweep`;

/** Settings under which weights stay as they are: 64 small steps, and one with as many tasks. */
const STILL = { policies: ['expert'], learningRate: 1e-12 };
const MEASURED_STEPS = 64;
const stillSteps = [
  { name: 'small', set: [`training.steps=${MEASURED_STEPS}`] },
  { name: 'large', set: ['training.steps=1', `training.tasksPerStep=${16 * MEASURED_STEPS}`] },
];

/** Models that share more or less between an expert's contexts: research/plans/mechanism.md. */
const mechanism: Question = {
  id: 'mechanism',
  heading: 'Weights that contexts share',
  asks: 'Does a shared mean harm through weights that contexts share?',
  parts: [
    ...sharingModels.map(({ model, regime }) =>
      part(sharingSweep(model.id), `Learning rates of the expert: ${model.label}`, {
        regimes: [regime],
        variants: model.rates.map((rate) => at(grpo, rate)),
        baseline: at(grpo, model.rates[0] ?? Number.NaN).id,
        seeds: SHORT_SWEEP_SEEDS,
      }),
    ),
    part('mechanism-pairs', 'The same team with models that share more or less between contexts', {
      regimes: sharingModels.map(({ regime }) => regime),
      variants: [grpo, drmas].map(withDefaultSingleton),
      seeds: SEEDS.mechanism,
      overlap: true,
    }),
    part('mechanism-noise', "Norms of the expert's gradient before it learns", {
      regimes: sharingModels.map(({ regime }) => ({
        ...regime,
        id: `still-${regime.id}`,
        keepsNorms: true,
        set: [...regime.set, 'evaluation.tasks=1', 'evaluation.samples=1', `evaluation.every=${MEASURED_STEPS}`],
      })),
      variants: [grpo, drmas]
        .map(withDefaultSingleton)
        .flatMap((variant) => stillSteps.map(({ name, set }) => having(variant, name, set, STILL))),
      baseline: 'grpo-small',
      seeds: SEEDS.mechanism.slice(0, 3),
      still: true,
    }),
  ],
};

/** Two, four and eight times the rate of both teams. */
const TOO_HIGH = [2e-3, 4e-3, 8e-3];

/** Two teams at learning rates that are too high: research/plans/collapse.md. */
const collapse: Question = {
  id: 'collapse',
  heading: 'Learning rates that are too high',
  asks: 'Does Dr. MAS prevent a collapse at learning rates that are too high?',
  parts: [
    { team: 'escalation', of: escalation('collapse-escalation', { every: 10 }), own: withDefaultSingleton(drmas) },
    { team: 'repair', of: tunedRepair, own: drmasBatchSingleton },
  ].map(({ team, of, own }) => {
    const id = `collapse-${team}`;
    return part(id, `Learning rates that are too high for \`${team}\``, {
      regimes: [{ ...of, id, family: 'collapse', keepsNorms: true, set: [...of.set, 'evaluation.every=10'] }],
      variants: TOO_HIGH.flatMap((rate) => [at(grpo, rate), at(own, rate)]),
      baseline: at(grpo, 2e-3).id,
      seeds: SEEDS.collapse,
      figure: 'norms',
    });
  }),
};

/** The rates of the fixer that are tried on `words`; the coder has 0.3 of each. */
const WORDS_RATES = [1e-4, 3e-4, 1e-3, 3e-3];

/** The variant at a rate of the fixer. */
const onWords = (variant: Variant, rate: number): Variant =>
  having(variant, `at-${rate}`, [
    `policies.fixer.optimizer.learningRate=${rate}`,
    `policies.coder.optimizer.learningRate=${Number((0.3 * rate).toPrecision(2))}`,
  ]);

/** The rate of the fixer at which `grpo` ends highest in the sweep. */
const WORDS_RATE = 1e-3;

/** A team on a pretrained model: research/plans/words.md. */
const pretrained: Question = {
  id: 'words',
  heading: 'A team on a pretrained model',
  asks: 'Does a team on a pretrained model end higher under Dr. MAS?',
  parts: [
    part('words-sweep', 'The learning rates of the team on SmolLM2-135M-Instruct', {
      regimes: [words],
      variants: WORDS_RATES.flatMap((rate) => [onWords(grpo, rate), onWords(drmas, rate)]),
      baseline: onWords(grpo, WORDS_RATE).id,
      seeds: SWEEP_SEEDS,
    }),
    part('words-pairs', 'Ten pairs on SmolLM2-135M-Instruct, at the rate at which GRPO ends highest', {
      regimes: [words],
      variants: [grpo, grpoTurn, rlooByAgent, drmas].map((variant) => onWords(variant, WORDS_RATE)),
      baseline: onWords(grpo, WORDS_RATE).id,
      figure: 'curves',
    }),
  ],
};

const OWN_RATES = [1e-4, 3e-4, 1e-3];
const OWN_RATES_ARMS = [grpo, drmasBatchSingleton, ema, rejection];

/** The comparisons of research/plans/own-rates.md, with these rates. */
const ownRatesOf = (rates: readonly number[]): OwnRates => ({
  arms: OWN_RATES_ARMS.map(({ id }) => id),
  rates,
  variantAt: (arm, rate) => `${arm}-at-${rate}`,
  primary: [
    [drmas.id, grpo.id],
    [ema.id, drmas.id],
    [rejection.id, drmas.id],
  ],
  equivalent: { pair: [ema.id, drmas.id], within: 0.04 },
});

/** Each estimator at its own rate on a pretrained model: research/plans/own-rates.md. */
const ownRates: Question = {
  id: 'own-rates',
  heading: 'The pretrained team, each estimator at its own rate',
  asks: 'On a pretrained model, each estimator at its own rate: is a gain left?',
  parts: [
    part('own-rates-runs', 'The team on SmolLM2-135M-Instruct at three rates', {
      regimes: [wordsOwnRates],
      variants: OWN_RATES.flatMap((rate) => OWN_RATES_ARMS.map((variant) => onWords(variant, rate))),
      baseline: onWords(grpo, WORDS_RATE).id,
      seeds: SEEDS.ownRates,
      figure: 'arms',
      ownRates: ownRatesOf(OWN_RATES),
    }),
  ],
};

/** Two more estimators at one rate, which is not the best of Dr. MAS: research/plans/words-more.md. */
const moreOnWords: Question = {
  id: 'words-more',
  heading: 'Two more estimators on the pretrained team',
  asks: 'On a pretrained model, is a shrunk mean or MaxRL by agent ahead of Dr. MAS?',
  parts: [
    part('words-more-runs', 'Dr. MAS, `shrinkage` and `maxrl` by agent on SmolLM2-135M-Instruct', {
      regimes: [wordsMore],
      variants: [drmasBatchSingleton, withDefaultSingleton(shrinkage), maxrlByAgent].map((each) => onWords(each, 3e-4)),
      baseline: onWords(drmasBatchSingleton, 3e-4).id,
      seeds: SEEDS.wordsMore,
      ranked: { pairs: SEEDS.wordsMore.length },
    }),
  ],
};

/** A pretrained team that was not built for the effect: research/plans/stories.md. */
const unbuilt: Question = {
  id: 'stories',
  heading: 'A pretrained team that was not built for the effect',
  asks: 'Does an estimator matter for a solver and a verifier who share one reward?',
  parts: [
    part('stories-runs', 'A solver and a verifier on SmolLM2-135M-Instruct at three rates', {
      regimes: [stories],
      variants: OWN_RATES.flatMap((rate) => OWN_RATES_ARMS.map((variant) => at(variant, rate))),
      baseline: at(grpo, OWN_RATES[1] as number).id,
      seeds: SEEDS.stories,
      figure: 'arms',
      ownRates: ownRatesOf(OWN_RATES),
    }),
  ],
};

/** The rate of each way of learning `sums`: its highest in the sweep. */
const SUMS_CHOSEN: Readonly<Record<string, number>> = { grpo: 1e-3, rejection: 1e-3, supervised: 3e-3 };
const SUMS_RATES = [3e-4, 1e-3, 3e-3];
const SUMS_WAYS: Readonly<Record<string, (rate: number) => Variant>> = {
  grpo: (rate) => at(grpo, rate),
  rejection: (rate) => at(rejection, rate),
  supervised,
};
const sumsChosen = (name: string): Variant => {
  const [way, rate] = [SUMS_WAYS[name], SUMS_CHOSEN[name]];
  if (way === undefined || rate === undefined) throw new Error(`there is no way of learning ${name}`);
  return way(rate);
};

/** One agent on a pretrained model: research/plans/sums.md. */
const alone: Question = {
  id: 'sums',
  heading: 'Rewards or demonstrations on a pretrained model',
  asks: 'Does a pretrained model learn more from rewards or from demonstrations?',
  parts: [
    part('sums-sweep', 'Learning rates of reinforcement, own right answers and demonstrations', {
      regimes: [sums],
      variants: SUMS_RATES.flatMap((rate) => Object.values(SUMS_WAYS).map((way) => way(rate))),
      baseline: at(grpo, 1e-3).id,
      seeds: SHORT_SWEEP_SEEDS,
    }),
    part('sums-pairs', 'Ten pairs of each, at its own best rate', {
      regimes: [sums],
      variants: Object.keys(SUMS_WAYS).map(sumsChosen),
      baseline: sumsChosen('grpo').id,
      seeds: SEEDS.sums,
    }),
  ],
};

/** The seed of the blind test's probes, which none of its pairs has. */
const PROBE_SEED = 901;

/** The candidates that the plan's rule chooses from the probes (`chooseSpread`). */
const BLIND_CHOSEN = [
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
  ...[20, 24, 27, 30, 32, 34, 36, 37, 40, 45, 46, 48, 52, 60, 74, 77, 90, 92, 100, 106],
];

/** Regimes that nobody chose: research/plans/blind.md. */
const blind: Question = {
  id: 'blind',
  heading: 'A blind test of the own share',
  asks: 'Does the own share tell beforehand where Dr. MAS learns more?',
  parts: [
    part('blind-draw', 'The regimes that are drawn, and what a probe sees in each', {
      regimes: Array.from({ length: CANDIDATES }, (_, index) => drawn(index)),
      variants: [grpo],
      seeds: [],
      probe: true,
      probeSeeds: [PROBE_SEED],
    }),
    part('blind-pairs', 'Forty of the drawn regimes, chosen by what the probe saw', {
      regimes: BLIND_CHOSEN.map(drawn),
      variants: [grpo, drmas].map(withDefaultSingleton),
      seeds: SEEDS.blind,
      probe: true,
      probeSeeds: [PROBE_SEED],
    }),
  ],
};

/** The team `escalation` with eight updates a step. */
const reused: Regime = (() => {
  const of = escalation('losses', { every: 25 });
  const updates = of.policies.flatMap((policy) => [`policies.${policy}.epochs=2`, `policies.${policy}.miniBatches=4`]);
  return { ...of, family: 'losses', set: [...of.set, ...updates] };
})();
const LOSS_RATES = [1e-4, 3e-4, 1e-3, 2e-3];
const lossVariants: readonly Variant[] = [
  ...['ppo-clip', 'turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo', 'kto'].map((id) => ({
    id,
    set: [...withDefaultSingleton(drmas).set, `loss.type=${id}`],
  })),
  { ...rejection, id: 'cross-entropy' },
];

/** The rate of each loss: its highest in the sweep. */
const LOSS_CHOSEN: Readonly<Record<string, number>> = {
  'ppo-clip': 1e-3,
  'turn-ppo': 1e-3,
  's-ppo': 1e-3,
  'st-ppo': 1e-3,
  cispo: 3e-4,
  gspo: 1e-3,
  kto: 3e-4,
  'cross-entropy': 3e-4,
};
const lossRates = (variant: Variant) => LOSS_RATES.map((rate) => at(variant, rate));
const atLossRate = (variant: Variant) => at(variant, LOSS_CHOSEN[variant.id] ?? Number.NaN);

/** All losses on one team: research/plans/losses.md. */
const losses: Question = {
  id: 'losses',
  heading: 'Losses with several updates a step',
  asks: 'Does the loss matter if a step has several updates?',
  parts: [
    part('losses-sweep', 'Four learning rates of each loss, on seeds 901 to 903', {
      regimes: [reused],
      variants: lossVariants.flatMap(lossRates),
      baseline: `${lossVariants[0]?.id}-at-0.001`,
      seeds: SWEEP_SEEDS,
    }),
    part('losses-pairs', 'Ten pairs of each loss, at its own best rate', {
      regimes: [reused],
      variants: lossVariants.map(atLossRate),
      baseline: atLossRate(lossVariants[0] as Variant).id,
      seeds: SEEDS.losses,
      ranked: { pairs: SEEDS.losses.length },
    }),
  ],
};

const SIZE_RATES = [1e-4, 3e-4, 1e-3, 2e-3];
const sizeSweep = (width: number) => `size-${width}-sweep`;

/** One team with larger models: research/plans/size.md. */
const size: Question = {
  id: 'size',
  heading: 'Larger models',
  asks: 'Does the harm of a shared mean shrink as the models grow?',
  parts: [
    ...SIZES.map((one) =>
      part(sizeSweep(one.width), `The learning rates of policies of ${one.millions} million parameters`, {
        regimes: [sized(one)],
        variants: SIZE_RATES.map((rate) => at(grpo, rate)),
        baseline: at(grpo, 1e-3).id,
        seeds: SWEEP_SEEDS,
      }),
    ),
    part('size-pairs', 'The same team in several sizes', {
      regimes: SIZES.map(sized),
      variants: [grpo, drmas].map(withDefaultSingleton),
      seeds: SEEDS.sizes,
    }),
  ],
};

const named = (regime: Regime) => (regime === paperMath ? 'mathematics' : 'search');
/** The assignments that the paper compares, with the variants of `grpo` that choose their rates. */
const singleAgent = (regime: Regime): Variant => ({
  ...grpo,
  id: 'grpo-single',
  ...(regime === paperMath
    ? { recipe: 'solo', policies: ['solver'] }
    : { recipe: 'research/regimes/paper-search-single.ts', policies: ['single'] }),
});
const PAPER_TEAMS = [
  { regime: paperMath, rates: [3e-4, 1e-3, 3e-3] },
  { regime: paperSearch, rates: [1e-4, 3e-4, 1e-3] },
];
const paperAssignments = (regime: Regime) => [grpo, shared(grpo), singleAgent(regime)];

/** The rate of each assignment: GRPO's highest in the sweep. */
const PAPER_CHOSEN: Readonly<Record<string, number>> = {
  'paper-math/grpo': 3e-4,
  'paper-math/grpo-shared': 3e-4,
  'paper-math/grpo-single': 3e-4,
  'paper-search/grpo': 1e-3,
  'paper-search/grpo-shared': 1e-3,
  'paper-search/grpo-single': 1e-3,
};
const chosenFor = (regime: Regime, variant: Variant): number | undefined => PAPER_CHOSEN[`${regime.id}/${variant.id}`];
/** A variant at the rate that `grpo` has in the same assignment. */
const atPaperRate = (regime: Regime, variant: Variant, of: Variant): Variant => ({
  ...variant,
  learningRate: chosenFor(regime, of) ?? Number.NaN,
});
const paperVariants = (regime: Regime): Variant[] => [
  ...[grpo, grpoTurn, ...(regime === paperSearch ? [drmasMean, drmasStd] : []), drmas]
    .map(withDefaultSingleton)
    .map((variant) => atPaperRate(regime, variant, grpo)),
  ...[grpo, grpoTurn, drmas]
    .map(withDefaultSingleton)
    .map((variant) => atPaperRate(regime, shared(variant), shared(grpo))),
  atPaperRate(regime, singleAgent(regime), singleAgent(regime)),
];
const drmasWith = (id: string, set: readonly string[]): Variant =>
  atPaperRate(paperSearch, having(withDefaultSingleton(drmas), id, set), grpo);

/** The paper's tables and figures on small models: research/plans/paper.md. */
const paper: Question = {
  id: 'paper',
  heading: "The paper's comparisons on small models",
  asks: "Do the paper's comparisons come out the same on small models?",
  parts: [
    ...PAPER_TEAMS.map(({ regime, rates }) =>
      part(`${regime.id}-sweep`, `Learning rates of GRPO in ${named(regime)}, for each assignment`, {
        regimes: [regime],
        variants: paperAssignments(regime).flatMap((variant) => rates.map((rate) => at(variant, rate))),
        baseline: at(grpo, 1e-3).id,
        seeds: SWEEP_SEEDS,
      }),
    ),
    ...PAPER_TEAMS.map(({ regime }) =>
      part(`${regime.id}-pairs`, `Ten pairs of the paper's comparisons in ${named(regime)}`, {
        regimes: [regime],
        variants: paperVariants(regime),
        seeds: SEEDS.paper,
      }),
    ),
    part('paper-ablation', 'Search with mean and spread of the agent, with one of them, and with none', {
      regimes: [paperSearch],
      variants: [grpo, drmasStd, drmasMean, drmas]
        .map(withDefaultSingleton)
        .map((variant) => atPaperRate(paperSearch, variant, grpo)),
      seeds: SEEDS.paper,
      figure: 'curves',
    }),
    part('paper-sizes', 'A larger model for the verifier, or for all agents', {
      regimes: [paperSizes],
      variants: [
        drmasWith('small', searchModels([])),
        drmasWith('large-verifier', searchModels(['verifier'])),
        drmasWith('large', searchModels(paperSearch.policies)),
      ],
      baseline: 'drmas-small',
      seeds: SEEDS.paper,
    }),
    part('paper-observations', 'GiGPO with and without groups of the agent', {
      regimes: [paperEscalation('paper-tries', { tries: 3 })],
      variants: [grpo, drmas, gigpo, gigpoByAgent].map(withDefaultSingleton),
      baseline: gigpo.id,
      seeds: SEEDS.paper,
    }),
    part('paper-staleness', 'Episodes of the newest weights, or of weights three updates older', {
      regimes: [paperEscalation('paper-stale', {})],
      variants: [grpo, drmas]
        .map(withDefaultSingleton)
        .flatMap((variant) => [variant, having(variant, 'stale', ['rollout.staleness=3'])]),
      seeds: SEEDS.paper,
    }),
  ],
};

/** The sweeps that choose learning rates, and the rate in use: the rate that ended highest on its side. */
const CHOSEN = [
  { rate: RATES.escalation, sweep: 'sweep', type: 'grpo', optimiser: '' },
  { rate: RATES.sgd.grpo, sweep: 'optimiser-sweep-400', type: 'grpo', optimiser: '-sgd-' },
  { rate: RATES.sgd.drmas, sweep: 'optimiser-sweep-400', type: 'drmas', optimiser: '-sgd-' },
  { rate: RATES.nigt.grpo, sweep: 'optimiser-sweep-400', type: 'grpo', optimiser: '-nigt-' },
  { rate: RATES.nigt.drmas, sweep: 'optimiser-sweep-400', type: 'drmas', optimiser: '-nigt-' },
] as const;

/** Errors in the choice of regimes for the blind test, as soon as all probes are present. */
export function wrongDraw(results: Results): string[] {
  const [draw] = blind.parts;
  if (draw === undefined || jobsOf(draw).some((job) => results.of(job) === undefined)) return [];
  const chosen = chooseSpread(candidatesOf(draw, results)).map(({ id }) => id);
  const declared = BLIND_CHOSEN.map((index) => drawn(index).id);
  return chosen.join() === declared.join() ? [] : [`blind: the rule of the plan chooses ${chosen.join(', ')}`];
}

const TRUNK_RATES = [1e-3, 3e-3, 1e-2];
/** Dr. MAS with the agents' weights shared in one way or another. */
const trunkArms: readonly Variant[] = (() => {
  const ofDrmas = withDefaultSingleton(drmas).set;
  const adapters = (settings: object) => `policies.shared.agentAdapters=${JSON.stringify(settings)}`;
  const together = (id: string, ...more: string[]) => ({
    id,
    set: [...ofDrmas, 'assign=shared', ...more],
    policies: ['shared'],
  });
  return [
    together('trunk', adapters({ rank: 8 })),
    together('shared'),
    { id: 'separate', set: ofDrmas },
    together('frozen', adapters({ rank: 8, trunkRate: 0 })),
  ];
})();

/** The rate of each arm: its highest in the sweep. */
const TRUNK_CHOSEN: Readonly<Record<string, number>> = { trunk: 3e-3, shared: 3e-3, separate: 1e-3, frozen: 3e-3 };
const trunkRates = (variant: Variant) => TRUNK_RATES.map((rate) => at(variant, rate));
const atTrunkRate = (variant: Variant) => at(variant, TRUNK_CHOSEN[variant.id] ?? Number.NaN);

/** A trunk below adapters of agents, on a mixture of tasks: research/plans/trunk.md. */
const trunk: Question = {
  id: 'trunk',
  heading: 'A trunk that all agents train',
  asks: 'Is a trunk that all agents train, below adapters of their own, better than sharing all or nothing?',
  parts: [
    part('trunk-sweep', 'Three learning rates of each arm, on seeds 901 and 902', {
      regimes: [mixture],
      variants: trunkArms.flatMap(trunkRates),
      baseline: 'trunk-at-0.001',
      seeds: SHORT_SWEEP_SEEDS,
    }),
    part('trunk-pairs', 'Ten pairs of each arm, at its own best rate', {
      regimes: [mixture],
      variants: trunkArms.map(atTrunkRate),
      baseline: atTrunkRate(trunkArms[0] as Variant).id,
      seeds: SEEDS.trunk,
      ranked: { pairs: SEEDS.trunk.length },
    }),
  ],
};

/** The default of the product, by evidence: research/plans/defaults.md. */
const defaults: Question = {
  id: 'defaults',
  heading: 'A default by evidence',
  asks: 'Is a running mean, or a shrunk one, a better default than the mean of the group?',
  parts: DEFAULT_REGIMES.map((regime) =>
    part(regime.id, `Three estimators: ${regime.dose?.label}`, {
      regimes: [regime],
      variants: [drmasBatchSingleton, ...[shrinkage, ema].map(withDefaultSingleton)],
      baseline: drmas.id,
      seeds: SEEDS.defaults,
      ranked: { pairs: SEEDS.defaults.length },
    }),
  ),
};

/** Errors in the learning rates in use, as far as their sweeps are present. */
export function wrongRates(results: Results): string[] {
  const parts = questions.flatMap((question) => question.parts);
  const find = (sweep: string) => {
    const found = parts.find(({ id }) => id === sweep);
    if (found === undefined) throw new Error(`there is no part ${sweep}`);
    return found;
  };
  const wrong = (
    sweep: string,
    name: string,
    rate: number | undefined,
    side: readonly Variant[],
    score = lastScore,
  ) => {
    const swept = find(sweep);
    const [best] = swept.regimes.map((regime) => highest(new PartResults(swept, results), regime, side, score));
    return best?.learningRate === undefined || best.learningRate === rate
      ? []
      : [`${sweep}: ${rate} is in use, but ${name} is highest at ${best.learningRate}`];
  };
  return [
    ...CHOSEN.flatMap(({ rate, sweep, type, optimiser }) => {
      const side = find(sweep).variants.filter(
        ({ id, set }) => set.includes(`advantage.type=${type}`) && id.includes(optimiser),
      );
      return wrong(sweep, type, rate, side);
    }),
    ...leagueVariants.flatMap((variant) =>
      wrong('league-sweep', variant.id, LEAGUE_CHOSEN[variant.id], leagueRates(variant), curveScore),
    ),
    ...tunedVariants.flatMap((variant) =>
      wrong('tuned-sweep', variant.id, TUNED_CHOSEN[variant.id], tunedRates(variant), curveScore),
    ),
    ...lossVariants.flatMap((variant) =>
      wrong('losses-sweep', variant.id, LOSS_CHOSEN[variant.id], lossRates(variant), curveScore),
    ),
    ...trunkArms.flatMap((variant) =>
      wrong('trunk-sweep', variant.id, TRUNK_CHOSEN[variant.id], trunkRates(variant), curveScore),
    ),
    ...PAPER_TEAMS.flatMap(({ regime, rates }) =>
      paperAssignments(regime).flatMap((variant) =>
        wrong(
          `${regime.id}-sweep`,
          variant.id,
          chosenFor(regime, variant),
          rates.map((rate) => at(variant, rate)),
        ),
      ),
    ),
    ...sharingModels.flatMap(({ model: { id, learningRate } }) =>
      wrong(sharingSweep(id), grpo.id, learningRate, find(sharingSweep(id)).variants, curveScore),
    ),
    ...Object.entries(SUMS_WAYS).flatMap(([name, way]) =>
      wrong('sums-sweep', name, SUMS_CHOSEN[name], SUMS_RATES.map(way)),
    ),
    ...SIZES.flatMap(({ width, learningRate }) =>
      wrong(sizeSweep(width), grpo.id, learningRate, find(sizeSweep(width)).variants, curveScore),
    ),
  ];
}

export const questions: readonly Question[] = [
  rates,
  dose,
  identity,
  limits,
  small,
  scale,
  teams,
  cliffs,
  lemma,
  pretrained,
  ownRates,
  moreOnWords,
  unbuilt,
  alone,
  league,
  tuned,
  catchUp,
  catchUpRepair,
  mechanism,
  collapse,
  blind,
  size,
  losses,
  trunk,
  paper,
  defaults,
];

const primary = (question: string, part: string, regime: string, variant: string, other?: string): Primary => ({
  question,
  part,
  regime,
  variant,
  ...(other === undefined ? {} : { other }),
});

/** The comparisons that answer the questions. They were marked after the results, so Holm's adjustment is too mild. */
export const primaries: readonly Primary[] = [
  primary('dose', 'mismatch', 'escalation', 'drmas'),
  primary('dose', 'mismatch', 'common-125', 'drmas'),
  primary('dose', 'scale', 'scale-10', 'drmas'),
  primary('dose', 'drift', 'repair-25', 'drmas'),
  primary('identity', 'two-by-two', 'escalation', 'drmas-mean'),
  primary('identity', 'two-by-two', 'escalation', 'drmas-std'),
  primary('identity', 'two-by-two', 'escalation', 'drmas', 'grpo-turn'),
  primary('limits', 'natural', 'desk', 'drmas'),
  primary('limits', 'natural', 'shop', 'drmas'),
  primary('limits', 'natural', 'math', 'drmas'),
  primary('limits', 'group-size', 'groups-2', 'drmas'),
  primary('noise', 'optimisers', 'long', 'drmas-nigt-0.02', 'grpo-nigt-0.01'),
  primary('cliffs', 'long', 'long', 'drmas', 'grpo'),
];
