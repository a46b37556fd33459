import { ArgumentError } from '@drmas/engine/errors';
import { generateText, type LanguageModel, streamText } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { takesTime } from '../../../test/support/time-and-chance.js';
import { playScripted } from '../../runs/testing/play-scripted.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { trainable } from './trainable.js';

const text = { type: 'text' as const, text: 'production' };
const usage2 = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const second = {
  specificationVersion: 'v2',
  provider: 'mock',
  modelId: 'older',
  supportedUrls: {},
  doGenerate: async () => ({ content: [text], finishReason: 'stop', usage: usage2, warnings: [] }),
  doStream: async () => ({
    stream: simulateReadableStream({
      chunks: [
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'production' },
        { type: 'text-end', id: '0' },
        { type: 'finish', finishReason: 'stop', usage: usage2 },
      ],
    }),
  }),
};
const tokens = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
const usage3 = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: undefined } };
const third = new MockLanguageModelV3({
  modelId: 'gpt',
  doGenerate: async () => ({
    content: [text],
    usage: usage3,
    warnings: [],
    finishReason: { unified: 'stop', raw: undefined },
  }),
  doStream: async () => ({
    stream: simulateReadableStream({
      chunks: [
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'production' },
        { type: 'text-end', id: '0' },
        { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage: usage3 },
      ],
    }),
  }),
});

const generated = async (model: LanguageModel) => (await generateText({ model, prompt: 'x', maxRetries: 0 })).text;
const streamed = async (model: LanguageModel) => {
  const result = streamText({ model, prompt: 'x', maxRetries: 0 });
  return `${await result.text} ${(await result.usage).outputTokens} ${await result.finishReason}`;
};

/** The result of a function in an episode whose agents answer `trained`. */
async function inEpisode<T>(play: () => Promise<T>): Promise<T> {
  const team = defineTeam({ task: z.object({}), agents: { solver: agent() }, play, reward: () => 0 });
  return (await playScripted(team, {}, () => 'trained')).outcome;
}

describe('a trainable model', () => {
  it.each([
    ['v2', second],
    ['v3', third],
  ])('of version %s is the agent in an episode and the other model everywhere else', async (version, otherwise) => {
    const silent = globalThis as { AI_SDK_LOG_WARNINGS?: boolean };
    silent.AI_SDK_LOG_WARNINGS = false;
    const model = trainable('solver', { otherwise });
    expect(model.specificationVersion).toBe(version);
    expect([await generated(model), await streamed(model)]).toEqual(['production', 'production 1 stop']);
    expect(await inEpisode(() => generated(model))).toBe('trained');
    expect(await inEpisode(() => streamed(model))).toBe('trained 8 stop');
    expect(await generated(model)).toBe('production');
    delete silent.AI_SDK_LOG_WARNINGS;
  });

  it('shows the name of the model that answers', async () => {
    const model = trainable('solver', { otherwise: third });
    expect([model.provider, model.modelId]).toEqual([third.provider, 'gpt']);
    expect(await inEpisode(async () => [model.provider, model.modelId])).toEqual(['drmas', 'solver']);
  });

  it('without another model names the missing option', async () => {
    expect(trainable('solver').specificationVersion).toBe('v3');
    await expect(generated(trainable('solver'))).rejects.toThrow(
      "trainable('solver') was called outside of an episode; expected trainable('solver', { otherwise })",
    );
  });

  it('rejects once its episode is over, so that loops end', async () => {
    const model = trainable('solver', { otherwise: third });
    let late: Promise<string> | undefined;
    await inEpisode(async () => {
      late = takesTime(20).then(() => generated(model));
    });
    await expect(late).rejects.toThrow('the episode is over');
  });

  it.each([
    ['', undefined],
    ['solver', 'openai/gpt-5-mini'],
    ['solver', { specificationVersion: 'v1', provider: 'p', modelId: 'm' }],
    ['solver', 7],
  ])('refuses %j with %j', (name, otherwise) => {
    expect(() => trainable(name, { otherwise } as object)).toThrow(ArgumentError);
  });
});
