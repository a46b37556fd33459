/** Records demonstrations: the team plays training tasks, and somebody else answers in place of its agents. */
import type { CompleteText } from '@drmas/engine/endpoints';
import { DrmasError, messageOf, RecipeError, RunError, suggestion, TrainingError } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { type EpisodeGroup, successOf, type Task } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import pLimit from 'p-limit';
import { allFailedText, commonFailure, type OpenRun, type Tasks, tasksOfStep } from '../../../method/index.js';
import type { FrozenSpec, Recipe } from '../../../method/recipe.js';
import { startingWeights } from '../../run/execute/starting-weights.js';
import { openRun, publishAll } from '../../run/open/open-run.js';
import { prepareTasks, undividedFile } from '../../run/open/prepare-tasks.js';
import { requestStudy } from '../../run/request/new-run.js';
import { reaches } from '../../traces/demonstration-rows.js';
import { DemonstrationFile } from './demonstration-file.js';
import { type Answerer, NoMoreAnswers, replyOf, type Speaker, TaskLeftOut, thrownBy } from './speaker.js';

const TASKS = 16;
/** The most tasks that are played at once. An endpoint limits its requests itself. */
const TOGETHER = 8;
/** The longest time-out of Node, about 25 days: a person may think. */
const PATIENCE_MS = 2 ** 31 - 1;

export interface DemonstrateOptions {
  /** The agents to ask and to record. Default: the agents that train; with the recipe's own models all agents. */
  readonly agents?: readonly string[] | undefined;
  /** Training tasks to play; default 16. */
  readonly tasks?: number | undefined;
  /** Episodes of each task; default 1. */
  readonly samples?: number | undefined;
  /** Episodes with a lower success are left out. Default: all that did not fail. */
  readonly minScore?: number | undefined;
  readonly set?: readonly string[] | undefined;
  readonly seed?: number | undefined;
  readonly out: string;
  /** Asks the person at the terminal, if an asked agent has no frozen model. */
  readonly person: Answerer;
}

export interface DemonstrationRequest {
  /** The recipe with the speaker in place of the asked agents, and without a warm start. */
  readonly recipe: Recipe;
  /** Whether the recipe already has a warm start, which learns demonstrations. */
  readonly warmsUp: boolean;
  readonly speaker: string;
  readonly agents: readonly string[];
  readonly tasks: Tasks;
  readonly chosen: readonly Task[];
  readonly samples: number;
  readonly minScore: number;
  readonly out: string;
  readonly together: boolean;
  readonly stage: Stage;
  readonly warnings: readonly string[];
}

/** A played task: its episodes, and how many of them are kept. */
export interface DemonstratedTask {
  /** The position among the tasks, from 1. */
  readonly task: number;
  readonly group: EpisodeGroup;
  readonly kept: number;
}

export interface Demonstrated {
  readonly file: string;
  /** The number of demonstrations in the file; 0 if none was written. */
  readonly demonstrations: number;
  readonly agents: Readonly<Record<string, number>>;
  readonly tasks: number;
  readonly episodes: number;
  readonly kept: number;
  /** Episodes that did not fail and were below the score. */
  readonly below: number;
  readonly failed: number;
  readonly leftOut: number;
  /** The lowest, mean and highest score of the episodes that did not fail. */
  readonly scores?: { readonly low: number; readonly mean: number; readonly high: number };
  readonly failure?: string;
  /** Tokens of endpoints that count them. */
  readonly read: number;
  readonly written: number;
  /** Why not all tasks were played, and what ended the play. */
  readonly stopped?: string;
  readonly stoppedBy?: 'interruption' | 'end of answers' | 'error';
}

/** The task in play of a speaker that is asked one question after another. */
class Stage {
  task: unknown;
  #controller = new AbortController();

  enter(task: unknown): AbortSignal {
    this.task = task;
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  leave(reason: Error): never {
    this.#controller.abort(reason);
    throw reason;
  }
}

/**
 * Resolves the request and reads the tasks. It creates no file and asks nobody.
 * @throws RecipeError, TaskError, RunError with the wrong value
 */
export async function requestDemonstrations(
  source: string,
  given: Speaker | undefined,
  options: DemonstrateOptions,
): Promise<DemonstrationRequest> {
  const { set = [], seed, tasks: count = TASKS, samples = 1, minScore = Number.NEGATIVE_INFINITY, out } = options;
  if (await nodeFiles.exists(out))
    throw new RunError(`${out} exists; choose another file with --out, and join both files later if you want both`);
  const written = await requestStudy(source, { set, seed });
  const names = Object.keys(written.team.agents);
  const trained = names.filter((agent) => typeof written.assign[agent] === 'string');
  const { agents = trained.length === 0 ? names : trained } = options;
  const unknown = agents.find((agent) => !names.includes(agent));
  if (unknown !== undefined)
    throw new RecipeError(`the team has no agent '${unknown}'${suggestion(unknown, names)}`, 'agents');
  const isAsked = agents.some((agent) => trained.includes(agent));
  const speaker = given ?? (isAsked ? personOf(options.person) : undefined);
  const stage = new Stage();
  const recipe = playedRecipe(written, agents, speaker, stage);
  const tasks = await prepareTasks(recipe, 'evaluation', { withoutDemonstrations: true });
  const chosen = tasksOfStep(tasks.train, recipe.seed, 1, Math.min(count, tasks.train.size));
  return {
    recipe,
    warmsUp: written.warmStart !== undefined,
    speaker: speaker?.name ?? 'their own models',
    agents,
    tasks,
    chosen,
    samples,
    minScore,
    out,
    together: speaker?.type !== 'answers',
    stage,
    warnings: undividedFile(recipe.tasks),
  };
}

const personOf = (answer: Answerer): Speaker => ({
  type: 'answers',
  name: 'you, in this terminal or through its pipe',
  answer,
  isPerson: true,
});

/** The recipe with the speaker in place of agents. Nothing of it trains, and this process plays all episodes. */
function playedRecipe(recipe: Recipe, agents: readonly string[], speaker: Speaker | undefined, stage: Stage): Recipe {
  const alone = { ...recipe, warmStart: undefined, rollout: undefined };
  if (speaker === undefined) return alone;
  const specs: [string, FrozenSpec][] = agents.map((agent) => [agent, specOf(speaker)]);
  const assign: Recipe['assign'] = { ...recipe.assign, ...Object.fromEntries(specs) };
  const functions = agents.flatMap((agent): [string, CompleteText][] => {
    if (speaker.type === 'answers') return [[agent, asking(agent, speaker.name, speaker.answer, stage)]];
    return speaker.complete === undefined ? [] : [[agent, speaker.complete]];
  });
  const playing = new Set(Object.values(assign));
  const policies = Object.fromEntries(Object.entries(recipe.policies).filter(([name]) => playing.has(name)));
  const { training } = recipe;
  const pace = speaker.type === 'answers' ? { concurrency: 1 } : {};
  const patience = speaker.type === 'answers' && speaker.isPerson ? { episodeTimeoutMs: PATIENCE_MS } : {};
  return {
    ...alone,
    assign,
    policies,
    functions: { ...recipe.functions, ...Object.fromEntries(functions) },
    training: { ...training, ...pace, ...patience },
  };
}

const specOf = (speaker: Speaker): FrozenSpec =>
  speaker.type === 'model' ? speaker.spec : { type: 'text', name: speaker.name, concurrency: 1 };

/** A function for one agent that asks the answerer. A mistake in the form of an answer ends the command. */
function asking(agent: string, place: string, answer: Answerer, stage: Stage): CompleteText {
  return async ({ messages, tools, toolChoice }, signal) => {
    const question = {
      ...{ agent, task: stage.task, messages },
      ...(tools === undefined ? {} : { tools }),
      ...(toolChoice === undefined ? {} : { toolChoice }),
    };
    let given: unknown;
    try {
      given = await answer(question, signal);
    } catch (error) {
      if (error instanceof NoMoreAnswers || error instanceof DrmasError) return stage.leave(error);
      throw thrownBy(place, error);
    }
    return read(given, place, stage) ?? stage.leave(new TaskLeftOut());
  };
}

function read(given: unknown, place: string, stage: Stage) {
  try {
    return replyOf(given, place);
  } catch (error) {
    return stage.leave(error as Error);
  }
}

/**
 * Plays the tasks and writes the answers of the episodes that reach the score. The file grows in the order of the tasks
 * while they are played, so a process that is killed leaves answers in it. If the host's signal fires, if there are no
 * more answers, if the speaker fails or if the disk is full, the episodes before count.
 * @param onTask Receives each played task
 * @throws RunError, TrainingError if no demonstration is left; the signal's reason if it fired before. No file is left
 */
export async function recordTeam(
  request: DemonstrationRequest,
  host: Host,
  onTask: (task: DemonstratedTask) => void,
): Promise<Demonstrated> {
  const { recipe, tasks } = request;
  const file = await DemonstrationFile.create(request); // before anything is asked: the place may be read-only
  try {
    const run = await openRun(recipe, tasks, host, { purpose: 'evaluation' });
    let played: PlayedTasks;
    try {
      for (const { message } of run.warnings) host.notify(message);
      await startingWeights(run, undefined, {});
      await publishAll(run);
      played = await playTasks(run, request, file, onTask);
    } finally {
      await run.dispose();
    }
    const groups = played.groups.filter((group) => group !== undefined);
    const result = factsOf(request, played, file, groups);
    if (file.demonstrations === 0) throw nothingLeft(result, played, groups);
    return result;
  } finally {
    await file.close();
  }
}

interface PlayedTasks {
  readonly groups: readonly (EpisodeGroup | undefined)[];
  readonly leftOut: number;
  readonly stop?: unknown;
  readonly isInterrupted: boolean;
}

async function playTasks(
  run: OpenRun,
  { chosen, samples, minScore, together, stage }: DemonstrationRequest,
  file: DemonstrationFile,
  onTask: (task: DemonstratedTask) => void,
): Promise<PlayedTasks> {
  const { team, executor, host } = run;
  const groups: (EpisodeGroup | undefined)[] = chosen.map(() => undefined);
  const whenFree = pLimit(together ? TOGETHER : 1);
  const ending = new AbortController();
  let leftOut = 0;
  const play = async (task: Task, i: number) => {
    if (ending.signal.aborted || host.signal.aborted) return;
    const signal = AbortSignal.any([host.signal, ending.signal, ...(together ? [] : [stage.enter(task.data)])]);
    try {
      const request = { team, tasks: [task], groupSize: samples, phase: 'training', step: i + 1, signal } as const;
      const [group] = await executor.playGroups(request);
      if (group === undefined) return;
      groups[i] = group;
      onTask({ task: i + 1, group, kept: group.episodes.filter((each) => reaches(each, minScore)).length });
      file.add(i, group.episodes);
    } catch (error) {
      if (!(error instanceof TaskLeftOut)) return ending.abort(error);
      leftOut++;
      file.add(i, []);
    }
  };
  await Promise.all(chosen.map((task, i) => whenFree(() => play(task, i))));
  const isInterrupted = host.signal.aborted;
  try {
    file.finish();
  } catch (error) {
    ending.abort(error);
  }
  const ended = [host.signal, ending.signal].find(({ aborted }) => aborted);
  return { groups, leftOut, isInterrupted, ...(ended && { stop: ended.reason }) };
}

function factsOf(
  { out, chosen, minScore }: DemonstrationRequest,
  { leftOut, stop, isInterrupted }: PlayedTasks,
  { demonstrations, agents, kept }: DemonstrationFile,
  groups: readonly EpisodeGroup[],
): Demonstrated {
  const episodes = groups.flatMap((group) => group.episodes);
  const scored = episodes.filter(({ failure }) => failure === undefined);
  const scores = scored.map(successOf);
  const failure = episodes.find((episode) => episode.failure !== undefined)?.failure;
  const tokens = (of: 'promptTokens' | 'responseTokens') =>
    episodes.flatMap(({ turns }) => turns).reduce((sum, { endpoint }) => sum + (endpoint?.[of] ?? 0), 0);
  return {
    file: out,
    demonstrations,
    agents,
    tasks: groups.length,
    episodes: episodes.length,
    kept,
    below: scored.filter((episode) => !reaches(episode, minScore)).length,
    failed: episodes.length - scored.length,
    leftOut,
    ...(scores.length === 0
      ? {}
      : {
          scores: {
            low: Math.min(...scores),
            mean: mean(scores),
            high: Math.max(...scores),
          },
        }),
    ...(failure === undefined ? {} : { failure: `(${failure.reason}) ${failure.message}` }),
    read: tokens('promptTokens'),
    written: tokens('responseTokens'),
    ...(stop === undefined
      ? {}
      : {
          stopped: `${messageOf(stop)}; ${groups.length} of ${chosen.length} tasks were played`,
          stoppedBy: isInterrupted ? 'interruption' : stop instanceof NoMoreAnswers ? 'end of answers' : 'error',
        }),
  };
}

function nothingLeft(
  { episodes, below, failed, leftOut, scores, failure }: Demonstrated,
  { stop }: PlayedTasks,
  groups: readonly EpisodeGroup[],
): unknown {
  if (stop !== undefined && !(stop instanceof NoMoreAnswers)) return stop;
  if (stop !== undefined && episodes === 0 && leftOut === 0)
    return new RunError('nobody answered: --endpoint and --model name a hosted model, --script a module that answers');
  const common = episodes === 0 ? undefined : commonFailure(groups);
  if (common !== undefined) return new TrainingError(allFailedText(common));
  const parts = [
    ...(below === 0 || scores === undefined
      ? []
      : [`${below} did not reach the score (${scores.low} to ${scores.high})`]),
    ...(failed === 0 ? [] : [`${failed} failed, the first: ${failure}`]),
    ...(leftOut === 0 ? [] : [`${leftOut} tasks were left out`]),
  ];
  return new RunError(
    `no demonstration is left of ${episodes} episodes${parts.length === 0 ? '' : `: ${parts.join('; ')}`}`,
  );
}
