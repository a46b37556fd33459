/** The regimes: teams with fixed settings. Their sizes keep a run at 10 to 40 seconds of one thread. */
import type { Regime } from '../harness/declaration.js';

const ESCALATION = 'findings/regimes/escalation';

/** The expert is called equally often per step for any frequency of its calls; the number of tasks differs instead. */
const EXPERT_CALLS_A_STEP = 64;
const GROUP_SIZE = 16;

export interface EscalationKnobs {
  readonly rare?: number;
  readonly common?: number;
  readonly tries?: number;
  readonly scale?: number;
  readonly zero?: number;
  readonly groupSize?: number;
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
 * An escalation regime (`findings/regimes/escalation.ts`). Its evaluation tickets are all rare, so the score is the
 * experts' success itself, for any share of training episodes that call them.
 */
export function escalation(id: string, knobs: EscalationKnobs = {}, dose?: Regime['dose']): Regime {
  const { rare = 0.25, groupSize = GROUP_SIZE, experts = 1, scale = 0, tries = 1, common = 1 } = knobs;
  const tasksPerStep = Math.round(EXPERT_CALLS_A_STEP / rare / groupSize);
  const { zero } = knobs;
  const moved = zero === undefined ? {} : { zero };
  const set = Object.entries({ rare, common, tries, scale, ...moved }).map(
    ([key, value]) => `tasks.train.${key}=${value}`,
  );
  return {
    id,
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
 * Learning rates, chosen on seeds 901 to 903, which nothing else uses. With AdamW: the rate at which `grpo`, the
 * baseline, ends highest. With SGD and N-PG-IGT `grpo` learns nothing at any rate, so each side has its own best rate.
 * `npm run check -- findings` compares them with the results of the sweeps as soon as these are present.
 */
export const RATES = {
  escalation: 1e-3,
  sgd: { grpo: 0.1, drmas: 0.3 },
  nigt: { grpo: 0.01, drmas: 0.02 },
} as const;

/** Seeds of the sweeps over learning rates. */
export const SWEEP_SEEDS: readonly number[] = [901, 902, 903];

/** Seeds of the runs that measure the lemma's factor. */
export const LEMMA_SEEDS: readonly number[] = [41, 42, 43];

/** The twenty pairs of the league, which nothing else uses. */
export const LEAGUE_SEEDS: readonly number[] = Array.from({ length: 20 }, (_, index) => 51 + index);

/** The recipe `repair` with another share of episodes in which the commands have been renamed. */
export const repair = (drift: number): Regime => ({
  id: `repair-${String(drift).slice(2)}`,
  recipe: 'repair',
  set: [`tasks.train.drift=${drift}`, `tasks.test.drift=${drift}`, 'training.keepEpisodes=false'],
  policies: [],
  agent: 'fixer',
  score: 'team',
  closedForm: { groupSize: 16 },
  dose: { label: `drift ${drift}`, value: drift },
});

/** A recipe that ships, with its learning rates. */
export const shipped = (recipe: string, agent: string): Regime => ({
  id: recipe,
  recipe,
  set: ['training.keepEpisodes=false'],
  policies: [],
  agent,
  score: 'team',
  dose: { label: recipe, value: 0 },
});

/** The recipe `words` on a pretrained model, with 48 steps (findings/plans/words.md). */
export const words: Regime = {
  id: 'words',
  recipe: 'words',
  set: ['training.steps=48', 'evaluation.every=12', 'training.keepEpisodes=false'],
  policies: [],
  agent: 'fixer',
  score: 'team',
  model: 'runs/models/smollm2-135m-instruct.gguf',
  dose: { label: 'words', value: 0 },
};
