/** AI SDK 6 as it is on npm plays and trains a team. */
import { generateText, Output, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { trainable } from '../../src/gateway/agents/index.js';
import { playScripted } from '../../src/runs/testing/play-scripted.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';
import { aiSdkCells } from './ai-sdk-cells.js';
import { conformance } from './conformance.js';
import { BOSS, type DeskPlay, HELPER, LEARNING, lookUp, plainPlay, rises, trainDesk } from './desk.js';

const root = temporaryRoot();
afterEach(() => void vi.unstubAllGlobals());

const t = tool({ inputSchema: z.object({ n: z.number() }), execute: async (input) => lookUp(input) });
const stopWhen = stepCountIs(20);

/** The agents as models of the episode. */
const ofEpisode: DeskPlay = async ({ task, agents, signal: abortSignal }) => {
  const boss = new ToolLoopAgent({ model: agents.boss.model, instructions: BOSS, tools: { t }, stopWhen });
  const { text, steps } = await boss.generate({ prompt: task.question, abortSignal });
  const comment = await generateText({ model: agents.helper.model, system: HELPER, prompt: text, abortSignal });
  return { answer: text, comment: comment.text, calls: steps.flatMap(({ toolCalls }) => toolCalls).length };
};

/** The agents of a file that knows nothing of episodes. */
const boss = new ToolLoopAgent({ model: trainable('boss'), instructions: BOSS, tools: { t }, stopWhen });
const atModuleScope: DeskPlay = async ({ task }) => {
  const { textStream, steps } = await boss.stream({ prompt: task.question });
  let answer = '';
  for await (const piece of textStream) answer += piece;
  const { text } = await generateText({ model: trainable('helper'), system: HELPER, prompt: answer });
  return { answer, comment: text, calls: (await steps).flatMap(({ toolCalls }) => toolCalls).length };
};

describe('a team of AI SDK 6', () => {
  it('is the run that plain calls of agents give, bit for bit, at any number of threads', {
    tags: 'verify',
  }, async () => {
    const plain = await trainDesk(root, plainPlay);
    expect(plain.failures).toEqual([]);
    expect(await trainDesk(root, ofEpisode, { threads: 2 })).toEqual(plain);
    expect(await trainDesk(root, atModuleScope)).toEqual(plain);
  });

  it('learns', { tags: 'verify' }, async () => {
    const { rewards, failures } = await trainDesk(root, ofEpisode, { overrides: LEARNING });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});

describe('a program that asks for a sampling of its own', () => {
  it("gets the recipe's, and the events count its own settings", { tags: 'verify' }, async () => {
    vi.stubGlobal('AI_SDK_LOG_WARNINGS', false);
    const asks = { temperature: 0, seed: 1 };
    const team = defineTeam({
      task: z.object({ question: z.string() }),
      agents: { solver: agent({ sampling: { maxTokens: 3 } }), judge: agent({ sampling: { maxTokens: 3 } }) },
      play: async ({ task, agents: { solver, judge } }) => {
        const { text } = await generateText({ model: solver.model, prompt: task.question, ...asks });
        await generateText({ model: solver.model, prompt: task.question, temperature: 0 });
        await generateText({ model: judge.model, prompt: task.question });
        return text;
      },
      reward: ({ outcome }) => outcome.length,
    });
    const at = (index: number) => ({ id: String(index), data: { question: `${index}+1` } });
    const tasks = { name: 'sums', load: async () => ({ name: 'sums', size: 4, at }) };
    const training = { steps: 1, tasksPerStep: 2, groupSize: 2 };
    const [step] = await stepsOf(await trainTiny(root, tinyRecipe({ team, tasks, training })));
    expect(step?.agents.solver).toMatchObject({ turns: 8, ignored: { seed: 4, temperature: 8 } });
    expect(step?.agents.judge).not.toHaveProperty('ignored');
    expect(step?.agents.solver?.entropy).toBeGreaterThan(0); // of temperature 1
  });
});

describe('a program whose history outgrows the context', () => {
  it('may begin anew, and the events count refused calls', { tags: 'verify' }, async () => {
    const team = defineTeam({
      task: z.object({ question: z.string() }),
      agents: { solver: agent({ sampling: { maxTokens: 3 } }) },
      play: async ({ task: { question }, agents: { solver } }) => {
        const ask = async (prompt: string) => (await generateText({ model: solver.model, prompt })).text;
        return ask(question.repeat(1000)).catch(() => ask(question));
      },
      reward: ({ outcome }) => outcome.length,
    });
    const at = (index: number) => ({ id: String(index), data: { question: `${index}+1` } });
    const tasks = { name: 'sums', load: async () => ({ name: 'sums', size: 4, at }) };
    const training = { steps: 1, tasksPerStep: 2, groupSize: 2 };
    const [step] = await stepsOf(await trainTiny(root, tinyRecipe({ team, tasks, training })));
    expect(step?.episodes).toEqual({ played: 4, failed: 0, refused: { solver: 4 } });
    expect(step?.agents.solver?.turns).toBe(4);
  });
});

describe('a tool whose schema changes the model’s arguments', () => {
  it.each<[string, z.ZodType<object>, boolean]>([
    ['nothing', z.object({ n: z.number() }), true],
    ['a default', z.object({ n: z.number(), unit: z.string().default('m') }), false],
    ['a transformation', z.object({ n: z.number().transform((n) => 10 * n) }), false],
  ])('is read as the framework gives it back: %s', async (_, inputSchema, isExact) => {
    const look = tool({ inputSchema, execute: async (input) => JSON.stringify(input) });
    const team = defineTeam({
      task: z.object({}),
      agents: { boss: agent({ tools: 'plain' }) },
      reward: () => 0,
      play: ({ agents: { boss } }) => generateText({ model: boss.model, prompt: 'x', tools: { look }, stopWhen }),
    });
    const { turns } = await playScripted(team, {}, { boss: ['@look( 7 )', 'fine'] });
    const [first, second] = turns;
    expect(second?.history).toMatchObject({ exact: Number(isExact), foreign: Number(!isExact) });
    const read = [...(first?.prompt ?? []), ...(first?.response ?? [])];
    expect(read.every((id, i) => second?.prompt[i] === id)).toBe(isExact);
  });
});

conformance('AI SDK 6', aiSdkCells({ generateText, streamText, tool, ToolLoopAgent, Output, stopAfter: stepCountIs }));
