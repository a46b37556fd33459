/** Plays the first steps of a run without training, to find out whether reinforcement can learn from them. */
import { join } from 'node:path';
import { ArgumentError } from '@drmas/engine/errors';
import type { Files, Host } from '@drmas/engine/host';
import type { Episode } from '@drmas/engine/nouns';
import { commitsOf, openTraining } from '../../../../method/checkpoints.js';
import type { Played, Progress, ReferenceStore, StepAdvantages, TrainingRun } from '../../../../method/index.js';
import {
  estimateAdvantages,
  evaluatedTasks,
  learnStep,
  measureInflation,
  playStep,
  predictionsAfter,
  requireWorking,
  withoutWaiting,
} from '../../../../method/index.js';
import type { Recipe } from '../../../../method/recipe.js';
import { type Checkpoint, REFERENCES, type StoredEpisode, storedEpisode } from '../../../../method/store.js';
import { purposeOf } from '../../../run/checks/backend-checks.js';
import { type Start, type StartOptions, startingWeights } from '../../../run/execute/starting-weights.js';
import { openRun, publishAll } from '../../../run/open/open-run.js';
import { prepareTasks } from '../../../run/open/prepare-tasks.js';
import { type AgentUse, agentUse, evaluationEpisodes, type TokenBudget, tokenBudget } from '../token-budget.js';
import { type Advice, advise } from './probe-advice.js';
import { type ProbeFindings, probeFindings } from './probe-findings.js';

export interface ProbeOptions extends StartOptions {
  /** Tasks to play, each `training.groupSize` times. */
  readonly tasks: number;
}

/** How long a run takes on this machine, in seconds. Rollouts and updates alternate. */
export interface RunTime {
  readonly stepSeconds: number;
  /** All steps and evaluations, without the warm start. */
  readonly seconds: number;
}

/** The cost of the whole run on this machine, in seconds and bytes, projected from the probe's cost. */
export interface RunProjection {
  /** 0 if the warm start is already in the cache. */
  readonly warmStart: number;
  readonly rollout: number;
  readonly update: number;
  readonly evaluation: number;
  readonly total: number;
  /** The most bytes that this process has used so far: the models, playing a step, and its backward pass. */
  readonly memory: number;
  readonly time: RunTime;
  readonly use: Readonly<Record<string, AgentUse>>;
  readonly tokens: TokenBudget;
}

export interface ProbeReport extends ProbeFindings {
  readonly recipe: string;
  readonly start: Start['start'];
  /** True if reinforcement can learn from the episodes. */
  readonly worthwhile: boolean;
  readonly advice: readonly Advice[];
  readonly projection: RunProjection;
  /**
   * The best episode, the worst, and one with an invalid output or many turns. Advantages are by the recipe's
   * estimator.
   */
  readonly examples: readonly StoredEpisode[];
}

/**
 * Probes a recipe. Writes only the warm start's cache.
 * @throws ArgumentError, RecipeError, TaskError, CheckpointError if the request is wrong; the signal's reason if
 *   interrupted; TrainingError if all episodes failed for one reason, which is not their output
 */
export async function probeRecipe(recipe: Recipe, host: Host, options: ProbeOptions): Promise<ProbeReport> {
  if (!Number.isInteger(options.tasks) || options.tasks < 1)
    throw new ArgumentError(`tasks: expected at least 1, got ${options.tasks}`);
  const { checkpoint } = options;
  const commits = await commitsOf(host.files, checkpoint);
  const purpose = purposeOf(recipe);
  const tasks = await prepareTasks(recipe, purpose, { ...host, commits });
  const run = await openRun(recipe, tasks, host, { commits, purpose });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { start, progress, seconds: warmStartSeconds } = await startingWeights(run, recipe.warmStart, options);
    const store = await keptReferences(host.files, checkpoint);
    const training = withoutWaiting(await openTraining(run, { store, checkpoint }));
    await publishAll(run);
    const steps = await playSteps(training, progress, options.tasks);
    const all = joined(steps);
    requireWorking(all.all);
    const { advantages } = await estimateAdvantages(training, progress, all);
    const groups = all.all;
    const played = { ...advantages, episodes: groups.flatMap(({ episodes }) => episodes) };
    const measured = await measureInflation(training, all.step, advantages);
    const findings = probeFindings(recipe, groups, played, measured);
    const advice = advise(recipe, findings);
    const rollout = rolloutSeconds(steps, options.tasks, recipe);
    const update = await learningSeconds(training, progress, steps[0], options.tasks);
    const heldOut = evaluatedTasks(run.tasks.test, recipe.evaluation.tasks);
    return {
      recipe: recipe.name,
      start,
      ...findings,
      worthwhile: advice.every(({ weight }) => weight !== 'stops'),
      advice,
      projection: projection(recipe, heldOut, played.episodes, { warmStart: warmStartSeconds, rollout, update }),
      examples: examples(played).map((episode) => storedEpisode(episode, advantages.byEpisode.get(episode))),
    };
  } finally {
    await run.dispose();
  }
}

/** The stored warm-started references of the checkpoint's run. Without them the policies' first weights are copied. */
async function keptReferences(files: Files, checkpoint: Checkpoint | undefined): Promise<ReferenceStore | undefined> {
  if (checkpoint === undefined) return undefined;
  const directory = join(checkpoint.directory, '..', '..', REFERENCES);
  return (await files.exists(directory)) ? { directory, mode: 'read' } : undefined;
}

/** Plays the first steps of a run, with exactly this many tasks. So the last step may be played in part. */
async function playSteps(run: TrainingRun, { predictions: first }: Progress, count: number): Promise<Played[]> {
  const { tasksPerStep } = run.training;
  const steps: Played[] = [];
  let predictions = first;
  for (let left = count; left > 0; left -= tasksPerStep) {
    const played = await playStep(run, { step: steps.length, predictions }, { tasks: Math.min(left, tasksPerStep) });
    predictions = predictionsAfter(predictions, played.levels, run);
    steps.push(played);
  }
  return steps;
}

/** Joins the steps to one, with the number of the first. */
function joined(steps: readonly Played[]): Pick<Played, 'step' | 'all' | 'kept' | 'extra'> {
  return {
    step: 1,
    all: steps.flatMap(({ all }) => all),
    kept: steps.flatMap(({ kept }) => kept),
    extra: {
      episodes: steps.flatMap(({ extra }) => extra.episodes),
      byTurn: new Map(steps.flatMap(({ extra }) => [...extra.byTurn])),
    },
  };
}

interface RolloutSeconds {
  readonly step: number;
  readonly episode: number;
}

/** The seconds of a step's rollout, and of an episode in it: of the last complete step, else projected from a part. */
function rolloutSeconds(
  steps: readonly Played[],
  tasks: number,
  { training: { tasksPerStep } }: Recipe,
): RolloutSeconds {
  const whole = Math.floor(tasks / tasksPerStep);
  const step = steps[Math.max(0, whole - 1)];
  if (step === undefined) return { step: 0, episode: 0 };
  return {
    step: whole > 0 ? step.seconds : (step.seconds * tasksPerStep) / tasks,
    episode: step.seconds / wholeEpisodes(step),
  };
}

/** The number of episodes with as many calls as a step: also of those that a filter replaced, and of extra rollouts. */
function wholeEpisodes({ all, extra }: Pick<Played, 'all' | 'extra'>): number {
  const callsOf = (episodes: readonly Episode[]) => episodes.reduce((sum, { turns }) => sum + turns.length, 0);
  const episodes = all.flatMap((group) => group.episodes);
  return episodes.length * (1 + callsOf(extra.episodes) / Math.max(1, callsOf(episodes)));
}

/** The seconds of learning from a step. The update is really made, because these policies are not used afterwards. */
async function learningSeconds(
  run: TrainingRun,
  progress: Progress,
  first: Played | undefined,
  tasks: number,
): Promise<number> {
  if (first === undefined) return 0;
  const { tasksPerStep } = run.training;
  const { seconds } = await learnStep(run, progress, first);
  return ((seconds.advantage + seconds.update) * tasksPerStep) / Math.min(tasks, tasksPerStep);
}

/** @param heldOut The number of tasks in an evaluation */
function projection(
  recipe: Recipe,
  heldOut: number,
  episodes: readonly Episode[],
  step: { readonly warmStart: number; readonly rollout: RolloutSeconds; readonly update: number },
): RunProjection {
  const { steps } = recipe.training;
  const [rollout, update] = [step.rollout.step * steps, step.update * steps];
  const evaluation = step.rollout.episode * evaluationEpisodes(recipe, heldOut);
  const time = { stepSeconds: step.rollout.step + step.update, seconds: rollout + update + evaluation };
  const parts = { warmStart: step.warmStart, rollout, update, evaluation };
  const use = agentUse(recipe, episodes);
  const memory = process.resourceUsage().maxRSS * 1024;
  return {
    ...parts,
    total: step.warmStart + time.seconds,
    memory,
    time,
    use,
    tokens: tokenBudget(recipe, heldOut, use),
  };
}

/** Three different episodes: the best, the worst, and the most informative of the others. */
function examples({ episodes }: Pick<StepAdvantages, 'episodes'>): Episode[] {
  const byScore = [...episodes].sort((a, b) => b.score.team - a.score.team);
  const chosen = [...new Set([byScore[0], byScore.at(-1)])].filter((episode) => episode !== undefined);
  const shows = ({ failure, turns }: Episode) =>
    (failure ? 1e6 : 0) + (turns.some(({ valid }) => !valid) ? 1e3 : 0) + turns.length;
  const third = byScore.filter((episode) => !chosen.includes(episode)).sort((a, b) => shows(b) - shows(a))[0];
  return third === undefined ? chosen : [...chosen, third];
}
