/** Critics: what they say of turns, what they learn from them, where they lie in a checkpoint. */
import { join } from 'node:path';
import { needOf } from '../../advantage/estimators/index.js';
import type { CriticBackend } from '../../contract/backend.js';
import type { Turn } from '../../core/episode.js';
import { BackendError } from '../../core/errors.js';
import type { PolicyStep } from '../../core/events.js';
import type { ValueSample } from '../../core/sample.js';
import { mean, standardDeviation } from '../../core/statistics.js';
import type { CriticSettings } from '../../recipe/learning.js';
import type { Recipe } from '../../recipe/recipe.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import type { Stage } from '../session.js';
import type { ComparedTurn } from '../step/advantages.js';
import { learningRateAt } from './learning-rate.js';
import { miniBatchesOf } from './mini-batches.js';
import { scoreTurns, trainingSample } from './training-samples.js';

/** Returns that differ by less are the same, and there is nothing to explain. */
const LEAST_SPREAD = 1e-6;

/** Of a policy's directory in a checkpoint; no policy can have this name. */
const directoryOf = (checkpoint: string, policy: string) => join(checkpoint, `${policy}.critic`);

/** The critic of each policy, by its name, where the estimator uses them. */
function criticsOf({ advantage, policies }: Recipe): [policy: string, settings: CriticSettings][] {
  if (needOf(advantage) !== 'values') return [];
  return Object.entries(policies).flatMap(([policy, { critic }]) => (critic === undefined ? [] : [[policy, critic]]));
}

function backendOf({ backend }: Pick<Stage, 'backend'>): CriticBackend {
  if (backend.critics === undefined) throw new BackendError('the backend has no critics');
  return backend.critics;
}

/** Gives every policy its critic, with the policy's weights as its trunk, or as a checkpoint left it. @throws CheckpointError */
export async function openCritics(
  stage: Pick<Stage, 'recipe' | 'backend'>,
  checkpoint: Checkpoint | undefined,
): Promise<void> {
  for (const [policy] of criticsOf(stage.recipe)) {
    await backendOf(stage).create(policy, policy);
    if (checkpoint !== undefined) await backendOf(stage).load(policy, directoryOf(checkpoint.directory, policy));
  }
}

/** Writes the critics into a checkpoint's directory. */
export async function saveCritics(
  stage: Pick<Stage, 'recipe' | 'backend' | 'files'>,
  checkpoint: string,
): Promise<void> {
  for (const [policy] of criticsOf(stage.recipe)) {
    const own = directoryOf(checkpoint, policy);
    await stage.files.makeDirectory(own);
    await backendOf(stage).save(policy, own);
  }
}

/** The value of each response token [R] of the turns of policies with a critic. */
export async function valuesOf(
  stage: Pick<Stage, 'recipe' | 'backend'>,
  turns: readonly Turn[],
): Promise<Map<Turn, Float32Array>> {
  const valued = await Promise.all(
    criticsOf(stage.recipe).map(([policy]) => {
      const own = turns.filter((turn) => turn.policy === policy);
      return scoreTurns(own, (samples) => backendOf(stage).values(policy, samples));
    }),
  );
  return new Map(valued.flatMap((each) => [...each]));
}

/** Steps at the beginning in which a policy waits for its critic; 0 without one. */
export function stepsAhead(recipe: Recipe, policy: string): number {
  return criticsOf(recipe).find(([name]) => name === policy)?.[1].aheadSteps ?? 0;
}

/** What an update of a critic did. */
export type CriticUpdate = NonNullable<PolicyStep['critic']>;

/** One update (or several epochs and mini-batches) of a policy's critic; undefined where the policy has none. */
export async function updateCritic(
  stage: Pick<Stage, 'recipe' | 'backend'>,
  step: number,
  policy: string,
  turns: readonly ComparedTurn[],
  values: ReadonlyMap<Turn, Float32Array>,
): Promise<CriticUpdate | undefined> {
  const { recipe } = stage;
  const settings = criticsOf(recipe).find(([name]) => name === policy)?.[1];
  if (settings === undefined) return undefined;
  const { optimizer, warmupSteps, schedule, clipNorm, epochs, miniBatches, clip } = settings;
  const critics = backendOf(stage);
  const samples = turns.map((turn) => valueSample(turn, values.get(turn.turn)));
  const rates = { learningRate: optimizer.learningRate, warmupSteps, schedule };
  const total = recipe.training.steps * epochs * miniBatches;
  const done: { loss: number; clipFraction: number; gradientNorm: number; learningRate: number }[] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const batches = miniBatchesOf(samples, miniBatches, ['critic', recipe.seed, step, epoch, policy]);
    for (const [i, batch] of batches.entries()) {
      const learningRate = learningRateAt(rates, ((step - 1) * epochs + epoch) * miniBatches + i + 1, total);
      const normalizer = batch.reduce((sum, { mask }) => sum + mask.reduce((n, written) => n + written, 0), 0);
      const learnt = critics.forwardBackward(policy, batch, { clip, normalizer });
      const stepped = critics.optimStep(policy, { optimizer: { ...optimizer, learningRate }, clipNorm });
      const [{ loss, clipFraction }, { gradientNorm }] = await Promise.all([learnt, stepped]);
      done.push({ loss, clipFraction, gradientNorm, learningRate });
    }
  }
  return {
    loss: mean(done.map(({ loss }) => loss)),
    clipFraction: mean(done.map(({ clipFraction }) => clipFraction)),
    gradientNorm: Math.max(...done.map(({ gradientNorm }) => gradientNorm)),
    learningRate: done.at(-1)?.learningRate ?? 0,
    explainedVariance: explainedVariance(turns, values),
  };
}

function valueSample({ turn, returns = [] }: ComparedTurn, values: Float32Array = new Float32Array()): ValueSample {
  const { tokens, mask } = trainingSample(turn, 0);
  const row = (numbers: ArrayLike<number>) => {
    const all = new Float32Array(tokens.length);
    all.set(numbers, turn.prompt.length);
    return all;
  };
  return { tokens, mask, oldValues: row(values), returns: row(returns) };
}

/** 1 - Var(return - value) / Var(return) over tokens: 1 where the critic knew, 0 where it knew no more than the mean. */
function explainedVariance(turns: readonly ComparedTurn[], values: ReadonlyMap<Turn, Float32Array>): number {
  const returns = turns.flatMap((turn) => turn.returns ?? []);
  const errors = turns.flatMap(({ turn, returns: own = [] }) =>
    own.map((each, t) => each - (values.get(turn)?.[t] ?? 0)),
  );
  const spread = standardDeviation(returns);
  return spread < LEAST_SPREAD ? 0 : 1 - (standardDeviation(errors) / spread) ** 2;
}
