/** A trained team in a program: tasks in, outcomes out. */

import type { Sampling } from '@drmas/engine/contract';
import { contentHash } from '@drmas/engine/disk';
import { ArgumentError, BackendError, EpisodeError, issuesText } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import type { Episode, TaskSet } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import type { ZodType } from 'zod';
import { commitsOf, loadCheckpoint } from '../../method/checkpoints.js';
import type { OpenRun } from '../../method/index.js';
import { assignmentOf, type Recipe, type RecipeDefinition } from '../../method/recipe.js';
import type { Checkpoint } from '../../method/store.js';
import type { Team } from '../../teams/index.js';
import { modelPlaces } from './open/open-backends.js';
import { openRun, publishAll } from './open/open-run.js';
import { requestEvaluation } from './request/evaluation.js';

/** The options of `loadTeam`. */
export interface LoadTeamOptions {
  /** The step of the checkpoint that plays, or `best`: of the best evaluation. By default the last one. */
  readonly checkpoint?: number | 'best';
  /**
   * The definition, if the run was started with the result of `defineRecipe`; or the path of the recipe's file if it
   * was moved.
   */
  readonly recipe?: string | RecipeDefinition;
  /** Play although the code of the recipe has changed. */
  readonly acceptChanges?: boolean;
  /** Threads of the engine's kernels; by default one per core. */
  readonly threads?: number;
  /** Receives notices for people. */
  readonly onNotice?: (message: string) => void;
}

/** The options of `LoadedTeam.play`. */
export interface PlayTaskOptions {
  /** Ends the episode; the promise rejects with its reason. */
  readonly signal?: AbortSignal;
  /** Sampling that overrides the agents' own: `{ temperature: 0 }` plays greedily. */
  readonly sampling?: Partial<Sampling>;
  /** Equal tasks with equal numbers give equal episodes; by default each play has the next number. */
  readonly sample?: number;
  /** Also compute the reward and the success, for a task whose answer is known. */
  readonly score?: boolean;
}

/** The result of a task that a team played. */
export interface PlayedTask<Data = unknown, Outcome = unknown> {
  /** The value that `play` of the team returned. */
  readonly outcome: Outcome;
  /** The episode with its turns; its score is 0 unless the score was requested. */
  readonly episode: Episode<Data>;
}

/** The data of a team's tasks. */
export type DataOf<T> = T extends { readonly task: ZodType<infer Data> } ? Data : unknown;
/** The type of the value that `play` of a team returns. */
export type OutcomeOf<T> = T extends { play(context: never): Promise<infer Outcome> } ? Outcome : unknown;

/** A team that plays with the weights of a checkpoint. Its engine lives until `dispose`, or until the process ends. */
export class LoadedTeam<Data = unknown, Outcome = unknown> implements AsyncDisposable {
  readonly #run: OpenRun;
  readonly #step: number;
  readonly #disposed = new AbortController();
  #plays = 0;

  /** Call `loadTeam` instead. */
  constructor(run: OpenRun, step: number) {
    this.#run = run;
    this.#step = step;
  }

  /** The names of the team's agents. */
  get agents(): readonly string[] {
    return Object.keys(this.#run.team.agents);
  }

  /**
   * Plays a task with the prompts, parsers and sampling of evaluations. Plays may overlap. Nothing is written.
   * @param data A task as the team declares it. Fields that only the reward reads, such as the right answer, must
   * exist, and may have any value that fits the schema
   * @throws ArgumentError for a task that does not fit; EpisodeError with the episode so far when the team fails;
   *   BackendError after `dispose`; rejects with the signal's reason
   */
  async play(data: Data, options: PlayTaskOptions = {}): Promise<PlayedTask<Data, Outcome>> {
    const { signal, sampling, sample = this.#plays++, score = false } = options;
    const { team, executor } = this.#run;
    const read = team.task.safeParse(data);
    if (!read.success) throw new ArgumentError(`the task does not fit the team: ${issuesText(read.error.issues)}`);
    const task = { id: contentHash(read.data), data: read.data };
    const { success: _, metrics: __, rewardGroup: ___, ...unscored } = team;
    const [group] = await executor.playGroups({
      team: score ? team : { ...unscored, reward: () => 0 },
      tasks: [task],
      groupSize: 1,
      firstSample: sample,
      phase: 'evaluation',
      step: this.#step,
      sampling,
      signal: AbortSignal.any([this.#disposed.signal, ...(signal === undefined ? [] : [signal])]),
    });
    const episode = group?.episodes[0] as Episode<Data>;
    if (episode.failure !== undefined) throw new EpisodeError(episode.failure, episode);
    return { outcome: episode.outcome as Outcome, episode };
  }

  /** Ends the open episodes, and the engine. */
  async dispose(): Promise<void> {
    this.#disposed.abort(new BackendError('the team was disposed of'));
    await this.#run.dispose();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** An empty task source: `play` receives its tasks one by one. */
const none: TaskSet = {
  name: 'none',
  size: 0,
  at: (index) => {
    throw new ArgumentError(`there is no task ${index}`);
  },
};

/**
 * Loads a trained team from a run: its code from the recipe, which must not have changed, and the weights of a
 * checkpoint. Tasks and their files are not read. Name the team's type to get the type of outcomes:
 * `loadTeam<typeof team>(run)`.
 * @throws RunError when there is no such run or checkpoint, or the code of its recipe has changed; CheckpointError when
 *   the checkpoint is damaged
 *
 * @example
 * ```ts
 * import { loadTeam } from 'drmas';
 *
 * await using team = await loadTeam('runs/first');
 * const { outcome, episode } = await team.play({ question: '19a+7', answer: '' });
 * console.log(outcome, episode.turns.length);
 * ```
 */
export async function loadTeam<T extends Pick<Team, 'name'> = Team>(
  run: string,
  { checkpoint: step, recipe: given, acceptChanges, threads, onNotice: notify }: LoadTeamOptions = {},
): Promise<LoadedTeam<DataOf<T>, OutcomeOf<T>>> {
  const host = nodeHost({ threads, notify });
  const from = step === undefined ? undefined : String(step);
  const request = { recipe: given, acceptChanges, from, notify: host.notify };
  return requestEvaluation(run, request, async ({ recipe, checkpoint }) => openedTeam(recipe, checkpoint, host));
}

/** Opens the policies of a checkpoint. */
async function openedTeam<Data, Outcome>(
  recipe: Recipe,
  checkpoint: Checkpoint,
  host: Host,
): Promise<LoadedTeam<Data, Outcome>> {
  const commits = await commitsOf(host.files, checkpoint);
  const models = assignmentOf(recipe).models.map(({ name }) => name);
  const here = modelPlaces(recipe, models).every(({ row }) => row.capabilities.weights === 'here');
  const options = { commits, purpose: 'evaluation', ...(here ? { checkpoint } : {}) } as const;
  const opened = await openRun(recipe, { train: none, test: none }, host, options);
  try {
    for (const { message } of opened.warnings) host.notify(message);
    if (!here) await loadCheckpoint(opened, checkpoint, { optimizer: false });
    await publishAll(opened);
    return new LoadedTeam(opened, checkpoint.step);
  } catch (error) {
    await opened.dispose();
    throw error;
  }
}
