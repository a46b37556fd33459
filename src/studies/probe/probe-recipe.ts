/** Plays what the first steps of a run would play, without training, and says what reinforcement has to work with. */
import type { Episode, EpisodeGroup } from '../../core/episode.js';
import { ArgumentError } from '../../core/errors.js';
import { EVENT_VERSION, type RunEvent, type Warmup } from '../../core/events.js';
import type { Recipe } from '../../recipe/recipe.js';
import { applyFailureRule } from '../../rollout/score.js';
import { type ExecutionOptions, publishAll, withDefaults } from '../../run/execute-run.js';
import { openStage, prepareTasks } from '../../run/open-run.js';
import type { Checkpoint } from '../../store/checkpoint-files.js';
import { type StoredEpisode, storedEpisode } from '../../store/episode-files.js';
import { commitsOf, loadCheckpoint } from '../../training/checkpoint.js';
import type { OpenedPolicies, Stage } from '../../training/session.js';
import { type Comparison, compare, type TurnExtras } from '../../training/step/advantages.js';
import { baselines } from '../../training/step/greedy-baselines.js';
import { playGreedy, playTasks } from '../../training/step/rollout-step.js';
import { tasksOfStep } from '../../training/step/step-tasks.js';
import { openCritics, updateCritic, valuesOf } from '../../training/update/critics.js';
import { objectiveOptions, withProximal } from '../../training/update/policy-objective.js';
import { trainingSample } from '../../training/update/training-samples.js';
import { warmStart } from '../../training/warm-start/warm-start.js';
import { agentUse, evaluationEpisodes, type TokenBudget, tokenBudget } from '../plan/token-budget.js';
import { type Advice, advise } from './probe-advice.js';
import { type ProbeFindings, probeFindings } from './probe-findings.js';

export interface ProbeOptions extends ExecutionOptions {
  /** Tasks to play, each `training.groupSize` times. */
  readonly tasks: number;
  /** Where the policies come from; otherwise the recipe's warm start, or their first weights. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Told of the warm start's progress. */
  readonly onWarmup?: (event: Warmup) => void;
}

/** What the whole run would take on this machine, from what the probe took. Seconds and bytes. */
export interface Projection {
  /** 0 where the warm start is in the cache already. */
  readonly warmStart: number;
  readonly rollout: number;
  readonly update: number;
  readonly evaluation: number;
  readonly total: number;
  /** Most that this process has held so far: the models, playing a step, and its backward pass. */
  readonly memory: number;
  /** As the episodes that were played took them. */
  readonly tokens: TokenBudget;
}

export interface ProbeReport extends ProbeFindings {
  readonly recipe: string;
  readonly start: 'checkpoint' | 'warm start' | 'first weights';
  /** Reinforcement has something to work with. */
  readonly worthwhile: boolean;
  readonly advice: readonly Advice[];
  readonly projection: Projection;
  /** The best, the worst, and one with an invalid output or of many turns; advantages are those of the recipe's estimator. */
  readonly examples: readonly StoredEpisode[];
}

/**
 * Probes a recipe. Nothing is written but the warm start's cache.
 * @throws ArgumentError, RecipeError, TaskError, CheckpointError when the request is wrong; the signal's reason when interrupted
 */
export async function probeRecipe(recipe: Recipe, options: ProbeOptions): Promise<ProbeReport> {
  if (!Number.isInteger(options.tasks) || options.tasks < 1)
    throw new ArgumentError(`tasks: expected at least 1, got ${options.tasks}`);
  const stageOptions = withDefaults(options);
  const commits = await commitsOf(stageOptions.files, options.checkpoint);
  const stage = await openStage(recipe, await prepareTasks(recipe), { ...stageOptions, commits });
  try {
    for (const { message } of stage.warnings) options.onNotice?.(message);
    const { start, seconds: warmStartSeconds } = await firstPolicies(stage, options);
    await openCritics(stage, options.checkpoint);
    await publishAll(stage);
    const { groups, extras, seconds: rollout } = await play(stage, options.tasks);
    const comparison = compare(
      applyFailureRule(groups, recipe.training.failedEpisodes),
      recipe.advantage,
      extras,
      recipe.agents,
    );
    const update = await updateSeconds(stage, groups, extras);
    const played = { ...comparison, episodes: groups.flatMap(({ episodes }) => episodes) };
    const findings = probeFindings(recipe, groups, played);
    const advice = advise(recipe, findings);
    return {
      recipe: recipe.name,
      start,
      ...findings,
      worthwhile: advice.every(({ weight }) => weight !== 'stops'),
      advice,
      projection: projection(recipe, played.episodes, { warmStart: warmStartSeconds, rollout, update }),
      examples: examples(played).map((episode) => storedEpisode(episode, comparison.advantages.get(episode))),
    };
  } finally {
    await stage.backend.dispose();
  }
}

/** Gives the policies the weights that reinforcement would begin with; says what that took. */
async function firstPolicies(
  stage: Stage & OpenedPolicies,
  { checkpoint, onNotice = () => {}, onWarmup }: ProbeOptions,
): Promise<{ readonly start: ProbeReport['start']; readonly seconds: number }> {
  const { recipe, clock } = stage;
  if (checkpoint !== undefined) {
    await loadCheckpoint(stage, checkpoint, { optimizer: false });
    return { start: 'checkpoint', seconds: 0 };
  }
  if (recipe.warmStart === undefined) return { start: 'first weights', seconds: 0 };
  let seconds = 0;
  const log = {
    emit(body: Warmup): RunEvent {
      seconds += body.seconds;
      onWarmup?.(body);
      return { ...body, time: clock.now().toISOString(), version: EVENT_VERSION };
    },
    write() {}, // a cached warm start's events: the run would not train it again either
  };
  await warmStart(stage, log as Parameters<typeof warmStart>[1], recipe.warmStart, onNotice);
  return { start: 'warm start', seconds };
}

interface Rollout {
  readonly groups: readonly EpisodeGroup[];
  readonly extras: TurnExtras;
  readonly seconds: number;
}

/** Plays the tasks of the first steps, as many at once as a step would; seconds a step, of the last whole one. */
async function play(stage: Stage, count: number): Promise<Rollout> {
  const { recipe, tasks, clock } = stage;
  const { tasksPerStep } = recipe.training;
  const groups: EpisodeGroup[] = [];
  const extras: TurnExtras[] = [];
  let seconds = 0;
  for (let step = 1; groups.length < count; step++) {
    const together = tasksOfStep(tasks.train, recipe.seed, step, tasksPerStep).slice(0, count - groups.length);
    const started = clock.seconds();
    const played = await playTasks(stage, step, together);
    const values = await valuesOf(stage, turnsOf(played));
    extras.push(
      baselines(played, await playGreedy(stage, step, played)),
      new Map(Array.from(values, ([turn, own]) => [turn, { values: Array.from(own) }])),
    );
    groups.push(...played);
    const taken = ((clock.seconds() - started) * tasksPerStep) / together.length;
    if (step === 1 || together.length === tasksPerStep) seconds = taken;
  }
  return { groups, extras: new Map(extras.flatMap((known) => [...known])), seconds };
}

const turnsOf = (groups: readonly EpisodeGroup[]) =>
  groups.flatMap(({ episodes }) => episodes).flatMap(({ turns }) => turns);

/** Seconds of one step's backward passes; the policies' weights stay as they are. */
async function updateSeconds(stage: Stage, groups: readonly EpisodeGroup[], extras: TurnExtras): Promise<number> {
  const { recipe, backend, clock } = stage;
  const { tasksPerStep, failedEpisodes } = recipe.training;
  const step = groups.slice(0, tasksPerStep);
  const { turns } = compare(applyFailureRule(step, failedEpisodes), recipe.advantage, extras, recipe.agents);
  const values = await valuesOf(stage, turnsOf(step));
  const started = clock.seconds();
  const passes = Object.entries(recipe.policies).map(async ([policy, { epochs }]) => {
    const own = turns.filter(({ turn }) => turn.policy === policy);
    if (own.length === 0) return 0;
    await updateCritic(stage, 1, policy, own, values);
    const played = own.map(({ turn, advantage }) => trainingSample(turn, advantage));
    const samples = await withProximal(recipe, backend, policy, played);
    await backend.forwardBackward(policy, samples, objectiveOptions(recipe, policy, samples));
    return epochs;
  });
  const epochs = Math.max(1, ...(await Promise.all(passes)));
  return (((clock.seconds() - started) * tasksPerStep) / step.length) * epochs;
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
function examples({ episodes }: Pick<Comparison, 'episodes'>): Episode[] {
  const byScore = [...episodes].sort((a, b) => b.score.team - a.score.team);
  const chosen = [...new Set([byScore[0], byScore.at(-1)])].filter((episode) => episode !== undefined);
  const shows = ({ failure, turns }: Episode) =>
    (failure ? 1e6 : 0) + (turns.some(({ valid }) => !valid) ? 1e3 : 0) + turns.length;
  const third = byScore.filter((episode) => !chosen.includes(episode)).sort((a, b) => shows(b) - shows(a))[0];
  return third === undefined ? chosen : [...chosen, third];
}
