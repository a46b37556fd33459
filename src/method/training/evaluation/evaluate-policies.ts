import type { AgentEvaluation, EvaluationEvent } from '../../../base/events.js';
import { type Price, playedTokens, priced } from '../../../base/host.js';
import { mean } from '../../../base/math.js';
import { agentReward, type Episode, type EpisodeGroup, isUnscored, responseTokens } from '../../../base/nouns.js';
import { BENCHMARK } from '../../../teams/tasks.js';
import { failureText } from '../play/common-failure.js';
import { evaluationTasks } from '../play/step-tasks.js';
import { agentPartMeans, namedMeans } from '../record/named-means.js';
import type { OpenRun, Playing, RunLog } from '../run/run-state.js';
import { intervalOf, scoresOf } from './evaluation-scores.js';
import { divided, divisions } from './slices.js';

export interface EvaluationRequest {
  readonly step: number;
  readonly tasks: number;
  readonly samples: number;
  /** The confidence level of the intervals. */
  readonly level: number;
  /** Fields of tasks. The scores are also divided by them. */
  readonly by?: readonly string[] | undefined;
  /** The prices of agents' tokens. Agents without a price are missing. */
  readonly prices?: Readonly<Record<string, Price>>;
}

/** The parts of a run that evaluate its models. */
export type EvaluatedRun = Playing & Pick<OpenRun, 'evaluation' | 'prices'>;

/** Plays held-out tasks with the weights that the sampler holds. It changes no weights and writes nothing. */
export async function playEvaluation(
  { team, evaluation, prices, tasks, executor, host: { clock, signal } }: EvaluatedRun,
  request: Omit<EvaluationRequest, 'by' | 'prices'>,
): Promise<{ readonly event: EvaluationEvent; readonly episodes: readonly Episode[] }> {
  const started = clock.seconds();
  const groups = await executor.playGroups({
    team,
    tasks: evaluationTasks(tasks.test, request.tasks),
    groupSize: request.samples,
    phase: 'evaluation',
    step: request.step,
    signal,
  });
  const by = divisions({ evaluation }, tasks.test);
  const event = evaluationEvent(groups, { ...request, by, prices }, clock.seconds() - started);
  return { event, episodes: groups.flatMap(({ episodes }) => episodes) };
}

/** The position of a run: the last complete step, and the last evaluated step (-1 for none). */
interface EvaluationProgress {
  readonly step: number;
  evaluated: number;
}

/** Whether to evaluate: at the start, at the end and every N steps, once each. */
export function evaluationDue(
  { training, evaluation }: Pick<OpenRun, 'training' | 'evaluation'>,
  { step, evaluated }: Readonly<EvaluationProgress>,
): boolean {
  return evaluated < step && (step === 0 || step >= training.steps || step % evaluation.every === 0);
}

/** Evaluates at the run's step with the settings of the run. Writes each episode, then the event. */
export async function evaluatePolicies(run: EvaluatedRun, progress: EvaluationProgress, log: RunLog): Promise<void> {
  const { step } = progress;
  const { tasks, samples, samplesDuring = samples, level } = run.evaluation;
  const between = step > 0 && step < run.training.steps;
  const { event, episodes } = await playEvaluation(run, {
    step,
    tasks,
    samples: between ? samplesDuring : samples,
    level,
  });
  await log.writeEvaluationEpisodes(step, episodes);
  const failures = episodes.flatMap(({ failure }) => failure ?? []);
  const [first] = failures;
  if (first !== undefined) {
    const message = `${failures.length} of ${episodes.length} evaluation episodes failed, the first because: ${failureText(first)}`;
    log.emit({ type: 'warning', code: 'evaluation.failures', message });
  }
  log.emit(event);
  progress.evaluated = step;
}

/**
 * The event of an evaluation. An episode whose reward failed has no score: it is left out of all means, and counted in
 * `unscored`. Other failed episodes count as unsolved.
 */
export function evaluationEvent(
  played: readonly EpisodeGroup[],
  { step, samples, level, by = [], prices = {} }: EvaluationRequest,
  seconds: number,
): EvaluationEvent {
  const groups = scoredGroups(played);
  const slices = Object.fromEntries(
    by.map((field) => {
      const parts = [...divided(groups, field)].map(([value, part]) => [value, scoresOf(part, level)] as const);
      return [field, Object.fromEntries(parts)] as const;
    }),
  );
  const ofBenchmarks = Object.values(slices[BENCHMARK] ?? {});
  const episodes = groups.flatMap((group) => group.episodes);
  const all = played.flatMap((group) => group.episodes);
  const unscored = all.filter(isUnscored).length;
  const failed = all.filter(({ failure }) => failure !== undefined).length - unscored;
  const rewards = groups.map(({ episodes }) => mean(episodes.map(({ score }) => score.team)));
  const agents = agentEvaluations(played, groups, level, prices);
  const costs = Object.values(agents).flatMap(({ cost }) => cost ?? []);
  return {
    type: 'evaluation',
    step,
    split: 'test',
    samples,
    ...(failed === 0 ? {} : { failed }),
    ...(unscored === 0 ? {} : { unscored, episodes: all.length }),
    ...scoresOf(groups, level),
    reward: mean(rewards),
    rewardInterval: intervalOf(rewards, level),
    ...namedMeans(episodes),
    agents,
    ...(costs.length > 0 && { cost: costs.reduce((sum, cost) => sum + cost, 0) }),
    ...(by.length > 0 && { slices }),
    ...(ofBenchmarks.length > 0 && {
      benchmarkMean: {
        averageAtK: mean(ofBenchmarks.map(({ averageAtK }) => averageAtK)),
        passAtK: mean(ofBenchmarks.map(({ passAtK }) => passAtK)),
        majorityAtK: mean(ofBenchmarks.map(({ majorityAtK }) => majorityAtK)),
      },
    }),
    seconds,
  };
}

/** The groups without episodes that have no score; if no episode has one, the groups as they are. */
function scoredGroups(played: readonly EpisodeGroup[]): readonly EpisodeGroup[] {
  const scored = played
    .map(({ task, episodes }) => ({ task, episodes: episodes.filter((episode) => !isUnscored(episode)) }))
    .filter(({ episodes }) => episodes.length > 0);
  return scored.length === 0 ? played : scored;
}

/** @param played All groups, whose turns are counted @param groups The groups whose rewards are averaged */
function agentEvaluations(
  played: readonly EpisodeGroup[],
  groups: readonly EpisodeGroup[],
  level: number,
  prices: Readonly<Record<string, Price>>,
): Record<string, AgentEvaluation> {
  const episodes = played.flatMap((group) => group.episodes);
  const turns = episodes.flatMap((episode) => episode.turns);
  const agents = [...new Set(turns.map(({ agent }) => agent))].sort();
  return Object.fromEntries(
    agents.map((agent) => {
      const ofAgent = turns.filter((turn) => turn.agent === agent);
      const rewards = groups.map((group) => mean(group.episodes.map((episode) => agentReward(episode, agent))));
      return [
        agent,
        {
          turns: ofAgent.length,
          callsPerEpisode: ofAgent.length / Math.max(1, episodes.length),
          invalid: mean(ofAgent.map(({ valid }) => (valid ? 0 : 1))),
          responseTokens: mean(ofAgent.map(responseTokens)),
          ...priced(playedTokens(ofAgent), prices[agent]),
          reward: mean(rewards),
          rewardInterval: intervalOf(rewards, level),
          ...agentPartMeans(episodes, agent),
        },
      ];
    }),
  );
}
