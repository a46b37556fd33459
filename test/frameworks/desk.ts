/**
 * The team that every framework plays: a boss looks something up with a tool and answers, a helper comments. What they
 * earn is what their digits are worth, so that tiny models learn it in seconds.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Step } from '@drmas/engine/events';
import { mean, type RandomStream } from '@drmas/engine/math';
import { tinyDecoder } from '@drmas/engine/model';
import { assistant, system, type TaskSource, type Trace, toolResult, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe, type RecipeInput } from '../../src/method/recipe/define.js';
import { readEpisodes, type StoredEpisode } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { tinySizes } from '../../src/runs/testing/train-tiny.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam, type PlayContext } from '../../src/teams/team/team.js';
import { drmas } from '../support/command-line.js';
import { filesOf, stepsOf, trainTiny } from '../support/tiny-run.js';

const digits = (text: string) => (/^\d+$/.test(text) ? text : undefined);
const share = (text: string, pattern: RegExp) => (text.match(pattern)?.length ?? 0) / (text.length + 1);

const sampling = { maxTokens: 3 };
const agents = {
  boss: agent({ tools: 'plain', parse: digits, sampling, invalidPenalty: 0.1 }),
  helper: agent({ parse: digits, sampling, invalidPenalty: 0.1 }),
};

export interface DeskOutcome {
  readonly answer: string;
  readonly comment: string;
  /** How often the boss looked something up. */
  readonly calls: number;
}

/** How the team plays, in one framework or another. */
export type DeskPlay = (context: PlayContext<{ question: string }, typeof agents>) => Promise<DeskOutcome>;

/** The instructions of the agents, in the symbols of their models. */
export const BOSS = 'boss';
export const HELPER = 'helper';

/** The tool, whose schema each framework makes of its own kind. */
export const lookUp = ({ n }: { readonly n: number }): string => String(2 * n);

const tool = { name: 't', parameters: z.toJSONSchema(z.object({ n: z.number() })) };

/** The team played with agents as functions. All other ways must give the same result. */
export const plainPlay: DeskPlay = async ({ task, agents: { boss, helper } }) => {
  const messages = [system(BOSS), user(task.question)];
  let calls = 0;
  for (;;) {
    const reply = await boss(messages, { tools: [tool] });
    if (reply.toolCalls.length > 0) {
      const results = reply.toolCalls.map((call) => toolResult(call, lookUp(JSON.parse(call.arguments))));
      messages.push(assistant(reply), ...results);
      calls += results.length;
      continue;
    }
    const comment = await helper([system(HELPER), user(reply.content)]);
    return { answer: reply.content, comment: comment.content, calls };
  }
};

const deskTeam = (play: DeskPlay) =>
  defineTeam({
    name: 'desk',
    task: z.object({ question: z.string() }),
    agents,
    play,
    reward: ({ outcome: { answer, comment, calls } }) => ({
      team: { answer: share(answer, /[0-4]/g), tool: calls > 0 ? 0.3 : 0 },
      agents: { helper: share(comment, /[3-7]/g) },
    }),
  });

const tasks: TaskSource<{ question: string }> = {
  name: 'digits',
  load: async (split) => ({
    name: `digits ${split}`,
    size: 10,
    at: (index) => ({ id: `${split} ${index}`, data: { question: String(index) } }),
  }),
  trace: (random): Trace => {
    const digit = () => String(random.integer(0, 9));
    if (random.chance(0.3))
      return { agent: 'helper', messages: [system(HELPER), user(digit() + digit())], response: digit() + digit() };
    const question = [system(BOSS), user(digit())];
    const call = callOf(random);
    return random.chance(0.5)
      ? { agent: 'boss', messages: question, response: call }
      : { agent: 'boss', messages: [...question, assistant(call), user(digit())], response: digit() + digit() };
  },
};

const callOf = (random: RandomStream) => `@t(${random.integer(1, 3)})`;

const model = tinyDecoder({
  ...tinySizes,
  context: 64,
  tokenizer: {
    type: 'symbols',
    symbols: ['<pad>', '<end>', '<ask>', BOSS, HELPER, '@t(1)', '@t(2)', '@t(3)', ...'0123456789'],
    stop: '<end>',
    endOfUser: '<ask>',
    endOfAssistant: '<end>',
  },
});

/** The recipe with a way of playing. */
const deskRecipe = (play: DeskPlay, changes: Partial<RecipeInput> = {}, overrides: readonly string[] = []) =>
  resolveRecipe(
    defineRecipe({
      name: 'desk',
      team: deskTeam(play),
      tasks,
      model,
      warmStart: { steps: 100, batch: 16, learningRate: 2e-2 },
      training: { steps: 2, tasksPerStep: 4, groupSize: 8 },
      policies: { boss: { optimizer: { learningRate: 2e-2 } }, helper: { optimizer: { learningRate: 2e-2 } } },
      evaluation: { every: 100, tasks: 2, samples: 1 },
      ...changes,
    } as RecipeInput),
    { overrides },
  );

type SampledTurn = Pick<
  StoredEpisode['turns'][number],
  'id' | 'agent' | 'prompt' | 'response' | 'logprobs' | 'advantage' | 'valid'
>;

/** The results of a run that do not depend on how the team was played. */
export interface DeskRun {
  readonly turns: readonly { readonly turns: readonly SampledTurn[] }[];
  readonly weights: Readonly<Record<string, string>>;
  readonly rewards: readonly number[];
  readonly failures: readonly unknown[];
}

/** Trains the team. */
export async function trainDesk(
  root: string,
  play: DeskPlay,
  { overrides = [], threads = 1 }: { readonly overrides?: readonly string[]; readonly threads?: number } = {},
): Promise<DeskRun> {
  const run = await trainTiny(root, deskRecipe(play, {}, overrides), { threads });
  const steps: Step[] = await stepsOf(run);
  const episodes: StoredEpisode[] = [];
  for (const { step } of steps) episodes.push(...(await readEpisodes(nodeFiles, run.stepEpisodesPath(step))));
  const files = await filesOf(run);
  return {
    turns: episodes.map(({ task, sample, turns, score }) => ({
      task: task.id,
      sample,
      score,
      turns: turns.map(({ id, agent, prompt, response, logprobs, advantage, valid }) => {
        return { id, agent, prompt, response, logprobs, advantage, valid } as SampledTurn; // ids are there in new runs
      }),
    })),
    weights: Object.fromEntries(Object.entries(files).filter(([path]) => path.endsWith('.safetensors'))),
    rewards: steps.map(({ reward }) => reward?.mean ?? Number.NaN),
    failures: episodes.flatMap(({ failure }) => failure ?? []),
  };
}

/** Steps enough to learn something. */
export const LEARNING = ['training.steps=15'];

/** Whether the last rewards of a run are clearly better than its first. */
export function rises(rewards: readonly number[]): boolean {
  return mean(rewards.slice(-3)) > mean(rewards.slice(0, 3)) + 0.1;
}

/**
 * The tests of a team of a framework that leaves empty messages out of its conversations.
 * @param root The folder of the runs
 */
export function testWithoutEmptyMessages(framework: string, root: string, play: DeskPlay): void {
  describe(`a team of ${framework}`, () => {
    it('says what plain calls of agents say, bit for bit, but behind the empty messages that it leaves out', async () => {
      const overrides = ['training.steps=1'];
      const plain = await trainDesk(root, plainPlay, { overrides });
      const sampled = sampledBehindWords(plain, plain);
      expect(sampled.length).toBeGreaterThan(plain.turns.length / 2);
      expect(sampledBehindWords(await trainDesk(root, play, { overrides }), plain)).toEqual(sampled);
    });

    it('learns', async () => {
      const { rewards, failures } = await trainDesk(root, play, { overrides: LEARNING });
      expect(failures).toEqual([]);
      expect(rises(rewards)).toBe(true);
    });
  });
}

/**
 * The samples of a run of one step, in those episodes of the plain run whose boss ended its turn with a word: behind an
 * empty message the helper reads something else.
 */
function sampledBehindWords(run: DeskRun, plain: DeskRun): unknown[] {
  return plain.turns.flatMap(({ turns }, i) =>
    turns.at(-2)?.response.length === 1 ? [] : [run.turns[i]?.turns.map(({ advantage: _, ...turn }) => turn)],
  );
}

/**
 * The test of an example of a framework: `drmas init` writes it into a folder, and it trains there.
 * @param folder The folder with the framework's packages
 * @param packages The packages that the written package.json must name in the versions of the folder
 */
export function exampleTrains(name: string, folder: string, packages: readonly string[]): void {
  describe(`the example \`${name}\``, () => {
    const there = join(folder, `example-${name}`); // imports find the packages of the folder above
    afterEach(() => rm(there, { recursive: true, force: true }));

    it('trains as `drmas init` writes it, with the packages that are tested here', async () => {
      expect(await drmas(['init', there, '--example', name])).toMatchObject({ code: 0 });
      const { dependencies } = JSON.parse(await readFile(join(there, 'package.json'), 'utf8'));
      const tested = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')).dependencies;
      for (const each of packages) expect(dependencies[each], each).toBe(tested[each]);
      const run = join(there, 'run');
      const small = ['warmStart.steps=4', 'training.steps=2', 'training.tasksPerStep=2', 'training.groupSize=2'];
      const sets = [...small, 'evaluation.tasks=2', 'evaluation.samples=1'].flatMap((one) => ['--set', one]);
      const { code, err } = await drmas(['train', join(there, 'recipe.ts'), '--run', run, '--threads', '1', ...sets]);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      const episodes = await readEpisodes(nodeFiles, join(run, 'episodes', 'step-000002.jsonl'));
      expect(episodes.filter(({ failure }) => failure !== undefined)).toEqual([]);
      expect(episodes).toHaveLength(4);
      for (const { turns } of episodes) {
        expect(turns[0]).toMatchObject({ agent: 'buyer', tools: [{ name: 'price' }] });
        expect(turns.at(-1)?.agent).toBe('cashier');
      }
    });
  });
}
