/**
 * Which episode taught this? A step of a run is learnt from once more without one of its groups or agents at a time,
 * and the answers that the team gives after the step are scored under both weights. Nothing is written into the run.
 */
import { EVENT_VERSION, type RunEvent, type Step } from '@drmas/engine/events';
import type { Episode, EpisodeGroup } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { loadCheckpoint } from '../../src/method/checkpoints.js';
import {
  type Learnt,
  type Played,
  type Progress,
  playStep,
  type RunLog,
  type TrainingRun,
} from '../../src/method/index.js';
import type { RecipeDefinition } from '../../src/method/recipe.js';
import { type Checkpoint, RunDirectory } from '../../src/method/store.js';
import { learnStep } from '../../src/method/training/step/learn-step.js';
import { positionAfter } from '../../src/method/training/step/play-step.js';
import { advance, recordStep } from '../../src/method/training/step/record-step.js';
import { resumeRun } from '../../src/runs/run/execute/resume-run.js';
import { publishAll } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { recipeOfRun } from '../../src/runs/run/request/recipe-of-run.js';
import { answersOf, logprobOf, taskNamed } from './answers.js';
import { guessedEffects } from './guess.js';

/** A question about answers to a held-out task after a step. */
interface Question {
  readonly recipe: RecipeDefinition;
  /** The run has a checkpoint of the step before it. */
  readonly step: number;
  readonly task: string;
  readonly agent: string;
  /** The text of the answers. */
  readonly answer: string;
  /** The episodes of the task in which the answers are given. */
  readonly samples: number;
}

/** A part of a step that may have taught the answers. */
interface Cause {
  /** The task of a group, or the name of an agent. */
  readonly name: string;
  /** The share of a group in the guessed effects, from -1 to 1. */
  readonly guess?: number;
  /** How much more likely it made the answers: their mean log-prob with it minus the same without it, in nats. */
  readonly taught: number;
}

/** The causes, first those that taught the answers most. */
export interface Why {
  /** Whether the replayed step has the numbers that the run's log has of it. */
  readonly equal: boolean;
  readonly groups: readonly Cause[];
  readonly agents: readonly Cause[];
}

/** Replays a step of a run, and learns from it again without each of its causes. */
export async function why(path: string, question: Question): Promise<Why> {
  const { step } = question;
  const host = nodeHost({ threads: 1 });
  const log = await RunDirectory.open(path);
  const logged = (await log.events()).find((event) => event.type === 'step' && event.step === step);
  const checkpoint = (await log.checkpoints()).find((each) => each.step === step - 1);
  if (logged === undefined || checkpoint === undefined)
    throw new Error(`${path} has no step ${step}, or no checkpoint before it`);
  const { recipe } = await recipeOfRun(log, question.recipe, { acceptChanges: false });
  const tasks = await prepareTasks(recipe, undefined, host);
  const { run } = await resumeRun({ recipe, tasks, log, host }, checkpoint);
  try {
    return await answerOf(run, checkpoint, question, logged as Step);
  } finally {
    await run.dispose();
  }
}

async function answerOf(run: TrainingRun, state: Checkpoint, question: Question, logged: Step): Promise<Why> {
  /** Puts the models back into the state before the step, ready to play and to learn. */
  const restore = async () => {
    const progress = await loadCheckpoint(run, state, { optimizer: true });
    await publishAll(run);
    return progress;
  };
  const progress = await restore();
  const played = await playStep(run, progress);
  const replayed = await learnAgain(run, progress, played);
  const answers = answersOf(run, await episodesOf(run, question), question);
  const after = await logprobOf(run, answers);
  await restore();
  const guesses = await guessedEffects(run, replayed.learnt, answers, restore);

  /** By how much less likely the answers are after learning from another form of the step, or in another way. */
  const taughtBy = async (changed: Played, by: TrainingRun = run) => {
    await learnAgain(by, await restore(), changed);
    return after - (await logprobOf(run, answers));
  };
  const groups: Cause[] = [];
  for (const { guess, group } of guessedGroups(played.kept, guesses)) {
    const taught = await taughtBy({ ...played, kept: played.kept.filter((each) => each !== group) });
    groups.push({ name: group.task.id, guess, taught });
  }
  const names = run.learners.flatMap(({ agents }) => Object.keys(agents));
  const agents: Cause[] = [];
  if (names.length > 1)
    for (const name of names) agents.push({ name, taught: await taughtBy(played, withoutAgent(run, name)) });
  const byTaught = (a: Cause, b: Cause) => b.taught - a.taught;
  return { equal: isEqual(logged, replayed.event), groups: groups.sort(byTaught), agents: agents.sort(byTaught) };
}

/**
 * Learns from a played step as the training loop does, without its log.
 * @returns also the event that the log has, or would have, of the step
 */
async function learnAgain(
  run: TrainingRun,
  progress: Progress,
  played: Played,
): Promise<{ readonly learnt: Learnt; readonly event: Step }> {
  const { host, training } = run;
  const after = positionAfter(run, progress, played);
  const learnt = await learnStep(run, progress, played);
  advance(progress, after, learnt);
  let event: Step | undefined;
  const log: Pick<RunLog, 'emit' | 'writeStepEpisodes'> = {
    emit(body) {
      if (body.type === 'step') event = body;
      return { ...body, time: host.clock.now().toISOString(), version: EVENT_VERSION } as RunEvent;
    },
    async writeStepEpisodes() {},
  };
  // The limits of later updates follow from the recorded norms.
  await recordStep({ ...run, training: { ...training, keepEpisodes: false } }, progress, log as RunLog, played, learnt);
  return { learnt, event: event as Step };
}

/** Episodes of the task in question under the current weights. */
function episodesOf(run: TrainingRun, { task, step, samples }: Question): Promise<EpisodeGroup[]> {
  const { team, executor, tasks, host } = run;
  const { signal } = host;
  return executor.playGroups({
    ...{ team, step, signal },
    tasks: [taskNamed(task, tasks.test)],
    groupSize: samples,
    phase: 'evaluation',
  });
}

/** The groups of a step with their guesses; first those that made the answers more likely. */
function guessedGroups(groups: readonly EpisodeGroup[], guesses: ReadonlyMap<Episode, number>) {
  const sums = groups.map(({ episodes }) => episodes.reduce((sum, episode) => sum + (guesses.get(episode) ?? 0), 0));
  const all = sums.reduce((sum, value) => sum + Math.abs(value), 0);
  return groups
    .map((group, i) => ({ group, guess: all === 0 ? 0 : (sums[i] as number) / all }))
    .sort((a, b) => b.guess - a.guess);
}

/** The run, but nothing is learnt from the turns of an agent. Their rewards still count in the statistics of others. */
function withoutAgent(run: TrainingRun, name: string): TrainingRun {
  const learners = run.learners.map((learner) => ({
    ...learner,
    turns: (groups: readonly EpisodeGroup[]) => learner.turns(groups).filter(([turn]) => turn?.agent !== name),
  }));
  return { ...run, learners };
}

/** Whether the replayed step has the same rewards, gradients and tokens as the step in the log. */
function isEqual(logged: Step, replayed: Step): boolean {
  const numbers = ({ reward, agents }: Step) => JSON.stringify([reward, agents]);
  return numbers(logged) === numbers(JSON.parse(JSON.stringify(replayed)) as Step);
}
