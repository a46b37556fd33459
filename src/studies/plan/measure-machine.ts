/** How fast this machine plays and learns a recipe, measured within a minute. */
import pLimit from 'p-limit';
import type { Episode, EpisodeGroup } from '../../core/episode.js';
import type { Warmup } from '../../core/events.js';
import type { Host } from '../../core/host.js';
import { observersTogether } from '../../core/play/play-observer.js';
import type { Recipe } from '../../recipe/recipe.js';
import { applyFailureRule } from '../../rollout/score.js';
import { openRun, publishAll } from '../../run/open-run.js';
import type { Progress, Tasks, TrainingRun } from '../../training/run-state.js';
import { stepAdvantages } from '../../training/step/advantages.js';
import { playBranches } from '../../training/step/branches.js';
import { playGreedy, playTasks } from '../../training/step/rollout-step.js';
import { tasksOfStep } from '../../training/step/step-tasks.js';
import { turnScores } from '../../training/step/turn-scores.js';
import { openCritics, stepsAhead } from '../../training/update/critics.js';
import { openReferences } from '../../training/update/references.js';
import { updatePolicies } from '../../training/update/update-policies.js';
import { startingWeights } from '../probe/starting-weights.js';
import { fitSampling, playAlone, type TimedPlay } from './fit-sampling.js';
import type { Machine } from './machine.js';
import { RecordedPlays } from './recorded-plays.js';
import { type ScheduledEpisode, tokensOf } from './schedule.js';

export interface MeasureOptions {
  /** Seconds that playing and learning may take, about; a step that takes longer is played in part. */
  readonly seconds: number;
  /** Receives the warm start's events. */
  readonly onWarmup?: (event: Warmup) => void;
}

/** What was measured. */
export interface Measured {
  readonly machine: Machine;
  /** The episodes that were played, with the waits of those that had the machine to themselves. */
  readonly pool: readonly ScheduledEpisode[];
  readonly played: readonly Episode[];
  /** Mean trained tokens for each token of an episode: the epochs, weighted by what policies learn from. */
  readonly epochs: number;
  /** The fastest play of each size, with what the simulation says of it. */
  readonly plays: readonly {
    readonly episodes: number;
    readonly atOnce: number;
    readonly seconds: number;
    readonly simulated: number;
  }[];
  /** Seconds of the warm start; 0 where it was in the cache. */
  readonly warmStartSeconds: number;
  /** The most bytes that this process held. */
  readonly memoryBytes: number;
}

/** How often each size is played, where there is time: an engine's code is compiled after thousands of tokens only. */
const ROUNDS = 12;

/** Updates that are made; the fastest counts. */
const UPDATES = 3;

/** Episodes that are played one after the other, at most. */
const ALONE = 24;

/** Episodes for each place where a few are played at once, at most: places are taken anew as episodes end. */
const FEW = 6;

/** Episodes for each place that are played even where they take longer than they should. */
const LEAST = 4;

/**
 * Plays the tasks of the first steps one by one, a group at a time and a step at a time, and makes a few updates.
 * Nothing is written but the cache of the warm start.
 * @throws what opening a run throws; the signal's reason when interrupted
 */
export async function measureMachine(
  recipe: Recipe,
  tasks: Tasks,
  host: Host,
  { seconds, onWarmup }: MeasureOptions,
): Promise<Measured> {
  const recorded = new RecordedPlays();
  const observer = observersTogether([recorded, ...(host.observer === undefined ? [] : [host.observer])]);
  const run = await openRun(recipe, tasks, { ...host, observer });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { progress, seconds: warmStartSeconds } = await startingWeights(run, { onWarmup });
    const training: TrainingRun = {
      ...run,
      references: await openReferences(run, undefined),
      critics: await openCritics(run, undefined),
    };
    await publishAll(run);
    const timed = new TimedPlays(training, recorded, seconds);
    await timed.play();
    const { whole } = timed;
    const plays = timed.fastest();
    const learning = await learningSpeed(training, progress, whole);
    const began = host.clock.seconds();
    await publishAll(run);
    const transferSeconds = host.clock.seconds() - began;
    const sampling = fitSampling(plays);
    const shared = recipe.backend.type === 'embedded';
    return {
      machine: {
        name: `this machine (${run.host.threads} threads)`,
        recipe: recipe.name,
        sampling: { ...sampling, engines: 1 },
        training: { tokenSeconds: learning.tokenSeconds, updateSeconds: 0 },
        transferSeconds,
        shared,
      },
      pool: plays.flatMap(({ episodes }) => episodes),
      played: timed.episodes,
      epochs: learning.epochs,
      plays: plays.map((play) => ({
        episodes: play.episodes.length,
        atOnce: play.atOnce,
        seconds: play.seconds,
        simulated: playAlone(play, sampling).seconds,
      })),
      warmStartSeconds,
      memoryBytes: process.resourceUsage().maxRSS * 1024,
    };
  } finally {
    await run.dispose();
  }
}

/** Plays that are timed, within a budget of seconds. */
class TimedPlays {
  readonly plays: TimedPlay[] = [];
  readonly episodes: Episode[] = [];
  /** The largest play: a step, or the part of one for which there was time. */
  whole: readonly EpisodeGroup[] = [];
  readonly #run: TrainingRun;
  readonly #recorded: RecordedPlays;
  readonly #end: number;
  readonly #budget: number;
  #waits: Map<string, number[]> | undefined;
  #step = 0;

  constructor(run: TrainingRun, recorded: RecordedPlays, budget: number) {
    this.#run = run;
    this.#recorded = recorded;
    this.#budget = budget;
    this.#end = run.host.clock.seconds() + budget;
  }

  get #left(): number {
    return this.#end - this.#run.host.clock.seconds();
  }

  async play(): Promise<void> {
    const { tasksPerStep, groupSize } = this.#run.recipe.training;
    await this.#fewAtOnce(1, ALONE); // knows what is waited for
    const group = await this.#timed(1);
    const sizes = [tasksPerStep, Math.max(1, tasksPerStep >> 1), 1];
    const few = Math.round(Math.sqrt(tasksPerStep * groupSize));
    for (let round = 0; round < ROUNDS; round++) {
      for (const count of sizes) {
        // A play takes no longer than its groups one after the other; the updates take as long again, at most.
        const fitting = Math.max(1, Math.floor(this.#left / 4 / Math.max(1e-6, group / 2)));
        await this.#timed(Math.min(count, fitting));
        if (this.#left < this.#budget / 3) return;
      }
      await this.#fewAtOnce(few, FEW * few);
      await this.#fewAtOnce(1, ALONE);
      if (this.#left < this.#budget / 3) return;
    }
  }

  /** Of the plays of a size the one with the fewest seconds a token: in the others the machine did something else. */
  fastest(): TimedPlay[] {
    const pace = ({ seconds, episodes }: TimedPlay) => seconds / Math.max(1, tokensOf(episodes));
    const bySize = new Map<string, TimedPlay>();
    for (const play of this.plays) {
      const size = `${play.episodes.length} of ${play.atOnce}`;
      const before = bySize.get(size);
      if (before === undefined || pace(play) < pace(before)) bySize.set(size, play);
    }
    return [...bySize.values()];
  }

  /** Plays single episodes with so many at once, and no more of them than there is time for. */
  async #fewAtOnce(atOnce: number, most: number): Promise<void> {
    const { recipe, executor, tasks, host } = this.#run;
    const { groupSize } = recipe.training;
    const step = ++this.#step;
    const samples = tasksOfStep(tasks.train, recipe.seed, step, Math.ceil(most / groupSize)).flatMap((task) =>
      Array.from({ length: groupSize }, (_, firstSample) => ({ tasks: [task], firstSample })),
    );
    const began = host.clock.seconds();
    let begun = 0;
    await pLimit(atOnce).map(samples.slice(0, most), async (sample) => {
      if (begun++ >= LEAST * atOnce && host.clock.seconds() - began > this.#budget / 8) return;
      const [group] = await executor.playGroups({
        ...{ team: recipe.team, ...sample, groupSize: 1, phase: 'training' as const, step, signal: host.signal },
      });
      this.episodes.push(...(group?.episodes ?? []));
    });
    const seconds = host.clock.seconds() - began;
    if (atOnce === 1) this.#waits = this.#recorded.waits();
    const episodes = this.#recorded.take(atOnce === 1 ? undefined : this.#waits);
    this.plays.push({ episodes, atOnce, seconds });
  }

  async #timed(count: number): Promise<number> {
    const { clock } = this.#run.host;
    const began = clock.seconds();
    const groups = await this.#together(count);
    const seconds = clock.seconds() - began;
    const { concurrency } = this.#run.recipe.training;
    this.plays.push({ episodes: this.#recorded.take(this.#waits), atOnce: concurrency, seconds });
    this.episodes.push(...groups.flatMap(({ episodes }) => episodes));
    if (groups.length >= this.whole.length) this.whole = groups;
    return seconds;
  }

  #together(count: number): Promise<EpisodeGroup[]> {
    const { recipe, tasks } = this.#run;
    const step = ++this.#step;
    const { tasksPerStep } = recipe.training;
    return playTasks(this.#run, step, tasksOfStep(tasks.train, recipe.seed, step, tasksPerStep).slice(0, count));
  }
}

/** Seconds of an update for each trained token, of the fastest of some updates. */
async function learningSpeed(
  run: TrainingRun,
  progress: Progress,
  groups: readonly EpisodeGroup[],
): Promise<{ readonly tokenSeconds: number; readonly epochs: number }> {
  const { recipe, host } = run;
  const kept = applyFailureRule(groups, recipe.training.failedEpisodes);
  const trained = kept
    .flatMap(({ episodes }) => episodes)
    .flatMap(({ turns }) => turns)
    .reduce(
      (sum, { agent, prompt, response }) => {
        const policy = recipe.assign[agent];
        const epochs = typeof policy === 'string' ? (recipe.policies[policy]?.epochs ?? 0) : 0;
        const tokens = prompt.length + response.length;
        return { all: sum.all + tokens, learnt: sum.learnt + epochs * tokens };
      },
      { all: 0, learnt: 0 },
    );
  const step = Math.max(...Object.keys(recipe.policies).map((policy) => stepsAhead(recipe, policy))) + 1;
  const against = { greedy: await playGreedy(run, step, kept), branches: await playBranches(run, step, kept) };
  const update = async (): Promise<number> => {
    const began = host.clock.seconds();
    const scores = await turnScores(run, progress.kl, { kept, ...against });
    await updatePolicies(run, progress, step, scores, stepAdvantages(recipe, kept, scores));
    return host.clock.seconds() - began;
  };
  let seconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < UPDATES; i++) seconds = Math.min(seconds, await update());
  return { tokenSeconds: seconds / Math.max(1, trained.learnt), epochs: trained.learnt / Math.max(1, trained.all) };
}
