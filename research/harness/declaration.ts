/** How a question declares its runs: regimes, variants of the learning in each, and the seeds that pair them. */
import { shellWord } from '@drmas/engine/host';

/** A team with fixed settings, in which variants are compared. */
export interface Regime {
  /** The name of its folder among the results. */
  readonly id: string;
  /** The name of its file of results. Default: its id, without a number at the end. */
  readonly family?: string;
  /** A recipe that ships, by its name, or a file, relative to the repository. */
  readonly recipe: string;
  /** Overrides as on the command line. */
  readonly set: readonly string[];
  /** The policies whose learning rate is set; empty to keep the recipe's rates. */
  readonly policies: readonly string[];
  readonly learningRate?: number;
  /** The agent whose inflation, norms and invalid outputs the tables show. */
  readonly agent: string;
  /** The name of this agent in tables. Default: `agent`. */
  readonly agentName?: string;
  /** The score: the team's avg@k, or the agent's reward in the same evaluation. */
  readonly score: 'team' | 'agent';
  /**
   * The size of a group, if rewards are 0 or 1 and an episode calls the agent at most once. The tables then show the
   * inflation in closed form beside the probe's.
   */
  readonly closedForm?: { readonly groupSize: number };
  /**
   * The place in the repository at which a run finds SmolLM2-135M-Instruct, if the regime trains it. All runs then
   * share the warm start of the recipe's seed, if it has one.
   */
  readonly model?: string;
  /** Whether a result keeps the gradient norm of the regime's agent at every step. */
  readonly keepsNorms?: true;
  /** The setting that differs between the regimes of a part, for its tables. */
  readonly dose?: { readonly label: string; readonly value: number };
}

/** A way of learning. */
export interface Variant {
  /** The name of its folder among a regime's results. */
  readonly id: string;
  /** In place of the regime's. */
  readonly recipe?: string;
  /** Overrides as on the command line. */
  readonly set: readonly string[];
  /** In place of the regime's. */
  readonly learningRate?: number;
  /** Whether the warm start has the seed of the run, in a regime with one warm start for all runs. */
  readonly ownWarmStart?: true;
  /** Replaces the regime's assignment, if the variant assigns policies differently. */
  readonly policies?: readonly string[];
}

/** Variants that are compared in one or several regimes. A run that two parts share is made once. */
export interface Part {
  readonly id: string;
  readonly title: string;
  readonly regimes: readonly Regime[];
  readonly variants: readonly Variant[];
  /** The variant that the others are compared with. */
  readonly baseline: string;
  /** One pair each; the warm start has the same seed. */
  readonly seeds: readonly number[];
  /** The figure: scores of `ownRates`, gain against own share, curves of evaluations, or norms. Default: none. */
  readonly figure?: 'arms' | 'dose' | 'curves' | 'norms';
  /** The success that runs are timed to, in place of scores. The part has one regime. */
  readonly waiting?: Waiting;
  /** Whether `drmas plan --play` runs before, with the baseline's estimator. */
  readonly probe?: true;
  /** The seeds of the probes, which are made before all runs. Default: one probe before each pair, with its seed. */
  readonly probeSeeds?: readonly number[];
  /** Whether the overlap of the agent's contexts is measured in each regime, with the part's seeds. */
  readonly overlap?: true;
  /** Whether weights stay as they are, so that the runs measure the signal and the noise of gradients. */
  readonly still?: true;
  /** Whether the reward of the regime's agent is compared beside the score. */
  readonly ownReward?: true;
  /**
   * A table in the order of the mean of all evaluations after the first. Each variant is compared with the baseline,
   * with Holm's adjustment over all of them. A difference is claimed once the part has this many pairs.
   */
  readonly ranked?: { readonly pairs: number };
  /** Arms that are compared at rates of their own, in place of variants and a baseline. The part has one regime. */
  readonly ownRates?: OwnRates;
}

/** Ways of learning, each at several rates; of these, the other half of the seeds chooses one (`own-rates.ts`). */
export interface OwnRates {
  readonly arms: readonly string[];
  readonly rates: readonly number[];
  /** The id of the variant of an arm at a rate. */
  variantAt(arm: string, rate: number): string;
  /** The comparisons that the plan declares, adjusted by Holm: the first arm minus the second. */
  readonly primary: readonly (readonly [string, string])[];
  /** Two arms count as equivalent if the interval of their difference lies within this share on both sides. */
  readonly equivalent: { readonly pair: readonly [string, string]; readonly within: number };
}

/** The success that the runs of a part are timed to. */
export interface Waiting {
  readonly score: number;
  /** The steps of a run that does not reach the score. */
  readonly most: number;
  /** The training episodes of a step. */
  readonly episodes: number;
  /** A variant catches up if this many of its runs reach the score. */
  readonly enough: number;
}

export interface Question {
  readonly id: string;
  /** The heading of its section in docs/research/experiments.md. Default: its id. */
  readonly heading?: string;
  readonly asks: string;
  readonly parts: readonly Part[];
}

/** The anchor of a question's section. */
export const anchorOf = ({ id, heading = id }: Question): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

/** A comparison that answers a question by itself. The page adjusts the p values of all of them for their number. */
export interface Primary {
  readonly question: string;
  readonly part: string;
  readonly regime: string;
  readonly variant: string;
  /** The variant to compare with. Default: the part's baseline. */
  readonly other?: string;
}

/** The fewest pairs on which a difference is claimed. */
export const PAIRS_FOR_A_CLAIM = 10;

/** Ten pairs, of seeds that neither the making of a regime nor the choice of a learning rate has seen. */
export const PAIRS: readonly number[] = Array.from({ length: PAIRS_FOR_A_CLAIM }, (_, i) => i + 11);

/** Ten pairs of further seeds, for questions that were declared after results with `PAIRS`. */
export const FRESH_PAIRS: readonly number[] = PAIRS.map((seed) => seed + 2 * PAIRS_FOR_A_CLAIM);

/** One execution: a training run, a probe of the initial policies, or a measurement of their overlap. */
export interface Job {
  readonly kind: 'train' | 'probe' | 'overlap';
  readonly regime: Regime;
  readonly variant: Variant;
  readonly seed: number;
}

/** The name of a job. A probe's and an overlap's kind stands in the variant's place. */
export const jobName = ({ kind, regime, variant, seed }: Job): string =>
  `${regime.id}/${kind === 'train' ? variant.id : kind}/seed-${seed}`;

/** A part's runs, pair by pair, so that a part that is cut short has whole pairs; probes before what they predict. */
export function jobsOf({ regimes, variants, baseline, seeds, probe, probeSeeds, overlap }: Part): Job[] {
  const before = (kind: 'probe' | 'overlap', regime: Regime, seed: number): Job[] =>
    variants.filter(({ id }) => id === baseline).map((variant) => ({ kind, regime, variant, seed }));
  const probes = (regime: Regime, seed: number) => (probe === true ? before('probe', regime, seed) : []);
  return [
    ...(probeSeeds ?? []).flatMap((seed) => regimes.flatMap((regime) => probes(regime, seed))),
    ...seeds.flatMap((seed) =>
      regimes.flatMap((regime): Job[] => [
        ...(probeSeeds === undefined ? probes(regime, seed) : []),
        ...(overlap === true ? before('overlap', regime, seed) : []),
        ...variants.map((variant) => ({ kind: 'train', regime, variant, seed }) as const),
      ]),
    ),
  ];
}

/** All overrides of a job but the seed of its run. */
function overridesOf({ regime, variant, seed }: Job): string[] {
  const learningRate = variant.learningRate ?? regime.learningRate;
  const policies = variant.policies ?? regime.policies;
  return [
    ...regime.set,
    ...variant.set,
    ...policies.map((policy) => `policies.${policy}.optimizer.learningRate=${learningRate}`),
    ...(regime.model === undefined || variant.ownWarmStart === true ? [`warmStart.seed=${seed}`] : []),
    ...(regime.model === undefined ? [] : [`model.base.path=${regime.model}`]),
  ];
}

const recipeOf = ({ regime, variant }: Job) => variant.recipe ?? regime.recipe;

/** The program that measures an overlap, relative to the repository. */
export const OVERLAP = 'research/harness/overlap.ts';

/** The first arguments of a job's program, by its kind. */
const TASKS: Readonly<Record<Job['kind'], (recipe: string) => string[]>> = {
  train: (recipe) => ['train', recipe],
  probe: (recipe) => ['plan', recipe, '--play'],
  overlap: (recipe) => [recipe],
};

/** The arguments of the job's program, which is `drmas` or `OVERLAP`; they determine its result bit for bit. */
export const commandOf = (job: Job): string[] => [
  ...TASKS[job.kind](recipeOf(job)),
  '--threads',
  '1',
  '--seed',
  String(job.seed),
  ...overridesOf(job).flatMap((override) => ['--set', override]),
];

/** A command as it is typed into a shell. */
export const shellText = (words: readonly string[]): string => words.map(shellWord).join(' ');
