/** How fast this machine plays and learns a recipe, measured within a minute. */

import type { Warmup } from '@drmas/engine/events';
import { type Host, listenersTogether } from '@drmas/engine/host';
import type { Episode, EpisodeGroup } from '@drmas/engine/nouns';
import pLimit from 'p-limit';
import { openTraining } from '../../../method/checkpoints.js';
import type { Played, Progress, Tasks, TrainingRun } from '../../../method/index.js';
import {
  learnStep,
  playSignals,
  playStep,
  predictionsAfter,
  requireWorking,
  tasksOfStep,
  withoutWaiting,
} from '../../../method/index.js';
import type { Recipe } from '../../../method/recipe.js';
import { openRun, publishAll } from '../../run/open-run.js';
import { startingWeights } from '../../run/starting-weights.js';
import { fitSampling, playAlone, type TimedPlay } from './fit-sampling.js';
import type { Machine } from './machine.js';
import { RecordedPlays } from './recorded-plays.js';
import { type ScheduledEpisode, tokensOf } from './schedule.js';

export interface MeasureOptions {
  /** The approximate number of seconds for playing and learning. A step that takes longer is played in part. */
  readonly seconds: number;
  /** Receives the warm start's events. */
  readonly onWarmup?: (event: Warmup) => void;
}

/** The measurements. */
export interface Measured {
  readonly machine: Machine;
  /** The played episodes. Their waits come from episodes that had the machine to themselves. */
  readonly pool: readonly ScheduledEpisode[];
  readonly played: readonly Episode[];
  /** Mean trained tokens for each token of an episode: the epochs, weighted by the tokens that policies learn from. */
  readonly epochs: number;
  /** The fastest play of each size, with the simulation's seconds for it. */
  readonly plays: readonly {
    readonly episodes: number;
    readonly atOnce: number;
    readonly seconds: number;
    readonly simulated: number;
  }[];
  /** Seconds of the warm start; 0 if it was in the cache. */
  readonly warmStartSeconds: number;
  /** The most bytes that this process used. */
  readonly memoryBytes: number;
}

/** How often each size is played, if there is time. Node compiles the engine's code only after thousands of tokens. */
const ROUNDS = 12;

/** The number of updates. The fastest counts. */
const UPDATES = 3;

/** The most episodes that are played one after the other. */
const ALONE = 24;

/**
 * The most episodes for each concurrent slot if a few are played at once. When an episode ends, its slot gets another.
 */
const FEW = 6;

/** The least episodes for each slot, also if they take longer than they should. */
const LEAST = 4;

/**
 * Plays the tasks of the first steps one by one, a group at a time and a step at a time, and makes a few updates.
 * Writes only the cache of the warm start.
 * @throws the errors of opening a run; the signal's reason if interrupted; TrainingError if all episodes failed for one
 *   reason, which is not their output
 */
export async function measureMachine(
  recipe: Recipe,
  tasks: Tasks,
  host: Host,
  { seconds, onWarmup }: MeasureOptions,
): Promise<Measured> {
  const recorded = new RecordedPlays();
  const listener = listenersTogether([recorded, ...(host.listener === undefined ? [] : [host.listener])]);
  const run = await openRun(recipe, tasks, { ...host, listener });
  try {
    for (const { message } of run.warnings) host.notify(message);
    const { progress, seconds: warmStartSeconds } = await startingWeights(run, recipe.warmStart, { onWarmup });
    const training = withoutWaiting(await openTraining(run, {}));
    await publishAll(run);
    const timed = new TimedPlays(training, recorded, seconds);
    await timed.play();
    requireWorking([timed]);
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

/** Timed plays, within a budget of seconds. */
class TimedPlays {
  readonly plays: TimedPlay[] = [];
  readonly episodes: Episode[] = [];
  /** The largest play: a step, or the part of a step that the time allowed. */
  whole: Played | undefined;
  readonly #run: TrainingRun;
  readonly #recorded: RecordedPlays;
  readonly #end: number;
  readonly #budget: number;
  #waits: Map<string, number[]> | undefined;
  #step = 0;
  #predictions: Progress['predictions'] = {};

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
    const { tasksPerStep, groupSize } = this.#run.training;
    await this.#fewAtOnce(1, ALONE); // gives the waits of calls
    const group = await this.#timed(1);
    const sizes = [tasksPerStep, Math.max(1, tasksPerStep >> 1), 1];
    const few = Math.round(Math.sqrt(tasksPerStep * groupSize));
    for (let round = 0; round < ROUNDS; round++) {
      for (const count of sizes) {
        // A play takes at most as long as its groups one after the other. The updates take at most as long again.
        const fitting = Math.max(1, Math.floor(this.#left / 4 / Math.max(1e-6, group / 2)));
        await this.#timed(Math.min(count, fitting));
        if (this.#left < this.#budget / 3) return;
      }
      await this.#fewAtOnce(few, FEW * few);
      await this.#fewAtOnce(1, ALONE);
      if (this.#left < this.#budget / 3) return;
    }
  }

  /** Of each size, the play with the fewest seconds a token. In slower plays the machine also did other work. */
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

  /** Plays single episodes with this many at once, as many as the time allows. */
  async #fewAtOnce(atOnce: number, most: number): Promise<void> {
    const { team, seed, executor, tasks, host } = this.#run;
    const { groupSize } = this.#run.training;
    const step = ++this.#step;
    const samples = tasksOfStep(tasks.train, seed, step, Math.ceil(most / groupSize)).flatMap((task) =>
      Array.from({ length: groupSize }, (_, firstSample) => ({ tasks: [task], firstSample })),
    );
    const began = host.clock.seconds();
    let begun = 0;
    await pLimit(atOnce).map(samples.slice(0, most), async (sample) => {
      if (begun++ >= LEAST * atOnce && host.clock.seconds() - began > this.#budget / 8) return;
      const [group] = await executor.playGroups({
        team,
        ...sample,
        groupSize: 1,
        phase: 'training' as const,
        step,
        signal: host.signal,
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
    const played = await this.#playStep(count);
    const seconds = clock.seconds() - began;
    const { concurrency } = this.#run.training;
    this.plays.push({ episodes: this.#recorded.take(this.#waits), atOnce: concurrency, seconds });
    this.episodes.push(...played.all.flatMap(({ episodes }) => episodes));
    if (played.all.length >= (this.whole?.all.length ?? 0)) this.whole = played;
    return seconds;
  }

  /** Plays a step, or the first tasks of a step, as the run plays it. The rollouts of signals are not timed. */
  async #playStep(tasks: number): Promise<Played> {
    const run = { ...this.#run, signals: [] };
    const played = await playStep(run, { step: this.#step++, predictions: this.#predictions }, { tasks });
    this.#predictions = predictionsAfter(this.#predictions, played.levels, run);
    return played;
  }
}

/** The seconds of learning for each trained token: the fastest of some updates. */
async function learningSpeed(
  run: TrainingRun,
  progress: Progress,
  whole: Played | undefined,
): Promise<{ readonly tokenSeconds: number; readonly epochs: number }> {
  if (whole === undefined) return { tokenSeconds: 0, epochs: 0 };
  const extra = await playSignals(run, { step: 1, groups: whole.kept });
  let seconds = Number.POSITIVE_INFINITY;
  for (let i = 0; i < UPDATES; i++) {
    const learnt = await learnStep(run, progress, { ...whole, step: 1, extra });
    seconds = Math.min(seconds, learnt.seconds.advantage + learnt.seconds.update);
  }
  const tokensOf = (groups: readonly EpisodeGroup[], epochsOf: (agent: string) => number) =>
    groups
      .flatMap(({ episodes }) => episodes)
      .flatMap(({ turns }) => turns)
      .reduce((sum, { agent, prompt, response }) => sum + epochsOf(agent) * (prompt.length + response.length), 0);
  const trained = tokensOf(
    whole.kept,
    (agent) => run.learners.find(({ agents }) => agent in agents)?.settings.epochs ?? 0,
  );
  const all = tokensOf(whole.scored, () => 1);
  return { tokenSeconds: seconds / Math.max(1, trained), epochs: trained / Math.max(1, all) };
}
