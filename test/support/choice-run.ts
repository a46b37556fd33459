/** Runs of a team whose policies are tables of choices. Several steps take a fraction of a second. */

import type { Step } from '@drmas/engine/events';
import { choiceTable } from '@drmas/engine/model';
import type { Task } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { z } from 'zod';
import { defineRecipe, type RecipeInput } from '../../src/method/recipe/define.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import type { Played } from '../../src/method/training/play/played.js';
import { openTraining } from '../../src/method/training/signals/open-training.js';
import { firstProgress } from '../../src/method/training/state/progress.js';
import { learnStep } from '../../src/method/training/step/learn-step.js';
import { playStep, positionAfter } from '../../src/method/training/step/play-step.js';
import { advance, stepEvents } from '../../src/method/training/step/record-step.js';
import type { Learnt } from '../../src/method/training/update/update-policies.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { openRun } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { agent } from '../../src/teams/team/agent.js';
import { oneOf } from '../../src/teams/team/parsers.js';
import { defineTeam, type Reward, type Team } from '../../src/teams/team/team.js';

/** The choices of each agent. `x` is no valid output. */
const CHOICES = ['a', 'b', 'c', 'x'] as const;
type Shown = 'a' | 'b' | 'c' | undefined;

/** A round of the game: what each player showed. */
export interface Round {
  readonly first: Shown;
  readonly second: Shown;
}

/** A function of the game that a test may replace. `chance` is the same whenever the episode is played again. */
export interface GameRules {
  /** Called after the first round; it may throw. */
  readonly between?: (chance: number, round: Round) => void;
  readonly reward?: (rounds: readonly Round[], chance: number) => Reward;
}

const WORTH = { a: 1, b: 0.5, c: 0, x: 0 } as const;
const worth = (shown: Shown) => WORTH[shown ?? 'x'];

/** Named parts of the team, a reward of the second player's own with named parts, and rewards of single turns. */
export const richReward = (rounds: readonly Round[]): Reward => ({
  team: {
    correct: Number(rounds.every(({ first, second }) => first === second)),
    style: rounds.reduce((sum, { first }) => sum + worth(first), 0) / 4,
  },
  agents: {
    second: { shown: rounds.reduce((sum, { second }) => sum + worth(second), 0) / 3, played: rounds.length / 8 },
  },
  turns: rounds.map(({ second }, i) => ({ turn: 2 * i + 1, value: worth(second) / 8 })),
});

const player = () => agent({ parse: oneOf('a', 'b', 'c'), sampling: { maxTokens: 1 } });

/** Two players who show something at the same time, in two rounds, or in one if the first begins with c. */
export function game({ between = () => {}, reward = richReward }: GameRules = {}): Team {
  return defineTeam({
    name: 'game',
    task: z.object({ level: z.string() }),
    agents: { first: player(), second: player() },
    async play({ task, agents: { first, second }, random }) {
      const chance = random.uniform();
      const rounds: Round[] = [];
      for (let envStep = 0; envStep < 2 && rounds[0]?.first !== 'c'; envStep++) {
        const observation = `${task.level} ${rounds[0]?.first} ${rounds[0]?.second}`;
        const one = await first('show', { envStep, observation });
        const two = await second('show', { envStep, observation });
        rounds.push({ first: one.value as Shown, second: two.value as Shown });
        if (envStep === 0) between(chance, rounds[0] as Round);
      }
      return { rounds, chance };
    },
    reward: ({ outcome: { rounds, chance } }) => reward(rounds, chance),
  }) as unknown as Team;
}

const levels = ['easy', 'hard'];
const tasks = {
  name: 'games',
  load: async () => ({
    name: 'games',
    size: 8,
    at: (index: number): Task => ({ id: `t${index}`, data: { level: levels[index % 2] as string } }),
  }),
};

/** The recipe of a game: three steps of two tasks by four episodes, by SGD. */
export function choiceRecipe(changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []): Recipe {
  const policy = { model: choiceTable({ choices: CHOICES }), optimizer: { type: 'sgd', learningRate: 0.5 } } as const;
  const input = {
    name: 'game',
    team: game(),
    tasks,
    policies: { first: policy, second: policy },
    training: { steps: 3, tasksPerStep: 2, groupSize: 4 },
    ...changes,
  };
  return resolveRecipe(defineRecipe(input as RecipeInput), { overrides });
}

/** A step of a run. */
export interface PlayedAndLearnt {
  readonly played: Played;
  readonly learnt: Learnt;
  readonly event: Step;
}

/**
 * Plays and learns the steps of a recipe in memory, as a run does. Writes no file.
 * @param before Sees the episodes of each step before the step learns from them
 */
export async function learnSteps(
  recipe: Recipe,
  before: (played: Played) => void = () => {},
): Promise<PlayedAndLearnt[]> {
  const host = nodeHost({ threads: 1 });
  const opened = await openRun(recipe, await prepareTasks(recipe), host);
  try {
    const run = await openTraining(opened, {});
    await Promise.all(run.learners.map(({ handle }) => handle.publish(1)));
    const progress = { ...firstProgress(run), evaluated: 0 };
    const steps: PlayedAndLearnt[] = [];
    while (progress.step < recipe.training.steps) {
      const played = await playStep(run, progress);
      before(played);
      const learnt = await learnStep(run, progress, played);
      advance(progress, positionAfter(run, progress, played), learnt);
      steps.push({ played, learnt, event: stepEvents(run, played, learnt).at(-1) as Step });
    }
    return steps;
  } finally {
    await opened.dispose();
  }
}
