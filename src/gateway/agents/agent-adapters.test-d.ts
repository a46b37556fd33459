import { generateText, type LanguageModel, ToolLoopAgent, wrapLanguageModel } from 'ai';
import OpenAI from 'openai';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { agent } from '../../teams/team/agent.js';
import { boxed } from '../../teams/team/parsers.js';
import { defineTeam, type Reply } from '../../teams/team/team.js';
import { boundFetch, trainable } from './index.js';

type ModelObject = Exclude<LanguageModel, string>;

describe('the adapters of an agent have the types of their frameworks', () => {
  it('in play, beside the function that the agent stays', () => {
    defineTeam({
      task: z.object({ question: z.string() }),
      agents: { solver: agent({ parse: boxed }) },
      async play({ task, agents: { solver }, openai, signal: abortSignal }) {
        expectTypeOf(await solver(task.question)).toEqualTypeOf<Reply<string>>();
        expectTypeOf(solver.model).toExtend<ModelObject>();
        const { text } = await generateText({ model: solver.model, prompt: task.question, abortSignal });
        new ToolLoopAgent({ model: wrapLanguageModel({ model: solver.model, middleware: [] }) });
        expectTypeOf(new OpenAI({ ...solver.openai, maxRetries: 0 })).toEqualTypeOf<OpenAI>();
        new OpenAI(openai);
        // @ts-expect-error: no such agent
        openai.model;
        return text;
      },
      reward: ({ outcome }) => outcome === '',
    });
  });

  it('at the top of a module', () => {
    expectTypeOf(trainable('solver')).toExtend<ModelObject>();
    const otherwise: ModelObject = trainable('solver');
    trainable('solver', { otherwise });
    // @ts-expect-error: a string is no model
    trainable('solver', { otherwise: 'openai/gpt-5-mini' });
    new OpenAI({ baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch });
  });
});
