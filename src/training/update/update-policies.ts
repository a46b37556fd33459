/** The update of a step: each policy learns from the turns of the agents that it speaks for. */
import type { ForwardBackwardResult } from '../../contract/handles.js';
import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import type { TrainingSample } from '../../core/sample.js';
import { mean } from '../../core/statistics.js';
import type { Recipe } from '../../recipe/recipe.js';
import { type Progress, policyNamed, type TrainingRun } from '../run-state.js';
import type { StepAdvantages, TurnAdvantage } from '../step/advantages.js';
import type { TurnScores } from '../step/turn-scores.js';
import { stepsAhead, updateCritic } from './critics.js';
import { klTerm, settleKl } from './kl-penalty.js';
import { decayAfterRise, learningRateAt } from './learning-rate.js';
import { miniBatchesOf } from './mini-batches.js';
import { objectiveOptions, withProximal } from './policy-objective.js';
import { trainingSample } from './training-samples.js';
import {
  type AgentUpdate,
  LOSS_TERMS,
  largestNorm,
  outcomeOf,
  type PolicyUpdate,
  type Updates,
} from './update-result.js';

/** The update of a policy that still waits for its critic. */
const NOTHING_LEARNT: PolicyUpdate = { gradientNorm: 0, learningRate: 0, outcome: 'applied', agents: {} };

/** One PPO update (or several epochs and mini-batches) of every policy; all policies are in flight together. */
export async function updatePolicies(
  run: TrainingRun,
  progress: Progress,
  step: number,
  scores: TurnScores,
  advantages: StepAdvantages,
): Promise<Updates> {
  const updates = await Promise.all(
    Array.from(scores.turns, async ([policy, turns]) => {
      if (turns.length === 0) return [];
      const learnt = turns.map((turn) => advantages.byTurn.get(turn) as TurnAdvantage);
      const critic = await updateCritic(run, step, policy, learnt, scores.values);
      const learn = async () => {
        if (step <= stepsAhead(run.recipe, policy)) return NOTHING_LEARNT;
        const inLoss = run.recipe.policies[policy]?.kl?.in === 'loss';
        const samples = learnt.map(({ turn, advantage }) =>
          trainingSample(turn, advantage, inLoss ? scores.referenceLogprobs.get(turn) : undefined),
        );
        const update = await updatePolicy(run, progress, step, policy, samples);
        return settleKl(progress.kl, policy, update, turns, scores.kl);
      };
      const update = await learn();
      return [[policy, critic === undefined ? update : { ...update, critic }] as const];
    }),
  );
  return Object.fromEntries(updates.flat());
}

async function updatePolicy(
  run: TrainingRun,
  { watch, kl }: Progress,
  step: number,
  policy: string,
  played: readonly TrainingSample[],
): Promise<PolicyUpdate> {
  const { recipe, backend } = run;
  const handle = policyNamed(run, policy);
  const samples = await withProximal(recipe, policy, handle, played);
  const { optimizer, warmupSteps, schedule, clipNorm, epochs, miniBatches } = recipe.policies[policy] as PolicySettings;
  const rates = { learningRate: optimizer.learningRate, warmupSteps, schedule };
  const ahead = stepsAhead(recipe, policy);
  const decay = decayAfterRise(rates, (recipe.training.steps - ahead) * epochs * miniBatches);
  const skipAboveNorm =
    backend.capabilities.gradientNorms === 'before-update' ? watch.skipAboveNorm(policy) : undefined;
  const parts: { agent: string; result: ForwardBackwardResult }[] = [];
  const steps: OptimStepResult[] = [];
  let learningRate = optimizer.learningRate;
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const [i, batch] of miniBatchesOf(samples, miniBatches, [recipe.seed, step, epoch, policy]).entries()) {
      const update = ((step - 1 - ahead) * epochs + epoch) * miniBatches + i + 1;
      learningRate = learningRateAt(rates, update, decay);
      const agents = [...new Set(batch.map(({ agent }) => agent))];
      // Submitted one after the other without waiting: the engine takes them in order while others are prepared.
      const submitted = agents.map((agent) =>
        handle.forwardBackward(
          batch.filter((sample) => sample.agent === agent),
          { ...objectiveOptions(recipe, policy, batch, agent), ...klTerm(recipe, kl, policy) },
        ),
      );
      const stepped = handle.optimStep({
        optimizer: { ...optimizer, learningRate },
        clipNorm,
        ...(skipAboveNorm === undefined ? {} : { skipAboveNorm }),
      });
      const [results, optimStep] = await Promise.all([Promise.all(submitted), stepped]);
      parts.push(...results.map((result, k) => ({ agent: agents[k] as string, result })));
      steps.push(optimStep);
    }
  }
  await handle.publish();
  const names = [...new Set(parts.map(({ agent }) => agent))];
  const agents = names.map((name) => {
    const update = averaged(parts.filter(({ agent }) => agent === name).map(({ result }) => result));
    if (names.length > 1 || update.gradientNorm !== undefined) return [name, update] as const;
    // A backend that tells the whole gradient's norm only has told this agent's, the only one that there is.
    return [name, { ...update, gradientNorm: meanNorm(steps.map(({ norm }) => norm)) }] as const;
  });
  return {
    gradientNorm: largestNorm(steps),
    learningRate,
    outcome: outcomeOf(steps),
    agents: Object.fromEntries(agents),
  };
}

/** Undefined where one of the norms was not told. */
function meanNorm(norms: readonly (number | undefined)[]): number | undefined {
  const numbers = norms.filter((norm) => norm !== undefined);
  return numbers.length < norms.length ? undefined : mean(numbers);
}

type PolicySettings = Recipe['policies'][string];

function averaged(results: readonly ForwardBackwardResult[]): AgentUpdate {
  const over = (pick: (result: ForwardBackwardResult) => number) => mean(results.map(pick));
  return {
    gradientNorm: meanNorm(results.map(({ gradientNorm }) => gradientNorm)),
    loss: over(({ loss }) => loss),
    entropy: over(({ metrics }) => metrics.entropy),
    clipFraction: over(({ metrics }) => metrics.clipFraction),
    kl: over(({ metrics }) => metrics.approxKl),
    maxRatioDeviation: results.reduce((most, { metrics }) => Math.max(most, metrics.maxRatioDeviation), 0),
    logprobGap: results[0]?.metrics.logprobGap ?? 0,
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
    ...Object.fromEntries(
      LOSS_TERMS.flatMap((name) => {
        const values = results.flatMap(({ metrics }) => metrics[name] ?? []);
        return values.length === 0 ? [] : [[name, mean(values)]];
      }),
    ),
  };
}
