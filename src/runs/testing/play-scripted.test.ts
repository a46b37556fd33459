import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ArgumentError, RunError } from '@drmas/engine/errors';
import { toolFormatNames } from '@drmas/engine/tool-calls';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { digitTeam, temporaryRoot } from '../../../test/support/tiny-run.js';
import { agent } from '../../teams/team/agent.js';
import { integer } from '../../teams/team/parsers.js';
import { defineTeam } from '../../teams/team/team.js';
import { recordDemonstrations } from '../traces/demonstration-rows.js';
import { playScripted } from './play-scripted.js';

const task = { question: '1+1', answer: '2' };

describe('playScripted', () => {
  it('plays the agents with their texts in order, as a run would', async () => {
    const lines = { solver: ['12', '345'], verifier: ['<reject>'] };
    const { turns, outcome, score } = await playScripted(digitTeam, task, lines);
    expect(outcome.text).toBe('345');
    expect(turns.map(({ agent, text, value, valid, penalty }) => [agent, text, value, valid, penalty])).toEqual([
      ['solver', '12', '1', true, 0],
      ['verifier', '<reject>', '<reject>', true, 0],
      ['solver', '345', '3', true, 0],
    ]);
    expect(score.team).toBeCloseTo(2 / 4, 12); // two of three characters are below 5
    expect(score.agents.verifier).toBeCloseTo(3 / 4, 12);
  });

  it("gives play the team's limits", async () => {
    const team = defineTeam({
      task: z.unknown(),
      agents: { solver: agent() },
      limits: { rounds: 2 },
      async play({ agents: { solver }, limits }) {
        for (let round = 0; round < limits.rounds; round++) await solver('go on');
      },
      reward: () => 0,
    });
    const { turns } = await playScripted(team, {}, { solver: ['a', 'b'] });
    expect(turns.map(({ text }) => text)).toEqual(['a', 'b']);
  });

  it('prices what a parser cannot read', async () => {
    const { turns } = await playScripted(digitTeam, task, { solver: ['?'], verifier: ['<approve>'] });
    expect(turns.map(({ valid, penalty }) => [valid, penalty])).toEqual([
      [false, 0.1],
      [true, 0],
    ]);
  });

  it('takes a function of the prompt in place of texts, and prompts of any length', async () => {
    const echo = defineTeam({
      task: z.object({ question: z.string() }),
      agents: { counter: agent({ parse: integer }) },
      play: async ({ task: { question }, agents: { counter } }) => (await counter(question)).value,
      reward: ({ outcome }) => outcome === 9001,
    });
    const question = 'x'.repeat(9001);
    const { outcome, score } = await playScripted(echo, { question }, ({ prompt }) => `${prompt.match(/x/g)?.length}`);
    expect([outcome, score.team]).toEqual([9001, 1]);
  });

  it.each(toolFormatNames)('writes calls of tools in the format %s, also one that is required', async (tools) => {
    const parameters = { type: 'object', properties: { n: { type: 'number' } } };
    const team = defineTeam({
      task: z.object({}),
      agents: { caller: agent({ tools }) },
      play: async ({ agents: { caller } }) => {
        const choices = ['auto', 'required', { name: 'look' }] as const;
        for (const toolChoice of choices) await caller('x', { tools: [{ name: 'look', parameters }], toolChoice });
      },
      reward: () => 0,
    });
    const line = { toolCalls: [{ name: 'look', arguments: { n: 7 } }] };
    const { turns } = await playScripted(team, {}, { caller: [line, line, line] });
    const calls = turns.map(({ toolCalls = [] }) => toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]));
    expect(calls).toEqual([[['look', { n: 7 }]], [['look', { n: 7 }]], [['look', { n: 7 }]]]);
    expect(new Set(turns.map(({ text }) => text)).size).toBe(1);
  });

  it('fails where a text is missing, an agent is unknown or the task does not fit', async () => {
    await expect(playScripted(digitTeam, task, { solver: ['12'], verifier: [] })).rejects.toThrow(
      "agent 'verifier' was called 1 times; expected at most 0 calls, the number of its texts",
    );
    const wrong = { solvr: ['1'] } as object;
    await expect(playScripted(digitTeam, task, wrong)).rejects.toThrow(
      "no agent 'solvr'; expected one of solver, verifier",
    );
    const untyped = { question: 1 } as unknown as typeof task;
    await expect(playScripted(digitTeam, untyped, {})).rejects.toThrow(ArgumentError);
  });

  it('rejects with what the team threw', async () => {
    const broken = defineTeam({
      task: z.object({}),
      agents: { solver: agent() },
      play: async () => Promise.reject(new Error('no such tool')),
      reward: () => 0,
    });
    await expect(playScripted(broken, {}, {})).rejects.toThrow('no such tool');
  });
});

describe('recordDemonstrations', () => {
  const root = temporaryRoot();
  it.each([
    ['a file that exists', 'there.jsonl', undefined, 'there.jsonl exists; demonstrations need a new file'],
    ['a folder that cannot be made', 'there.jsonl/new.jsonl', undefined, 'there.jsonl/new.jsonl cannot be written: '],
    ['an episode file that does not exist', 'new.jsonl', 'none.jsonl', 'none.jsonl cannot be read: ENOENT'],
  ])('refuses %s', async (_, name, episodes, why) => {
    await writeFile(join(root, 'there.jsonl'), '');
    const played = [await playScripted(digitTeam, task, { solver: ['2'], verifier: ['<approve>'] })];
    const refused = recordDemonstrations(join(root, name), episodes === undefined ? played : join(root, episodes));
    await expect(refused).rejects.toThrow(RunError);
    await expect(refused).rejects.toThrow(why);
  });
});
