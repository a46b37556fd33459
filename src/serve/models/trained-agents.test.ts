import { nodeHost } from '@drmas/engine/platform';
import { APICallError, generateText, stepCountIs, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { temporaryRoot, tinyRecipe, trainTiny } from '../../../test/support/tiny-run.js';
import { trainable } from '../../gateway/agents/trainable.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { Chat } from './chat.js';
import { openAgentModels } from './open-agent-models.js';
import { type TrainedAgents, trainedAgents } from './trained-agents.js';

const root = temporaryRoot();
let run: string;
let agents: TrainedAgents;
beforeAll(async () => {
  run = (await trainTiny(root, tinyRecipe({}, ['training.steps=1']))).path;
  agents = trainedAgents(run, { threads: 1 });
});
afterAll(async () => {
  vi.unstubAllGlobals();
  await agents.dispose();
});

/** The answer of `drmas chat` with greedy sampling. */
async function chatted(name: string, text: string): Promise<string> {
  const { agentModels, dispose } = await openAgentModels({ from: run, agent: name }, nodeHost({ threads: 1 }));
  const agentModel = agentModels.get(name);
  let answer = '';
  const chat = agentModel && new Chat(agentModel, { seed: 1, temperature: 0 });
  await chat?.say(text, new AbortController().signal, (piece) => {
    answer += piece;
  });
  await dispose();
  return answer;
}

describe('trained agents in a program', () => {
  it('answer as in a conversation, whole or as a stream, with the sampling of the call', async () => {
    const expected = await chatted('solver', '1+2');
    const ask = { model: agents.model('solver'), prompt: '1+2' };
    const { text, warnings } = await generateText({ ...ask, temperature: 0 });
    expect([text, warnings]).toEqual([expected, []]);
    expect(await streamText({ ...ask, temperature: 0 }).text).toBe(expected);
    const drawn = async (seed: number) => (await generateText({ ...ask, seed, maxOutputTokens: 12 })).text;
    expect(await drawn(1)).toBe(await drawn(1));
    const many = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(drawn));
    expect(new Set(many).size).toBeGreaterThan(1);
    const [first = ''] = expected;
    const stopped = await generateText({ ...ask, temperature: 0, stopSequences: [first] });
    expect(stopped.text).toBe('');
    vi.stubGlobal('AI_SDK_LOG_WARNINGS', false);
    const penalised = await generateText({ ...ask, temperature: 0, presencePenalty: 1, stopWhen: stepCountIs(1) });
    expect(penalised.warnings).toMatchObject([{ feature: 'presencePenalty' }]);
  });

  it('are used only outside of episodes', async () => {
    const model = trainable('solver', { otherwise: agents.model('solver') });
    const ask = async () => (await generateText({ model, prompt: '1+2', temperature: 0 })).text;
    expect(await ask()).toBe(await chatted('solver', '1+2'));
    const team = defineTeam({ task: z.object({}), agents: { solver: agent() }, play: ask, reward: () => 0 });
    expect((await playScripted(team, {}, () => 'trained')).outcome).toBe('trained');
  });

  it('refuse invalid calls, and are read at the first call', async () => {
    const ask = (model: ReturnType<TrainedAgents['model']>, prompt = 'x') => generateText({ model, prompt });
    const long = await ask(agents.model('solver'), 'x'.repeat(1e5)).catch((error: unknown) => error);
    expect(APICallError.isInstance(long) && long.data).toMatchObject({ error: { code: 'context_length_exceeded' } });
    await expect(ask(agents.model('solvr'))).rejects.toThrow(/has no agent 'solvr'; did you mean 'solver'/);
    const nowhere = trainedAgents(root).model('solver');
    await expect(ask(nowhere)).rejects.toThrow(/is neither a run nor a model/);
    const disposed = trainedAgents(run);
    await disposed.dispose();
    await expect(ask(disposed.model('solver'))).rejects.toThrow(/were disposed of/);
  });
});
