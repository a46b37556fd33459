import { z } from 'zod';
import { defineEstimator } from '../define-estimator.js';
import { parentsOf, statisticsOf } from '../groups.js';
import { divisorChoices, sharingChoices } from '../named-choices.js';
import type { TurnBatch } from '../turn-batch.js';

/**
 * Shrinkage baselines (Zeng et al. 2025, arXiv 2511.03710), made agent-wise. The baseline of a turn is the mean of the
 * agent's other turns of the task, shrunk towards the mean of its turns of the step's other tasks. Neither mean
 * contains the turn itself. The weight of the task's mean is tau² / (tau² + sigma² / (n - 1)). n is the number of the
 * agent's turns of the task, sigma² the variance of its rewards within a task, and tau² the variance between tasks.
 * Both come from the agent's turns of the step, by analysis of variance. So a large group is compared with itself, a
 * small one with the agent's turns of all tasks, and a group of one only with the turns of the other tasks.
 */
export const shrinkage = defineEstimator({
  type: 'shrinkage',
  schema: {
    spread: z
      .enum(['agent', 'none'])
      .default('agent')
      .describe("The divisor: the root mean square of the agent's differences in the step, or none."),
    ...divisorChoices,
    ...sharingChoices,
  },
  source: 'Zeng et al. 2025, arXiv 2511.03710, made agent-wise',
  formula:
    'd = r - (w m + (1 - w) M), divided by the root mean square of d over batch-agent + eps; m is the mean of the ' +
    "agent's other turns of the task, M the mean of its turns of other tasks, w = tau^2 / (tau^2 + sigma^2 / (n - 1)), " +
    'sigma^2 the variance of its rewards within tasks and tau^2 between tasks',
  use: 'small groups, and agents that are called rarely: a group of one needs no rule of its own',
  traits: { compared: 'on request', rival: 'drmas' },
  laws: ({ spread }) => ({ shift: ['reward'], takesScaleOut: spread !== 'none' }),
  unused: ({ spread }) => (spread === 'none' ? ['epsilon', 'minimumSpread'] : []),
  compute(batch, { spread }, settings) {
    const differences = differencesOf(batch);
    if (spread === 'none') return differences;
    const { of } = batch.agents;
    const squares = statisticsOf(
      batch.agents,
      differences.map((each) => each ** 2),
    ).mean;
    return differences.map((each, i) => {
      const scale = Math.sqrt(squares[of[i] as number] as number);
      return scale < settings.minimumSpread || scale === 0 ? 0 : each / (scale + settings.epsilon);
    });
  },
});

type Sizes = Pick<ReturnType<typeof statisticsOf>, 'size' | 'mean'>;

/** Each reward minus its baseline. 0 for the only turn of an agent. */
function differencesOf(batch: TurnBatch): Float64Array {
  const { taskAgents, agents, rewards } = batch;
  const { size, mean } = statisticsOf(taskAgents, rewards);
  const whole = statisticsOf(agents, rewards);
  const agentOf = parentsOf(taskAgents, agents).of;
  const { within, between } = variancesOf(batch, { size, mean, whole, agentOf });
  return rewards.map((reward, i) => {
    const g = taskAgents.of[i] as number;
    const k = agentOf[g] as number;
    const [n, all] = [size[g] as number, whole.size[k] as number];
    if (all === 1) return 0;
    // As distances from the means, so that equal rewards of any size have equal baselines.
    const [ofTask, ofAgent] = [mean[g] as number, whole.mean[k] as number];
    const siblings = n === 1 ? 0 : ofTask + (ofTask - reward) / (n - 1);
    const others = all === n ? 0 : ofAgent + ((ofAgent - ofTask) * n) / (all - n);
    const [tau2, error] = [between[k] as number, (within[k] as number) / (n - 1)];
    const weight = n === 1 ? 0 : all === n || error === 0 ? 1 : tau2 / (tau2 + error);
    return reward - (weight * siblings + (1 - weight) * others);
  });
}

/**
 * The variances of each agent's rewards within its tasks and between them: the estimates of a one-way analysis of
 * variance with groups of unequal size. 0 if there are too few turns.
 */
function variancesOf(
  { taskAgents, agents, rewards }: TurnBatch,
  { size, mean, whole, agentOf }: Sizes & { readonly whole: Sizes; readonly agentOf: ArrayLike<number> },
) {
  const perAgent = () => new Float64Array(agents.count);
  const [tasks, squaredSizes, insideTasks, betweenTasks] = [perAgent(), perAgent(), perAgent(), perAgent()];
  const add = (sums: Float64Array, k: number, value: number) => {
    sums[k] = (sums[k] as number) + value;
  };
  for (let g = 0; g < taskAgents.count; g++) {
    const [k, n] = [agentOf[g] as number, size[g] as number];
    add(tasks, k, 1);
    add(squaredSizes, k, n * n);
    add(betweenTasks, k, n * ((mean[g] as number) - (whole.mean[k] as number)) ** 2);
  }
  rewards.forEach((reward, i) => {
    const g = taskAgents.of[i] as number;
    add(insideTasks, agentOf[g] as number, (reward - (mean[g] as number)) ** 2);
  });
  const within = insideTasks.map((squares, k) => {
    const freedom = (whole.size[k] as number) - (tasks[k] as number);
    return freedom === 0 ? 0 : squares / freedom;
  });
  const between = betweenTasks.map((squares, k) => {
    const [all, count] = [whole.size[k] as number, tasks[k] as number];
    if (count === 1) return 0;
    return Math.max(0, (squares - (count - 1) * (within[k] as number)) / (all - (squaredSizes[k] as number) / all));
  });
  return { within, between };
}
