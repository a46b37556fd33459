/** Plays what the first steps of a run would play, without training, and says what reinforcement has to work with. */
import { join } from 'node:path';
import type { Episode, EpisodeGroup, Turn } from '../../core/episode.js';
import { ArgumentError } from '../../core/errors.js';
import type { Files } from '../../core/files.js';
import type { Host } from '../../core/host.js';
import type { Recipe } from '../../recipe/recipe.js';
import { applyFailureRule } from '../../rollout/score.js';
import { openRun, prepareTasks, publishAll } from '../../run/open-run.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { type StoredEpisode, storedEpisode } from '../../store/episode-files.js';
import { REFERENCES } from '../../store/run-files.js';
import { commitsOf } from '../../training/checkpoint.js';
import type { Progress, TrainingRun } from '../../training/run-state.js';
import { measureInflation } from '../../training/stability/measured-inflation.js';
import { type EstimatorInputs, type StepAdvantages, stepAdvantages } from '../../training/step/advantages.js';
import { playBranches } from '../../training/step/branches.js';
import { playGreedy, playTasks } from '../../training/step/rollout-step.js';
import { tasksOfStep } from '../../training/step/step-tasks.js';
import { type TurnScores, turnScores } from '../../training/step/turn-scores.js';
import { openCritics, stepsAhead } from '../../training/update/critics.js';
import type { KlCoefficients } from '../../training/update/kl-penalty.js';
import { openReferences, type ReferenceStore } from '../../training/update/references.js';
import { updatePolicies } from '../../training/update/update-policies.js';
import { agentUse, evaluationEpisodes, type TokenBudget, tokenBudget } from '../plan/token-budget.js';
import { type Advice, advise } from './probe-advice.js';
import { type ProbeFindings, probeFindings } from './probe-findings.js';
import { type Start, type StartOptions, startingWeights } from './starting-weights.js';

export interface ProbeOptions extends StartOptions {
  /** Tasks to play, each `training.groupSize` times. */
  readonly tasks: number;
}

/** The cost of the whole run on this machine, in seconds and bytes, projected from that of the probe. */
export interface Projection {
  /** 0 where the warm start is in the cache already. */
  readonly warmStart: number;
  readonly rollout: number;
  readonly update: number;
  readonly evaluation: number;
  readonly total: number;
  /** Most that this process has held so far: the models, playing a step, and its backward pass. */
  readonly memory: number;
  /** Tokens of the run, projected from the episodes that were played. */
  readonly tokens: TokenBudget;
}

export interface ProbeReport extends ProbeFindings {
  readonly recipe: string;
  readonly start: Start['start'];
  /** Reinforcement has something to work with. */
  readonly worthwhile: boolean;
  readonly advice: readonly Advice[];
  readonly projection: Projection;
  /**
   * The best, the worst, and one with an invalid output or of many turns; advantages are those of the recipe's
   * estimator.
   */
  readonly examples: readonly StoredEpisode[];
}

/**
 * Probes a recipe. Nothing is written but the warm start's cache.
 * @throws ArgumentError, RecipeError, TaskError, CheckpointError when the request is wrong; the signal's reason when
 *   interrupted
 */
export async function probeRecipe(recipe: Recipe, host: Host, options: ProbeOptions): Promise<ProbeReport> {
  if (!Number.isInteger(options.tasks) || options.tasks < 1)
    throw new ArgumentError(`tasks: expected at least 1, got ${options.tasks}`);
  const { checkpoint } = options;
  const commits = await commitsOf(host.files, checkpoint);
  const run = await openRun(recipe, await prepareTasks(recipe), host, { commits });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { start, progress, seconds: warmStartSeconds } = await startingWeights(run, options);
    const training: TrainingRun = {
      ...run,
      references: await openReferences(run, await keptReferences(host.files, checkpoint)),
      critics: await openCritics(run, checkpoint),
    };
    await publishAll(run);
    const steps = await playSteps(training, progress.kl, options.tasks);
    const advantages = stepAdvantages(
      recipe,
      steps.flatMap(({ kept }) => kept),
      mergedInputs(steps),
    );
    const groups = steps.flatMap(({ all }) => all);
    const played = { ...advantages, episodes: groups.flatMap(({ episodes }) => episodes) };
    const measured = await measureInflation(training, 1, advantages);
    const findings = probeFindings(recipe, groups, played, measured);
    const advice = advise(recipe, findings);
    const seconds = { warmStart: warmStartSeconds, rollout: rolloutSeconds(steps, recipe) };
    const update = await updateSeconds(training, progress, steps);
    return {
      recipe: recipe.name,
      start,
      ...findings,
      worthwhile: advice.every(({ weight }) => weight !== 'stops'),
      advice,
      projection: projection(recipe, played.episodes, { ...seconds, update }),
      examples: examples(played).map((episode) => storedEpisode(episode, advantages.byEpisode.get(episode))),
    };
  } finally {
    await run.dispose();
  }
}

/** The warm-started references that the checkpoint's run keeps; without them the policies' first weights are copied. */
async function keptReferences(files: Files, checkpoint: Checkpoint | undefined): Promise<ReferenceStore | undefined> {
  if (checkpoint === undefined) return undefined;
  const directory = join(checkpoint.directory, '..', '..', REFERENCES);
  return (await files.exists(directory)) ? { directory, mode: 'read' } : undefined;
}

interface ProbedStep {
  /** Every group, failed episodes among them. */
  readonly all: readonly EpisodeGroup[];
  /** Every group as the rule about failed episodes leaves it. */
  readonly kept: readonly EpisodeGroup[];
  readonly scores: TurnScores;
  readonly seconds: number;
}

/** Plays the tasks of the first steps, as many at once as a step would, and scores their turns as a step does. */
async function playSteps(run: TrainingRun, coefficients: KlCoefficients, count: number): Promise<ProbedStep[]> {
  const { recipe, tasks, host } = run;
  const { tasksPerStep, failedEpisodes } = recipe.training;
  const steps: ProbedStep[] = [];
  for (let left = count; left > 0; ) {
    const step = steps.length + 1;
    const together = tasksOfStep(tasks.train, recipe.seed, step, tasksPerStep).slice(0, left);
    const started = host.clock.seconds();
    const all = await playTasks(run, step, together);
    const kept = applyFailureRule(all, failedEpisodes);
    const greedy = await playGreedy(run, step, kept);
    const branches = await playBranches(run, step, kept);
    const scores = await turnScores(run, coefficients, { kept, greedy, branches });
    steps.push({ all, kept, scores, seconds: host.clock.seconds() - started });
    left -= together.length;
  }
  return steps;
}

/** The estimator's inputs for the turns of all steps. */
function mergedInputs(steps: readonly ProbedStep[]): EstimatorInputs {
  const merged = <Value>(mapOf: (scores: TurnScores) => ReadonlyMap<Turn, Value> | undefined) =>
    new Map(steps.flatMap(({ scores }) => [...(mapOf(scores) ?? [])]));
  return {
    baselines: merged(({ baselines }) => baselines),
    tokenRewards: merged(({ tokenRewards }) => tokenRewards),
    values: merged(({ values }) => values),
  };
}

/** Seconds of a step's rollout: of the last step that played all of its tasks, else in proportion. */
function rolloutSeconds(steps: readonly ProbedStep[], { training: { tasksPerStep } }: Recipe): number {
  const step = steps.findLast(({ all }) => all.length === tasksPerStep) ?? steps[0];
  return step === undefined ? 0 : (step.seconds * tasksPerStep) / step.all.length;
}

/** Seconds of one step's update, which is made: nothing plays with these policies afterwards. */
async function updateSeconds(run: TrainingRun, progress: Progress, [first]: readonly ProbedStep[]): Promise<number> {
  if (first === undefined) return 0;
  const { recipe, host } = run;
  const advantages = stepAdvantages(recipe, first.kept, first.scores);
  const waiting = Object.keys(recipe.policies).map((policy) => stepsAhead(recipe, policy));
  const started = host.clock.seconds();
  await updatePolicies(run, progress, Math.max(...waiting) + 1, first.scores, advantages);
  return ((host.clock.seconds() - started) * recipe.training.tasksPerStep) / first.all.length;
}

function projection(
  recipe: Recipe,
  episodes: readonly Episode[],
  step: { readonly warmStart: number; readonly rollout: number; readonly update: number },
): Projection {
  const { steps, tasksPerStep, groupSize } = recipe.training;
  const parts = {
    warmStart: step.warmStart,
    rollout: step.rollout * steps,
    update: step.update * steps,
    evaluation: (step.rollout / (tasksPerStep * groupSize)) * evaluationEpisodes(recipe),
  };
  const total = parts.warmStart + parts.rollout + parts.update + parts.evaluation;
  const tokens = tokenBudget(recipe, agentUse(recipe, episodes));
  return { ...parts, total, memory: process.resourceUsage().maxRSS * 1024, tokens };
}

/** Three episodes that differ: the best, the worst, and the one of the others that shows most. */
function examples({ episodes }: Pick<StepAdvantages, 'episodes'>): Episode[] {
  const byScore = [...episodes].sort((a, b) => b.score.team - a.score.team);
  const chosen = [...new Set([byScore[0], byScore.at(-1)])].filter((episode) => episode !== undefined);
  const shows = ({ failure, turns }: Episode) =>
    (failure ? 1e6 : 0) + (turns.some(({ valid }) => !valid) ? 1e3 : 0) + turns.length;
  const third = byScore.filter((episode) => !chosen.includes(episode)).sort((a, b) => shows(b) - shows(a))[0];
  return third === undefined ? chosen : [...chosen, third];
}
