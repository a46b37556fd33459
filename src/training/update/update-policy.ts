/** The update of one policy: epochs of mini-batches, each with a gradient and a step of the optimiser. */
import type { ForwardBackwardResult } from '../../contract/handles.js';
import type { OptimStepResult } from '../../contract/optimizer-settings.js';
import type { TrainingSample } from '../../core/sample.js';
import { mean } from '../../core/statistics.js';
import type { SampleRatios } from '../../loss/objective/objective.js';
import type { ForwardBackwardOptions } from '../../loss/objective/objective-options.js';
import type { Recipe } from '../../recipe/recipe.js';
import { keepsEpisodes } from '../kept-episodes.js';
import { backendNamed, type Progress, policyNamed, type TrainingRun } from '../run-state.js';
import { stalenessOf } from '../step/rollouts-ahead.js';
import { agreementOf } from './agreement.js';
import { stepsAhead } from './critics.js';
import { klTerm } from './kl-penalty.js';
import { updatesOf } from './mini-batches.js';
import { objectiveOptions, withProximal } from './policy-objective.js';
import { type AgentUpdate, LOSS_TERMS, largestNorm, outcomeOf, type PolicyUpdate } from './update-result.js';

/** The result of the update with one mini-batch. */
interface MiniBatchUpdate {
  readonly gradients: readonly {
    readonly agent: string;
    readonly samples: readonly TrainingSample[];
    readonly result: ForwardBackwardResult;
  }[];
  readonly optimStep: OptimStepResult;
}

/** A policy's update, with what the last pass that used a sample made of its tokens, where that is kept. */
export interface SampledUpdate {
  readonly update: PolicyUpdate;
  readonly ratios: SampleRatios;
}

/** Updates a policy with the samples of a step and hands its new weights to the sampler. */
export async function updatePolicy(
  run: TrainingRun,
  progress: Progress,
  step: number,
  policy: string,
  played: readonly TrainingSample[],
): Promise<SampledUpdate> {
  const { recipe } = run;
  const handle = policyNamed(run, policy);
  const samples = await withProximal(recipe, policy, handle, played);
  const settings = settingsOf(recipe, policy);
  const ahead = stepsAhead(recipe, policy);
  const position = { step: step - ahead, steps: recipe.training.steps - ahead };
  const keyOf = (epoch: number) => [recipe.seed, step, epoch, policy];
  const options = keepsEpisodes(recipe, step) ? { keepRatios: true } : {};
  const updates: MiniBatchUpdate[] = [];
  let lastRate = settings.optimizer.learningRate;
  for (const { batch, learningRate } of updatesOf(samples, settings, position, keyOf)) {
    updates.push(await updateOnMiniBatch(run, progress, policy, batch, learningRate, options));
    lastRate = learningRate;
  }
  await handle.publish(stalenessOf(recipe) + 1);
  const ratios = new Map(
    updates.flatMap(({ gradients }) =>
      gradients.flatMap(({ samples: sent, result }) => sent.map((sample, i) => [sample, result.ratios?.[i]] as const)),
    ),
  );
  return { update: policyUpdate(updates, lastRate), ratios: samples.map((sample) => ratios.get(sample)) };
}

async function updateOnMiniBatch(
  run: TrainingRun,
  { watch, kl }: Progress,
  policy: string,
  batch: readonly TrainingSample[],
  learningRate: number,
  kept: Pick<ForwardBackwardOptions, 'keepRatios'>,
): Promise<MiniBatchUpdate> {
  const { recipe } = run;
  const handle = policyNamed(run, policy);
  const { optimizer, clipNorm } = settingsOf(recipe, policy);
  const skipAboveNorm =
    backendNamed(run, policy).capabilities.gradientNorms === 'before-update' ? watch.skipAboveNorm(policy) : undefined;
  const agents = [...new Set(batch.map(({ agent }) => agent))];
  // Submitted one after the other without waiting: the engine takes them in order while others are prepared.
  const parts = agents.map((agent) => ({ agent, samples: batch.filter((sample) => sample.agent === agent) }));
  const submitted = parts.map(({ agent, samples }) =>
    handle.forwardBackward(samples, {
      ...objectiveOptions(recipe, policy, batch, agent),
      ...klTerm(recipe, kl, policy),
      ...kept,
    }),
  );
  const stepped = handle.optimStep({
    optimizer: { ...optimizer, learningRate },
    clipNorm,
    ...(skipAboveNorm === undefined ? {} : { skipAboveNorm }),
  });
  const [results, optimStep] = await Promise.all([Promise.all(submitted), stepped]);
  return {
    gradients: parts.map((part, k) => ({ ...part, result: results[k] as ForwardBackwardResult })),
    optimStep,
  };
}

const settingsOf = (recipe: Recipe, policy: string) => recipe.policies[policy] as Recipe['policies'][string];

function policyUpdate(updates: readonly MiniBatchUpdate[], learningRate: number): PolicyUpdate {
  const gradients = updates.flatMap((update) => update.gradients);
  const steps = updates.map(({ optimStep }) => optimStep);
  const names = [...new Set(gradients.map(({ agent }) => agent))];
  const agreement = agreementOf(updates);
  const agents = names.map((name) => {
    const part = agentUpdate(gradients.filter(({ agent }) => agent === name).map(({ result }) => result));
    const update = agreement === undefined ? part : { ...part, agreement };
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

/** The mean of norms; undefined where one of them was not told. */
function meanNorm(norms: readonly (number | undefined)[]): number | undefined {
  const numbers = norms.filter((norm) => norm !== undefined);
  return numbers.length < norms.length ? undefined : mean(numbers);
}

/** An agent's part in the updates, averaged over them. */
function agentUpdate(results: readonly ForwardBackwardResult[]): AgentUpdate {
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
