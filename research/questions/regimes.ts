/** The regimes: teams with fixed settings. Their sizes keep a run at 10 to 40 seconds of one thread. */
import { RandomStream } from '@drmas/engine/math';
import type { Regime } from '../harness/declaration.js';

const ESCALATION = 'research/regimes/escalation';

const EXPERT_CALLS_A_STEP = 64;
const GROUP_SIZE = 16;

export interface EscalationKnobs {
  /** The file of its results. Default: `escalation`. */
  readonly family?: string;
  readonly rare?: number;
  readonly common?: number;
  readonly tries?: number;
  readonly scale?: number;
  readonly zero?: number;
  readonly groupSize?: number;
  /** Default: as many as call the expert equally often per step for any frequency of its calls. */
  readonly tasksPerStep?: number;
  readonly steps?: number;
  readonly every?: number;
  readonly experts?: number;
}

const AN_EXPERT = 'router'; // the first one

/** The policies of an escalation team with so many experts. */
const escalationPolicies = (experts: number) => [
  'worker',
  ...[AN_EXPERT, 'phone', 'watch', 'camera', 'printer', 'scanner', 'screen', 'speaker'].slice(0, experts),
];

/**
 * An escalation regime (`research/regimes/escalation.ts`). Its evaluation tickets are all rare, so the score is the
 * experts' success itself, for any share of training episodes that call them.
 */
export function escalation(id: string, knobs: EscalationKnobs = {}, dose?: Regime['dose']): Regime {
  const { rare = 0.25, groupSize = GROUP_SIZE, experts = 1, scale = 0, tries = 1, common = 1 } = knobs;
  const { zero, tasksPerStep = Math.round(EXPERT_CALLS_A_STEP / rare / groupSize) } = knobs;
  const moved = zero === undefined ? {} : { zero };
  const set = Object.entries({ rare, common, tries, scale, ...moved }).map(
    ([key, value]) => `tasks.train.${key}=${value}`,
  );
  return {
    id,
    family: knobs.family ?? 'escalation',
    recipe: `${ESCALATION}-${experts}.ts`,
    set: [
      ...set,
      'tasks.test.rare=1',
      `tasks.test.scale=${scale === 0 ? 0 : 1}`,
      // A setting of the training tasks alone would hold for the held-out tasks too.
      ...(zero === undefined ? [] : ['tasks.test.zero=0']),
      `training.steps=${knobs.steps ?? 100}`,
      `training.tasksPerStep=${tasksPerStep}`,
      `training.groupSize=${groupSize}`,
      `evaluation.every=${knobs.every ?? 20}`,
    ],
    policies: escalationPolicies(experts),
    learningRate: RATES.escalation,
    agent: AN_EXPERT,
    agentName: 'expert',
    score: scale === 0 ? 'team' : 'agent',
    ...(scale === 0 && tries === 1 && zero === undefined ? { closedForm: { groupSize } } : {}),
    ...(dose === undefined ? {} : { dose }),
  };
}

/**
 * Learning rates, chosen on seeds 901 to 903, on which no pair runs. With AdamW: the rate at which `grpo`, the
 * baseline, ends highest. With SGD and N-PG-IGT `grpo` learns nothing at any rate, so each side has its own best rate.
 * `npm run check -- findings` compares them with the results of the sweeps as soon as these are present.
 */
export const RATES = {
  escalation: 1e-3,
  /** CreditBench's. */
  pairs: 3e-3,
  sgd: { grpo: 0.1, drmas: 0.3 },
  nigt: { grpo: 0.01, drmas: 0.02 },
} as const;

/** Seeds of the sweeps over learning rates, and the two of them for sweeps whose runs take long, or are many. */
export const SWEEP_SEEDS: readonly number[] = [901, 902, 903];
export const SHORT_SWEEP_SEEDS: readonly number[] = SWEEP_SEEDS.slice(0, 2);

/** Seeds of the runs that measure the lemma's factor. */
export const LEMMA_SEEDS: readonly number[] = [41, 42, 43];

const seeds = (first: number, count: number): readonly number[] => Array.from({ length: count }, (_, i) => first + i);

/** The seeds of the pairs of an experiment. */
export const SEEDS = {
  league: seeds(51, 20),
  blind: seeds(71, 10),
  sizes: seeds(81, 20),
  losses: seeds(101, 10),
  paper: seeds(111, 10),
  catchUp: seeds(121, 8),
  tuned: seeds(131, 20),
  mechanism: seeds(151, 10),
  collapse: seeds(161, 10),
  trunk: seeds(181, 10),
  sums: seeds(201, 10),
  ownRates: seeds(211, 20),
  catchUpRepair: seeds(231, 8),
  // Two experiments, on different models.
  stories: seeds(241, 10),
  defaults: seeds(241, 10),
  wordsMore: seeds(251, 10),
} as const;

interface Size {
  /** Parameters of a policy, in millions. */
  readonly millions: number;
  readonly width: number;
  readonly feedForward: number;
  readonly warmStartRate: number;
  /** The rate at which `grpo` is highest in the sweep. */
  readonly learningRate: number;
}

/** The sizes of research/plans/size.md. */
export const SIZES: readonly Size[] = [
  { millions: 0.1, width: 64, feedForward: 168, warmStartRate: 3e-3, learningRate: 2e-3 },
  { millions: 0.31, width: 112, feedForward: 304, warmStartRate: 1.7e-3, learningRate: 1e-3 },
  { millions: 1.1, width: 208, feedForward: 560, warmStartRate: 9.2e-4, learningRate: 3e-4 },
  { millions: 3, width: 352, feedForward: 944, warmStartRate: 5.5e-4, learningRate: 3e-4 },
  { millions: 9.9, width: 640, feedForward: 1712, warmStartRate: 3e-4, learningRate: 1e-4 },
];

/** The team `escalation` with decoders of a size. */
export function sized({ millions, width, feedForward, warmStartRate, learningRate }: Size): Regime {
  const of = escalation(`size-${width}`, { every: 25 }, { label: `${millions} million parameters`, value: millions });
  return {
    ...of,
    family: 'size',
    learningRate,
    set: [
      ...of.set,
      `model.width=${width}`,
      `model.feedForward=${feedForward}`,
      `warmStart.learningRate=${warmStartRate}`,
    ],
  };
}

/** A model of the expert in the team `contexts` (research/plans/mechanism.md). */
interface SharingModel {
  readonly id: string;
  readonly label: string;
  readonly recipe?: string;
  readonly set: readonly string[];
  /** The rates of the sweep. */
  readonly rates: readonly number[];
  /** The rate at which `grpo` is highest in the sweep. */
  readonly learningRate: number;
}

const DECODER_RATES = [1e-3, 3e-3, 1e-2];
const ofWidth = (width: number, rest: Partial<SharingModel> = {}): SharingModel => ({
  id: `contexts-width-${width}`,
  label: `decoder of width ${width}`,
  set: [`policies.expert.model.width=${width}`, `policies.expert.model.feedForward=${2 * width}`],
  rates: DECODER_RATES,
  learningRate: 3e-3,
  ...rest,
});
const FURTHER_WORDS = 8;

export const SHARING_MODELS: readonly SharingModel[] = [
  {
    id: 'contexts-table',
    label: 'table of choices',
    recipe: 'research/regimes/contexts-table.ts',
    set: [],
    rates: [0.02, 0.05, 0.1],
    learningRate: 0.1,
  },
  ...[16, 32, 64, 128].map((width) => ofWidth(width)),
  ofWidth(64, {
    id: 'contexts-words',
    label: `width 64 and ${FURTHER_WORDS} further words`,
    set: [`tasks.train.words=${FURTHER_WORDS}`],
  }),
];

/** The team `contexts` with a model of the expert. Its evaluation tickets all need the expert. */
export const withSharing = ({ id, label, recipe, set, learningRate }: SharingModel): Regime => ({
  id,
  family: 'mechanism',
  recipe: recipe ?? 'research/regimes/contexts.ts',
  set: [...set, 'tasks.test.rare=1'],
  policies: ['expert'],
  learningRate,
  agent: 'expert',
  score: 'team',
  dose: { label, value: SHARING_MODELS.findIndex((model) => model.id === id) },
});

/** The number of regimes that are drawn for the blind test, before 40 of them are chosen. */
export const CANDIDATES = 120;

/** A drawn regime: research/plans/blind.md. */
export function drawn(index: number): Regime {
  const random = new RandomStream('blind', index);
  const between = (low: number, high: number) => Number((low + (high - low) * random.uniform()).toFixed(2));
  const groupSize = random.pick([4, 8, 16]);
  const id = `blind-${index}`;
  if (index % 2 === 1) return { ...drawnPair(id, groupSize, random, between), family: 'blind' };
  const hasOwnReward = random.chance(0.3);
  const common = between(0, 1);
  const knobs = hasOwnReward
    ? { common, rare: 1, scale: Number((10 ** between(-1.5, 0.5)).toPrecision(2)) }
    : { common, rare: between(0.2, 1), tries: random.pick([1, 1, 1, 2, 3]) };
  const label = Object.entries(knobs).map(([name, value]) => `${name} ${value}`);
  return {
    ...escalation(id, { ...knobs, groupSize, every: 25 }, { label: ['escalation', ...label].join(', '), value: index }),
    family: 'blind',
  };
}

interface PairFamily {
  readonly family: string;
  readonly least: number;
  readonly most: number;
  readonly evaluated?: number;
  readonly score: Regime['score'];
}

/** The families of two agents, each with the range of its knob, and the knob in evaluations if that is another. */
const PAIR_FAMILIES: readonly [PairFamily, ...PairFamily[]] = [
  { family: 'rare-caller', least: 0, most: 0.9, evaluated: 0, score: 'team' },
  { family: 'small-own-reward', least: 0, most: 0.97, evaluated: 0, score: 'agent' },
  { family: 'opposed-parts', least: 0, most: 1, evaluated: 0, score: 'agent' },
  { family: 'long-loops', least: 2, most: 8, score: 'team' },
  { family: 'first-error', least: 2, most: 5, score: 'team' },
  { family: 'conflicting-rewards', least: 0, most: 1, score: 'team' },
];

function drawnPair(
  id: string,
  groupSize: number,
  random: RandomStream,
  between: (low: number, high: number) => number,
): Regime {
  const { family, least, most, evaluated, score } = random.pick(PAIR_FAMILIES);
  const difficulty = least >= 2 ? random.integer(least, most) : between(least, most);
  const [first, second] = [between(0.1, 0.6), between(0.1, 0.6)];
  const of = (split: string, difficulty: number) =>
    Object.entries({ family, difficulty, first, second }).map(([key, value]) => `tasks.${split}.${key}=${value}`);
  return {
    id,
    recipe: 'research/regimes/two-agents.ts',
    set: [
      ...of('train', difficulty),
      ...of('test', evaluated ?? difficulty),
      `training.tasksPerStep=${64 / groupSize}`,
      `training.groupSize=${groupSize}`,
    ],
    policies: ['first', 'second'],
    learningRate: RATES.pairs,
    agent: 'second',
    score,
    dose: { label: `${family} ${difficulty}, ${first}, ${second}`, value: Number(id.replace(/\D/g, '')) },
  };
}

/** The recipe `repair` with another share of episodes in which the commands have been renamed. */
export const repair = (drift: number): Regime => ({
  id: `repair-${String(drift).slice(2)}`,
  family: 'recipes',
  recipe: 'repair',
  set: [`tasks.train.drift=${drift}`, `tasks.test.drift=${drift}`, 'training.keepEpisodes=false'],
  policies: [],
  agent: 'fixer',
  score: 'team',
  closedForm: { groupSize: 16 },
  dose: { label: `drift ${drift}`, value: drift },
});

/** The recipe `repair`, whose evaluations need the fixer in every episode: research/plans/tuned.md. */
export const tunedRepair: Regime = {
  id: 'tuned',
  recipe: 'repair',
  set: [
    ...['train.drift=0.25', 'test.drift=1'].map((each) => `tasks.${each}`),
    ...['steps=100', 'tasksPerStep=16', 'groupSize=16', 'keepEpisodes=false'].map((each) => `training.${each}`),
    'evaluation.every=25',
  ],
  policies: ['fixer'],
  agent: 'fixer',
  score: 'team',
};

/** Two experts on a mixture of tickets: research/plans/trunk.md. */
export const mixture: Regime = {
  id: 'mix',
  family: 'trunk',
  recipe: 'research/regimes/mix.ts',
  set: ['training.tasksPerStep=8', 'evaluation.every=50', 'evaluation.samples=4'],
  policies: ['worker', 'router', 'phone'],
  agent: 'phone',
  score: 'team',
};

/** The same team, until its fixer is as good as wanted (research/plans/catch-up-repair.md). */
export const timedRepair: Regime = {
  ...tunedRepair,
  id: 'catch-up-repair',
  set: [
    ...tunedRepair.set.filter((setting) => !setting.startsWith('training.steps=')),
    'training.steps=900',
    'training.stopWhen.score=0.9',
  ],
};

/** A recipe that ships, with its learning rates. */
export const shipped = (recipe: string, agent: string): Regime => ({
  id: recipe,
  family: 'recipes',
  recipe,
  set: ['training.keepEpisodes=false'],
  policies: [],
  agent,
  score: 'team',
  dose: { label: recipe, value: 0 },
});

/** Regimes of the choice of a default, in which three estimators are compared: research/plans/defaults.md. */
export const DEFAULT_REGIMES: readonly Regime[] = [
  { ...tunedRepair, learningRate: 1e-3, dose: { label: '`repair`, scored by its fixer', value: 0 } },
  ...(
    [
      ['math', 'verifier'],
      ['desk', 'router'],
      ['shop', 'verifier'],
    ] as const
  ).map(([recipe, agent]) => shipped(recipe, agent)),
  {
    ...escalation('difficulties', { experts: 1 }, { label: 'tasks of two difficulties', value: 0 }),
    recipe: 'research/regimes/difficulties.ts',
    set: ['training.steps=100', 'training.tasksPerStep=16', 'training.groupSize=16', 'evaluation.every=20'],
  },
  ...SHARING_MODELS.filter(({ id }) => id === 'contexts-table').map((model) => ({
    ...withSharing(model),
    dose: { label: 'fast improvement: a table of choices', value: 0 },
  })),
  escalation('experts', { experts: 4 }, { label: 'four experts', value: 0 }),
].map((regime) => ({ ...regime, id: `default-${regime.id}`, family: 'defaults' }));

const ofPaper = (id: string, of: Pick<Regime, 'recipe' | 'policies' | 'agent'> & Partial<Regime>): Regime => ({
  score: 'team',
  ...of,
  id,
  family: 'paper',
  set: [...(of.set ?? []), 'training.keepEpisodes=false'],
});

/** The recipe `math` with the paper's reward: research/plans/paper.md. */
export const paperMath = ofPaper('paper-math', {
  recipe: 'research/regimes/paper-math.ts',
  policies: ['solver', 'verifier'],
  agent: 'verifier',
});

const PAPER_SEARCH_STEPS = ['training.steps=100', 'evaluation.every=25'];
const SEARCHERS = ['verifier', 'searcher', 'answerer'];

/** The recipe `search` with the paper's rules. */
export const paperSearch = ofPaper('paper-search', {
  recipe: 'research/regimes/paper-search.ts',
  set: PAPER_SEARCH_STEPS,
  policies: SEARCHERS,
  agent: 'answerer',
});

/** The same team with a price for its tokens, whose policies may have models of different sizes. */
export const paperSizes = ofPaper('paper-sizes', {
  ...paperSearch,
  set: [...PAPER_SEARCH_STEPS, 'warmStart.share=policy'],
});

/** Models of a size for these agents of `paperSizes`, and the price of their tokens. */
export const searchModels = (large: readonly string[]): string[] =>
  SEARCHERS.flatMap((name) => {
    const isLarge = large.includes(name);
    const model = isLarge ? { width: 128, layers: 3, feedForward: 320 } : {};
    const price = isLarge ? 0.58 : 0.1;
    return [
      ...Object.entries(model).map(([key, value]) => `policies.${name}.model.${key}=${value}`),
      ...['read', 'write'].map((kind) => `policies.${name}.price.${kind}=${price}`),
    ];
  });

/** The team `escalation` with the results of `paper`. */
export const paperEscalation = (id: string, knobs: EscalationKnobs): Regime =>
  escalation(id, { ...knobs, family: 'paper' });

/** The place of SmolLM2-135M-Instruct in the repository. */
const SMOLLM2 = 'runs/models/smollm2-135m-instruct.gguf';

/** One agent on a pretrained model (research/plans/sums.md). */
export const sums: Regime = {
  id: 'sums',
  recipe: 'sums',
  set: ['training.keepEpisodes=false'],
  policies: ['solver'],
  agent: 'solver',
  score: 'team',
  model: SMOLLM2,
};

/** The recipe `words` on a pretrained model, with 48 steps (research/plans/words.md). */
export const words: Regime = {
  id: 'words',
  recipe: 'words',
  set: ['training.steps=48', 'evaluation.every=12', 'training.keepEpisodes=false'],
  policies: [],
  agent: 'fixer',
  score: 'team',
  model: SMOLLM2,
  dose: { label: 'words', value: 0 },
};

/** The same with more answers to each held-out request (research/plans/own-rates.md). */
export const wordsOwnRates: Regime = {
  ...words,
  id: 'own-rates',
  set: [...words.set, 'evaluation.samples=8'],
};
/** The same for two more estimators (research/plans/words-more.md). */
export const wordsMore: Regime = { ...wordsOwnRates, id: 'words-more' };

/** The shipped solver and verifier on a pretrained model (research/plans/stories.md). */
export const stories: Regime = {
  id: 'stories',
  recipe: 'research/regimes/stories.ts',
  set: ['training.keepEpisodes=false'],
  policies: ['solver', 'verifier'],
  agent: 'solver',
  score: 'team',
  model: SMOLLM2,
};
