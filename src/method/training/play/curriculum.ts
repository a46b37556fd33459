/**
 * A curriculum: tasks whose predicted success is near a target are played more often. The prediction is the moving
 * average of the team's success on the task's level. A group teaches nothing if all its episodes succeed, or none does.
 * At a success of one half the fewest groups are like that: Foster et al., arXiv 2502.12272 (learnability); Gao et al.,
 * arXiv 2510.01135 (prompts near one half, chosen among candidates).
 */

import { ownValue } from '@drmas/engine/errors';
import type { Step } from '@drmas/engine/events';
import { mean, RandomStream } from '@drmas/engine/math';
import { type EpisodeGroup, fieldText, successOf, type Task, type TaskSet } from '@drmas/engine/nouns';
import { BENCHMARK } from '../../../teams/tasks.js';
import { CURRICULUM_DEFAULTS } from '../../recipe/sections/training-section.js';
import type { Playing } from '../run/playing.js';
import { requireOneProblemEach, taskAt, tasksOfStep } from './step-tasks.js';

type Curriculum = NonNullable<Playing['training']['curriculum']>;

/** The predicted success of each level that was played, from 0 to 1. */
export type Predictions = Readonly<Record<string, number>>;

interface Trained {
  readonly train: TaskSet;
}

export type Levels = NonNullable<Step['levels']>;

/** The value of `by` that makes each task its own level. */
const TASK = 'task';
/** The weight of the level that is farthest from the target; a level at the target has 1 more. */
const LEAST = 0.05;
/** The number of tasks that are searched for the field before a run begins. */
const LOOKED_AT = 64;
/** The number of tasks whose ids are compared before a run in which each task is a level. */
const MOST_NAMED = 10_000;

export const levelOf = (task: Task, by: string): string => (by === TASK ? task.id : (fieldText(task, by) ?? '(none)'));

/**
 * The weight with which a task is drawn among the candidates. A level that was not played yet has the largest weight.
 */
export function weightOf(predicted: number | undefined, { target }: Pick<Curriculum, 'target'>): number {
  if (predicted === undefined) return LEAST + 1;
  return LEAST + 1 - Math.abs(predicted - target) / Math.max(target, 1 - target);
}

/**
 * The tasks of a step, drawn without repeats among candidates. The candidates are the next tasks that a run without a
 * curriculum would play. A pure function of the seed, the step and the predictions.
 */
export function tasksByPrediction(
  tasks: TaskSet,
  { seed, training }: Pick<Playing, 'seed' | 'training'>,
  step: number,
  predictions: Predictions,
): Task[] {
  const { curriculum, tasksPerStep } = training;
  if (curriculum === undefined || curriculum.candidates === 1) return tasksOfStep(tasks, seed, step, tasksPerStep);
  const walked = tasksOfStep(tasks, seed, step, tasksPerStep * curriculum.candidates);
  const different = [...new Map(walked.map((task) => [task.id, task])).values()];
  // A race of exponential clocks: the probability of ringing first is proportional to the rate (Efraimidis and
  // Spirakis, 2006).
  const clocks = different.map((task, i) => {
    const rate = weightOf(ownValue(predictions, levelOf(task, curriculum.by)), curriculum);
    return { task, rings: -Math.log1p(-new RandomStream('curriculum', seed, step, i).uniform()) / rate };
  });
  const first = clocks.sort((a, b) => a.rings - b.rings).map(({ task }) => task);
  // If the source has fewer tasks than the step needs, some are repeated, as without a curriculum.
  return [...first, ...walked].slice(0, tasksPerStep);
}

/**
 * The results of each level of a step: by the curriculum's field, else by the part of a mixture. Undefined without
 * both.
 */
export function levelsOf(
  groups: readonly EpisodeGroup[],
  { training }: Pick<Playing, 'training'>,
  { train }: Trained,
  predictions: Predictions,
): Levels | undefined {
  const by = training.curriculum?.by ?? (train.parts === undefined ? undefined : BENCHMARK);
  if (by === undefined) return undefined;
  const played = groups
    .filter(({ episodes }) => episodes.length > 0)
    .map((group) => ({ ...group, level: levelOf(group.task, by) }));
  const names = [...new Set(played.map(({ level }) => level))].sort(new Intl.Collator('en', { numeric: true }).compare);
  return Object.fromEntries(
    names.map((name) => {
      const ofLevel = played.filter(({ level }) => level === name);
      const episodes = ofLevel.flatMap(({ episodes }) => episodes);
      const sized = training.curriculum?.groupSizes === undefined ? {} : { episodes: episodes.length };
      const predicted = ownValue(predictions, name);
      const known = predicted === undefined ? {} : { predicted };
      return [name, { tasks: ofLevel.length, ...sized, success: mean(episodes.map(successOf)), ...known }];
    }),
  );
}

export function predictionsAfter(
  before: Predictions,
  levels: Levels | undefined,
  { training: { curriculum } }: Pick<Playing, 'training'>,
): Predictions {
  if (curriculum === undefined || levels === undefined) return before;
  const { decay } = curriculum;
  const played = Object.entries(levels).map(([name, { success }]) => {
    const known = ownValue(before, name);
    return [name, known === undefined ? success : decay * known + (1 - decay) * success] as const;
  });
  return { ...before, ...Object.fromEntries(played) };
}

export function* curriculumChecks({ seed, training }: Pick<Playing, 'seed' | 'training'>, { train }: Trained) {
  const { curriculum, groupSize, tasksPerStep } = training;
  if (curriculum === undefined) return;
  const { by, groupSizes, candidates } = curriculum;
  const chooses = candidates > 1 && train.size > tasksPerStep;
  for (const name of ['target', 'decay'] as const)
    yield {
      path: `training.curriculum.${name}`,
      test: chooses || groupSizes !== undefined || curriculum[name] === CURRICULUM_DEFAULTS[name],
      message:
        candidates > 1
          ? `has no effect, because a step plays all ${train.size} tasks: choose groupSizes, or fewer tasksPerStep`
          : 'has no effect with one candidate: choose more candidates, or groupSizes',
    };
  yield {
    path: 'training.curriculum.groupSizes',
    test: groupSizes === undefined || tasksPerStep > 1,
    message: 'divides the episodes of a step among its tasks: expected training.tasksPerStep to be at least 2',
  };
  const path = 'training.curriculum.by';
  const endless = `the tasks '${train.name}' have no end, so a task is hardly ever played twice; name a field of tasks`;
  yield { path, test: by !== TASK || Number.isFinite(train.size), message: endless };
  yield {
    path: 'training.curriculum.groupSizes.least',
    test: groupSizes === undefined || groupSizes.least < groupSize,
    message: `a step has training.groupSize (${groupSize}) episodes for each task: expected fewer, so that some are left to divide`,
  };
  if (by === TASK) {
    // Two problems with one id would have one prediction, also if no step plays both.
    const length = Number.isFinite(train.size) ? Math.min(train.size, MOST_NAMED) : 0;
    requireOneProblemEach(
      Array.from({ length }, (_, index) => taskAt(train, index)),
      train.name,
    );
    return;
  }
  const known = tasksOfStep(train, seed, 1, LOOKED_AT).some((task) => fieldText(task, by) !== undefined);
  yield { path, test: known, message: `no task of '${train.name}' has the field '${by}'` };
}
