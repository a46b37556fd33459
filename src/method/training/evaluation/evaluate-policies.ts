import type { AgentEvaluation, EvaluationEvent, EvaluationScores, Interval } from '@drmas/engine/events';
import { meanResponseTokens, type Price, playedTokens, priced } from '@drmas/engine/host';
import { largest, mean } from '@drmas/engine/math';
import {
  agentReward,
  contentText,
  type Episode,
  type EpisodeGroup,
  fieldText,
  isUnscored,
  scoredGroups,
  successOf,
  type TaskSet,
} from '@drmas/engine/nouns';
import { BENCHMARK, bestAtK, bootstrapInterval, scoreInterval } from '../../../teams/tasks.js';
import { failureText } from '../play/failures.js';
import { evaluationTasks } from '../play/step-tasks.js';
import { agentPartMeans, namedMeans } from '../record/recorder.js';
import type { OpenRun, Playing, RunLog } from '../run/run-state.js';
import type { Progress } from '../state/progress.js';
import { endsAfter } from '../state/stop-rules.js';

interface EvaluationRequest {
  readonly step: number;
  readonly tasks: number;
  readonly samples: number;
  readonly level: number;
  /** Fields of tasks. The scores are also divided by them. */
  readonly by?: readonly string[] | undefined;
  readonly prices?: Readonly<Record<string, Price>>;
}

type EvaluatedRun = Playing & Pick<OpenRun, 'evaluation' | 'prices'>;

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

type EvaluationProgress = Pick<Progress, 'step' | 'evaluated' | 'stops'>;

/** Whether to evaluate: at the start, at the end and every N steps, once each. */
export function evaluationDue(
  { training, evaluation }: Pick<OpenRun, 'training' | 'evaluation'>,
  progress: Readonly<EvaluationProgress>,
): boolean {
  const { step, evaluated } = progress;
  return evaluated < step && (step === 0 || endsAfter(training, progress) || step % evaluation.every === 0);
}

/** Evaluates at the run's step with the settings of the run. Writes each episode, then the event. */
export async function evaluatePolicies(run: EvaluatedRun, progress: EvaluationProgress, log: RunLog): Promise<void> {
  const { step } = progress;
  const { tasks, samples, samplesDuring = samples, level } = run.evaluation;
  const between = step > 0 && !endsAfter(run.training, progress);
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
  for (const news of progress.stops.afterEvaluation(event)) log.emit(news);
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
    tasks: groups.length,
    ...(groups.length === 0 ? {} : { ...scoresOf(groups, level), ...rewardOf(rewards, level) }),
    ...namedMeans(groups.map(({ episodes }) => episodes)),
    agents,
    ...(costs.length > 0 && { cost: costs.reduce((sum, cost) => sum + cost, 0) }),
    ...(by.length > 0 && groups.length > 0 && { slices }),
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

/** @param played All groups, whose turns are counted @param groups The groups whose rewards are averaged */
function agentEvaluations(
  played: readonly EpisodeGroup[],
  groups: readonly EpisodeGroup[],
  level: number,
  prices: Readonly<Record<string, Price>>,
): Record<string, AgentEvaluation> {
  const episodes = played.flatMap((group) => group.episodes);
  const scoredByTask = groups.map((group) => group.episodes);
  const turns = episodes.flatMap((episode) => episode.turns);
  const agents = [...new Set(turns.map(({ agent }) => agent))].sort();
  return Object.fromEntries(
    agents.map((agent) => {
      const ofAgent = turns.filter((turn) => turn.agent === agent);
      const rewards = scoredByTask.map((ofTask) => mean(ofTask.map((episode) => agentReward(episode, agent))));
      return [
        agent,
        {
          turns: ofAgent.length,
          callsPerEpisode: ofAgent.length / Math.max(1, episodes.length),
          invalid: mean(ofAgent.map(({ valid }) => (valid ? 0 : 1))),
          ...meanResponseTokens(ofAgent),
          ...priced(playedTokens(ofAgent), prices[agent]),
          ...rewardOf(rewards, level),
          ...agentPartMeans(scoredByTask, agent),
        },
      ];
    }),
  );
}

// The scores of a team on held-out tasks: avg@k, pass@k, maj@k, each with an interval over tasks.

/** Number of resamples of the bootstrap; its seed is fixed, so that equal scores have equal intervals. */
const RESAMPLES = 2000;

/** The scores of groups. A failed episode counts as 0, because the team has not solved the task. */
function scoresOf(groups: readonly EpisodeGroup[], level: number): EvaluationScores {
  const scores = groups.map(({ episodes }) => episodes.map(successOf));
  const average = scores.map((ofTask) => mean(ofTask));
  const best = scores.map(largest);
  const majority = groups.map(({ episodes }) => majorityScore(episodes));
  return {
    tasks: groups.length,
    averageAtK: mean(average),
    passAtK: mean(best),
    majorityAtK: mean(majority),
    interval: { ...intervalOf(average, level, scoreInterval), level },
    passInterval: intervalOf(best, level, scoreInterval),
    majorityInterval: intervalOf(majority, level, scoreInterval),
    passAt: passAt(scores),
  };
}

const rewardOf = (perTask: readonly number[], level: number) =>
  perTask.length === 0 ? {} : { reward: mean(perTask), rewardInterval: intervalOf(perTask, level, bootstrapInterval) };

function intervalOf(perTask: readonly number[], level: number, method: typeof scoreInterval): Interval {
  const { low, high } = method(perTask, { level, resamples: RESAMPLES, seed: 0 });
  return { low, high };
}

/** Estimates pass@k for k = 1, 2, 4 ... up to the samples a task, each without bias from all samples. */
function passAt(scores: readonly (readonly number[])[]): Record<string, number> {
  const samples = scores.reduce((least, { length }) => Math.min(least, length), Number.POSITIVE_INFINITY);
  const estimates: Record<string, number> = {};
  for (let k = 1; k <= samples; k *= 2) estimates[k] = mean(scores.map((ofTask) => bestAtK(ofTask, k)));
  return estimates;
}

/**
 * The mean success of the episodes with the most frequent answer; among equally frequent answers, the first. Equal
 * answers may differ in success, which can depend on more than the answer. An episode without an answer, or with
 * `null`, has no vote.
 */
function majorityScore(episodes: readonly Episode[]): number {
  const votes = new Map<string, number[]>();
  for (const episode of episodes) {
    const answer = answerOf(episode.outcome);
    if (answer === undefined) continue;
    const scores = votes.get(answer) ?? [];
    scores.push(successOf(episode));
    votes.set(answer, scores);
  }
  let most: readonly number[] = [];
  for (const scores of votes.values()) if (scores.length > most.length) most = scores;
  return mean(most);
}

/**
 * The outcome's field `answer`, if it has one: then the other fields do not matter. Otherwise the whole outcome.
 */
function answerOf(outcome: unknown): string | undefined {
  const answer = typeof outcome === 'object' && outcome !== null && 'answer' in outcome ? outcome.answer : outcome;
  return answer === null ? undefined : contentText(answer);
}

/** The slice of the tasks that lack a field of other tasks. */
const WITHOUT = '(none)';

/** The fields by which a run's evaluations are divided. Several benchmarks are always divided. */
function divisions({ evaluation }: Pick<OpenRun, 'evaluation'>, test: TaskSet): readonly string[] {
  const { by = [] } = evaluation;
  return test.parts === undefined || by.includes(BENCHMARK) ? by : [BENCHMARK, ...by];
}

/** Divides groups by the text of a field of their tasks, in numeric and alphabetical order. */
function divided(groups: readonly EpisodeGroup[], field: string): ReadonlyMap<string, readonly EpisodeGroup[]> {
  const parts = new Map<string, EpisodeGroup[]>();
  for (const group of groups) {
    const name = fieldText(group.task, field) ?? WITHOUT;
    parts.set(name, [...(parts.get(name) ?? []), group]);
  }
  if (field === BENCHMARK) return parts; // in the recipe's order
  const byName = new Intl.Collator('en', { numeric: true }).compare;
  return new Map([...parts].sort(([a], [b]) => byName(a, b)));
}
