/** The cells of the benchmark: which there are, and how one is computed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DrmasError, messageOf } from '@drmas/engine/errors';
import { type EvaluationEvent, train } from 'drmas';
import { z } from 'zod';
import { defineEstimator, type OpenEstimator, openEstimator } from '../../src/method/advantage.js';
import { standard } from '../../src/runs/composition.js';
import { decisionFamilies } from './decisions.js';
import { creditScore, knownSignals, type Played, playStage, STAGES, type Stage } from './direct-credit.js';
import { assignment, type Family, families } from './families.js';
import { creditRecipe } from './recipe.js';
import type { Cell, CreditResult, TrainingResult } from './results.js';

/** The learning rate of all estimators: plain GRPO learns more at it than at 1e-3, on seed 901 of two families. */
export const LEARNING_RATE = 3e-3;

/** A baseline that does not depend on the rewards, for the part `baseline`. Without a spread, as its rivals there. */
const constant = defineEstimator({
  type: 'constant',
  schema: { baseline: z.number().describe('The number that is subtracted from each reward.') },
  source: 'CreditBench',
  formula: 'r - `baseline`',
  use: 'to compare levels of a baseline',
  compute: (batch, { baseline }) => batch.rewards.map((reward) => reward - baseline),
});
const known = [...standard.estimators, constant];

export const OWN_MEAN = 'drmas,spread=none';
export const EPISODES_MEAN = 'dr-grpo';
/** Levels of the baseline: numbers, the mean of the agent's own turns, and the mean of the team's episodes. */
export const LEVELS = [
  'constant,baseline=0',
  'constant,baseline=0.5',
  'constant,baseline=1',
  OWN_MEAN,
  EPISODES_MEAN,
] as const;
/** The family of the part `baseline`. */
export const RARE_CALLER = 'rare-caller';
/** The expert's success before reinforcement. */
export const STARTS = [1 / 12, 1 / 4, 1 / 2, 3 / 4] as const;

/** The cells of the part `baseline`: in the family of the rare caller, each level of the baseline at each start. */
export const baselineCells = (seeds: readonly number[]): Cell[] =>
  seeds.flatMap((seed) =>
    STARTS.flatMap((start) =>
      LEVELS.map((estimator) => {
        const { id, knob } = familyOf(RARE_CALLER);
        return { family: id, estimator, seed, difficulty: knob.usual, start };
      }),
    ),
  );

/** Two disjoint sets of ten seeds, which nothing else uses. */
export const SEEDS: readonly number[] = Array.from({ length: 20 }, (_, i) => 11 + i);

/** Registered estimators that are left out: `partition` is the general form of others. */
const LEFT_OUT = ['partition'];
/** Choices of estimators that are measured beside the defaults. */
const CHOSEN = ['rloo,byAgent=true', 'gigpo,byAgent=true', 'drmas,spread=none', 'gae,across=episode'];

/** All estimators of the benchmark: the registered ones with their defaults but for groups of one, and some choices. */
export const estimatorNames: readonly string[] = [
  ...standard.estimators.map(({ type }) => type).filter((type) => !LEFT_OUT.includes(type)),
  ...CHOSEN,
];

/**
 * The setting `advantage` of a name such as `rloo,byAgent=true`. A group of one has advantage 0, as it had by default
 * when the benchmark was declared.
 */
function advantageOf(name: string): { readonly type: string } & Readonly<Record<string, unknown>> {
  const [type = '', ...choices] = name.split(',');
  const declared = known.find((estimator) => estimator.type === type);
  const singleton = declared !== undefined && 'singleton' in declared.schema.shape ? { singleton: 'zero' } : {};
  const chosen = choices.map((choice) => [choice.split('=')[0], parsedChoice(choice)]);
  return { type, ...singleton, ...Object.fromEntries(chosen) };
}

function parsedChoice(choice: string): unknown {
  const text = choice.slice(choice.indexOf('=') + 1);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @throws ArgumentError for an estimator that is not registered, or a choice out of range */
export const openNamed = (name: string): OpenEstimator => openEstimator(advantageOf(name), known);

const allFamilies = [...families, ...decisionFamilies];

/** @throws RangeError naming the families that there are */
export function familyOf(id: string): Family {
  const family = allFamilies.find((one) => one.id === id);
  if (family === undefined)
    throw new RangeError(`there is no family '${id}'; there are ${allFamilies.map((one) => one.id).join(', ')}`);
  return family;
}

/** The origin of a result, but for the time that it took. */
export interface Maker {
  readonly commit: string;
}

const originOf = ({ commit }: Maker, started: number) => ({
  commit,
  node: process.versions.node,
  seconds: Math.round((performance.now() - started) / 100) / 10,
});

/** Scores an estimator. `episodes` keeps the episodes of one family and seed for the next estimator. */
export function creditCell(cell: Cell, maker: Maker, episodes: Map<string, Played[]>): CreditResult {
  const started = performance.now();
  const estimator = openNamed(cell.estimator);
  const { needs } = estimator.traits;
  if (needs !== undefined && !knownSignals.includes(needs))
    return { ...cell, stages: {}, refused: `it needs ${needs}`, origin: originOf(maker, started) };
  const family = familyOf(cell.family);
  const of = (stage: Stage) => {
    const key = `${cell.family} ${cell.seed} ${cell.difficulty} ${stage} ${needs ?? ''}`;
    const known = episodes.get(key) ?? playStage(family, { ...cell, stage }, needs);
    episodes.set(key, known);
    return creditScore(known, estimator);
  };
  try {
    const stages = Object.fromEntries((Object.keys(STAGES) as Stage[]).map((stage) => [stage, of(stage)]));
    return { ...cell, stages, origin: originOf(maker, started) };
  } catch (error) {
    if (!(error instanceof DrmasError)) throw error;
    return { ...cell, stages: {}, refused: messageOf(error), origin: originOf(maker, started) };
  }
}

/** Trains a family with an estimator and a fixed budget. @throws the signal's reason when interrupted */
export async function trainingCell(
  cell: Cell,
  maker: Maker,
  signal: AbortSignal,
  learningRate = LEARNING_RATE,
): Promise<TrainingResult> {
  const started = performance.now();
  process.env.DRMAS_KERNELS = 'native-avx2'; // equal bits on all machines that have it
  const usual = familyOf(cell.family);
  const family = cell.start === undefined ? usual : { ...usual, start: { ...usual.start, expert: cell.start } };
  const folder = await mkdtemp(join(tmpdir(), 'creditbench-'));
  const advantage = Object.entries(advantageOf(cell.estimator)).map(([key, value]) => `advantage.${key}=${value}`);
  const policies = [...new Set(Object.values(assignment(family, cell.difficulty)))];
  const rates = policies.map((policy) => `policies.${policy}.optimizer.learningRate=${learningRate}`);
  const result = { ...cell, learningRate, kernels: '', curve: [] };
  try {
    const { events } = await train(creditRecipe(family, cell.difficulty, [constant]), {
      run: join(folder, 'run'),
      seed: cell.seed,
      threads: 1,
      signal,
      set: [...advantage, ...rates, `warmStart.seed=${cell.seed}`],
    });
    const evaluations = events.filter((event): event is typeof event & EvaluationEvent => event.type === 'evaluation');
    const kernels = events.flatMap((event) =>
      event.type === 'run.started' ? [`${event.hardware.kernels} ${event.hardware.isa}`] : [],
    );
    const curve = evaluations.flatMap(({ averageAtK }) => averageAtK ?? []);
    return { ...result, kernels: kernels[0] ?? '', curve, origin: originOf(maker, started) };
  } catch (error) {
    if (signal.aborted || !(error instanceof DrmasError)) throw error;
    return { ...result, refused: messageOf(error), origin: originOf(maker, started) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
