/**
 * Which episode taught this? A step of a run is learnt from once more without one of its causes at a time, and the
 * answers that the team gives after the step are scored under both weights.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineDevice } from '@drmas/engine/contract';
import { RunError } from '@drmas/engine/errors';
import type { Step } from '@drmas/engine/events';
import type { PlayProgress } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { type Episode, type EpisodeGroup, successOf, withoutUnscored } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { loadCheckpoint, openTraining } from '../../src/method/checkpoints.js';
import { type Played, type Progress, playEvaluation, playStep, type TrainingRun } from '../../src/method/index.js';
import type { Recipe, RecipeDefinition } from '../../src/method/recipe.js';
import { type Checkpoint, RunDirectory } from '../../src/method/store.js';
import { resumeRun } from '../../src/runs/run/execute/resume-run.js';
import { startingWeights } from '../../src/runs/run/execute/starting-weights.js';
import { openRun, publishAll } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { requireSameData } from '../../src/runs/run/request/continuation.js';
import { functionsListener } from '../../src/runs/run/run-listeners.js';
import { type Answer, answersOf, countedAnswers, logprobOf, type PolicyAnswers, taskNamed } from './answers.js';
import { guessedEffects } from './guess.js';
import { keepState, learnAgain, type ReplayedStep, replayStep, requestReplay } from './replay.js';

/** The options of `why`. */
export interface WhyOptions {
  /** The step in question; by default the last one. */
  readonly step?: number | undefined;
  /** The step after which the answers are given; by default the step in question. */
  readonly until?: number | undefined;
  /** The agent in question; by default each that learns. */
  readonly agent?: string | undefined;
  /** The text of the answers in question; by default whatever they say. */
  readonly answer?: string | undefined;
  /** The id of the task in question; by default the held-out tasks of an evaluation. */
  readonly task?: string | undefined;
  /** Held-out tasks, and episodes of each task; by default the recipe's numbers. */
  readonly tasks?: number | undefined;
  readonly samples?: number | undefined;
  /** The groups that are left out one by one: those with the largest guesses. By default 4. */
  readonly verify?: number | undefined;
  /** Whether the episodes of the first of these groups are left out one by one too. */
  readonly episodes?: boolean | undefined;
  /** The type of an estimator that learns from the step instead of the recipe's. */
  readonly estimator?: string | undefined;
  readonly recipe?: string | RecipeDefinition | undefined;
  readonly acceptChanges?: boolean | undefined;
  readonly device?: EngineDevice | undefined;
  readonly threads?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onNotice?: ((message: string) => void) | undefined;
  readonly onProgress?: (progress: PlayProgress) => void;
}

/** The measures of the team after the step: with all that it learnt, or without one of its causes. */
export interface Effects {
  /** The mean log-prob of the answers in question, in nats. */
  readonly logprob: number;
  /** The mean score of the held-out tasks. */
  readonly score: number;
}

/** A part of a step that may have taught the answers. */
export interface Cause {
  readonly kind: 'group' | 'episode' | 'agent' | 'estimator';
  /** The task of a group, `task/sample` of an episode, or the name of the agent or the estimator. */
  readonly name: string;
  /** The mean reward of its episodes. */
  readonly reward?: number;
  readonly episodes?: number;
  /** Its share of the guessed effects, from -1 to 1. */
  readonly guess?: number;
  /**
   * How much more likely it made the answers, in nats: their mean log-prob with it minus their mean log-prob without
   * it. Absent for causes that were only guessed.
   */
  readonly taught?: number;
  /** The score with it minus the score without it. */
  readonly scored?: number;
}

/** The answer to "which episode taught this?". */
export interface Why {
  readonly step: number;
  readonly until: number;
  /** The step of the checkpoint that the replay began with; 0 for the beginning of the run. */
  readonly from: number;
  /** Whether the replayed step has the numbers that the run's log has of it. */
  readonly equal: boolean;
  readonly answers: readonly Answer[];
  readonly before: Effects;
  readonly after: Effects;
  /** The groups, first those that taught the answers most; then the groups that were only guessed. */
  readonly groups: readonly Cause[];
  readonly episodes: readonly Cause[];
  readonly agents: readonly Cause[];
  readonly estimator?: Cause;
}

const VERIFIED = 4;

/**
 * Replays a step of a run, and learns from it again without each of its causes. Writes nothing into the run.
 * @throws RunError for a step that the run has not made or whose replay is not known to be exact; otherwise as `resume`
 */
export async function why(path: string, given: WhyOptions): Promise<Why> {
  const { device, threads, signal, onNotice: notify } = given;
  const host = nodeHost({ device, threads, signal, notify, listener: functionsListener(given) });
  const logged = await stepsOf(path);
  const options = { ...given, ...askedSteps(path, logged, given) };
  const { run: log, recipe, checkpoint } = await requestReplay(path, options);
  const other = options.estimator === undefined ? undefined : await otherEstimator(path, options, options.estimator);
  const tasks = await prepareTasks(recipe, undefined, host);
  await requireSameData(log, tasks, options.acceptChanges);
  const { run, progress } = await openAt(recipe, { tasks, log, host, checkpoint, options });
  const folder = await mkdtemp(join(tmpdir(), 'drmas-why-'));
  try {
    requireExact(run);
    while (progress.step < options.step - 1) await replayStep(run, progress);
    const isThere = checkpoint !== undefined && checkpoint.step === progress.step;
    const state = isThere ? checkpoint : await keepState(run, progress, folder);
    const question = new Question(run, state, options);
    return await question.answer(checkpoint?.step ?? 0, logged.get(options.step) as Step, other);
  } finally {
    await run.dispose();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The step events of a run, by step. @throws RunError if there is no run */
async function stepsOf(path: string): Promise<ReadonlyMap<number, Step>> {
  const events = await (await RunDirectory.open(path)).events();
  return new Map(events.flatMap((event) => (event.type === 'step' ? [[event.step, event] as const] : [])));
}

/** The step in question and the last step to replay. @throws RunError for steps that the run has not made */
function askedSteps(
  path: string,
  logged: ReadonlyMap<number, Step>,
  { step: asked, until: end }: WhyOptions,
): { readonly step: number; readonly until: number } {
  const last = Math.max(0, ...logged.keys());
  if (last === 0) throw new RunError(`${path} has learnt from no step yet`);
  const step = asked ?? last;
  const until = end ?? step;
  for (const each of [step, until])
    if (!logged.has(each)) throw new RunError(`${path} has no step ${each}; it has made the steps 1 to ${last}`);
  if (until < step) throw new RunError(`--until ${until} comes before --step ${step}`);
  return { step, until };
}

/** The options, with the steps that they mean. */
type AskedOptions = WhyOptions & ReturnType<typeof askedSteps>;

/** The estimator of the recipe with another type. @throws RecipeError if the recipe cannot have it */
async function otherEstimator(path: string, options: AskedOptions, type: string) {
  const { recipe } = await requestReplay(path, { ...options, set: [`advantage.type=${type}`] });
  return { type, estimator: recipe.estimator };
}

interface Opening {
  readonly tasks: Awaited<ReturnType<typeof prepareTasks>>;
  readonly log: RunDirectory;
  readonly host: ReturnType<typeof nodeHost>;
  readonly checkpoint: Checkpoint | undefined;
  readonly options: AskedOptions;
}

/** Opens the run in the state of a checkpoint, or as it began. */
async function openAt(
  recipe: Recipe,
  { tasks, log, host, checkpoint, options }: Opening,
): Promise<{ readonly run: TrainingRun; readonly progress: Progress }> {
  if (checkpoint !== undefined) return resumeRun({ recipe, tasks, log, host }, checkpoint, options.acceptChanges);
  const opened = await openRun(recipe, tasks, host);
  try {
    const { progress } = await startingWeights(opened, recipe.warmStart, {});
    const run = await openTraining(opened, {});
    await publishAll(run);
    return { run, progress };
  } catch (error) {
    await opened.dispose();
    throw error;
  }
}

/** @throws RunError if the steps of a run cannot be learnt from a second time */
function requireExact({ staleness, learners }: TrainingRun): void {
  if (staleness > 0)
    throw new RunError('this run plays steps ahead (rollout.staleness), so one of its steps cannot be replayed alone');
  if (learners.some(({ critic }) => critic !== undefined))
    throw new RunError("this run has critics, whose state a replay cannot restore; 'why' needs an estimator without");
}

/** A question about a step, in a run whose models have the state before the step. */
class Question {
  readonly #run: TrainingRun;
  readonly #state: Checkpoint;
  readonly #options: AskedOptions;

  constructor(run: TrainingRun, state: Checkpoint, options: AskedOptions) {
    this.#run = run;
    this.#state = state;
    this.#options = options;
  }

  async answer(
    from: number,
    logged: Step,
    other: Awaited<ReturnType<typeof otherEstimator>> | undefined,
  ): Promise<Why> {
    const { step, until, task, verify = VERIFIED } = this.#options;
    const run = this.#run;
    const progress = await this.#restore();
    const played = await playStep(run, progress);
    const replayed = await learnAgain(run, progress, played);
    await this.#goOn(run, progress);
    const evaluated = await this.#evaluated();
    const groups = task === undefined ? evaluated : await this.#episodesOf(task, played);
    const answers = answersOf(run, groups, this.#options);
    const after = await this.#effects(answers, evaluated);

    await this.#restore();
    const before = await this.#effects(answers);
    const guesses = await guessedEffects(run, replayed.learnt, answers, () => this.#restore());

    const learning = (changed: Played, by: TrainingRun = run) => this.#effectsOf(by, changed, answers);
    const measured = async (cause: Cause, effects: Promise<Effects>): Promise<Cause> => {
      const { logprob, score } = await effects;
      return { ...cause, taught: after.logprob - logprob, scored: after.score - score };
    };
    const causes = guessedGroups(played.kept, guesses);
    const chosen = causes.length < 2 ? [] : causes.slice(0, verify);
    const verified: { readonly cause: Cause; readonly group: EpisodeGroup }[] = [];
    for (const { cause, group } of chosen) {
      const effects = learning({ ...played, kept: played.kept.filter((each) => each !== group) });
      verified.push({ cause: await measured(cause, effects), group });
    }
    verified.sort((a, b) => byTaught(a.cause, b.cause));
    const first = verified[0]?.group ?? causes[0]?.group;
    const episodes: Cause[] = [];
    if (this.#options.episodes === true && first !== undefined && first.episodes.length > 1)
      for (const episode of first.episodes)
        episodes.push(await measured(episodeCause(episode), learning(withoutEpisode(played, first, episode))));
    const names = run.learners.flatMap(({ agents }) => Object.keys(agents));
    const agents: Cause[] = [];
    if (names.length > 1)
      for (const name of names)
        agents.push(await measured({ kind: 'agent', name }, learning(played, withoutAgent(run, name))));
    const estimator =
      other === undefined
        ? undefined
        : await measured(
            { kind: 'estimator', name: other.type },
            learning(played, { ...run, estimator: other.estimator }),
          );
    return {
      ...{
        step,
        until,
        from,
        equal: isEqual(logged, replayed),
        answers: countedAnswers(groups, answers),
        before,
        after,
      },
      groups: [...verified.map(({ cause }) => cause), ...causes.slice(chosen.length).map(({ cause }) => cause)],
      episodes: episodes.sort(byTaught),
      agents: agents.sort(byTaught),
      ...(estimator === undefined ? {} : { estimator }),
    };
  }

  /** Puts the models back into the state before the step, ready to play and to learn. */
  async #restore(): Promise<Progress> {
    const progress = await loadCheckpoint(this.#run, this.#state, { optimizer: true });
    await publishAll(this.#run);
    return progress;
  }

  /** The effects of learning from another form of the step, or in another way. */
  async #effectsOf(run: TrainingRun, played: Played, answers: readonly PolicyAnswers[]): Promise<Effects> {
    const progress = await this.#restore();
    await learnAgain(run, progress, played);
    await this.#goOn(this.#run, progress);
    return this.#effects(answers);
  }

  async #goOn(run: TrainingRun, progress: Progress): Promise<void> {
    const { until } = this.#options;
    while (progress.step < until) await replayStep(run, progress);
  }

  /** @param evaluated The episodes of the held-out tasks under the current weights, if they were played */
  async #effects(answers: readonly PolicyAnswers[], evaluated?: readonly EpisodeGroup[]): Promise<Effects> {
    const logprob = await logprobOf(this.#run, answers);
    const episodes = withoutUnscored(evaluated ?? (await this.#evaluated())).flatMap((group) => group.episodes);
    return { logprob, score: mean(episodes.map(successOf)) };
  }

  /** The episodes of the held-out tasks under the current weights. */
  async #evaluated(): Promise<EpisodeGroup[]> {
    const { tasks, samples, level } = this.#run.evaluation;
    const { until } = this.#options;
    const { episodes } = await playEvaluation(this.#run, { step: until, tasks, samples, level });
    return episodes.map((episode) => ({ task: episode.task, episodes: [episode] }));
  }

  /** Episodes of the task in question under the current weights. */
  #episodesOf(id: string, played: Played): Promise<EpisodeGroup[]> {
    const { until, samples } = this.#options;
    const { team, executor, tasks, evaluation, host } = this.#run;
    const ofStep = played.all.map(({ task }) => task);
    return executor.playGroups({
      team,
      tasks: [taskNamed(id, ofStep, tasks)],
      groupSize: samples ?? Math.max(8, evaluation.samples),
      phase: 'evaluation',
      step: until,
      signal: host.signal,
    });
  }
}

/** The groups of a step with their guesses; first those that made the answers more likely. */
function guessedGroups(groups: readonly EpisodeGroup[], guesses: ReadonlyMap<Episode, number>) {
  const sums = groups.map(({ episodes }) => episodes.reduce((sum, episode) => sum + (guesses.get(episode) ?? 0), 0));
  const all = sums.reduce((sum, value) => sum + Math.abs(value), 0);
  return groups
    .map((group, i) => {
      const { task, episodes } = group;
      const reward = mean(withoutUnscored([group]).flatMap((scored) => scored.episodes.map(({ score }) => score.team)));
      const guess = all === 0 ? 0 : (sums[i] as number) / all;
      const cause: Cause = { kind: 'group', name: task.id, reward, episodes: episodes.length, guess };
      return { cause, group };
    })
    .sort((a, b) => (b.cause.guess ?? 0) - (a.cause.guess ?? 0));
}

const episodeCause = ({ task, sample, score }: Episode): Cause => ({
  kind: 'episode',
  name: `${task.id}/${sample}`,
  reward: score.team,
});

function withoutEpisode(played: Played, group: EpisodeGroup, left: Episode): Played {
  const episodes = group.episodes.filter((episode) => episode !== left);
  return { ...played, kept: played.kept.map((each) => (each === group ? { ...group, episodes } : each)) };
}

/** The run, but nothing is learnt from the turns of an agent. Their rewards still count in the statistics of others. */
function withoutAgent(run: TrainingRun, name: string): TrainingRun {
  const learners = run.learners.map((learner) => ({
    ...learner,
    turns: (groups: readonly EpisodeGroup[]) => learner.turns(groups).filter(([turn]) => turn?.agent !== name),
  }));
  return { ...run, learners };
}

/** First what made the answers more likely, last what made them less likely. */
const byTaught = (a: Cause, b: Cause) => (b.taught ?? 0) - (a.taught ?? 0);

/** Whether the replayed step has the same rewards, gradients and tokens as the step in the log. */
function isEqual(logged: Step, { event }: ReplayedStep): boolean {
  const numbers = ({ reward, agents }: Step) => JSON.stringify([reward, agents]);
  return numbers(logged) === numbers(JSON.parse(JSON.stringify(event)) as Step);
}
