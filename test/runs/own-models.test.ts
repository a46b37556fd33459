/** Agents that a function of the recipe, or a model of AI SDK, answers for. */
import { join } from 'node:path';
import type { TextRequest } from '@drmas/engine/contract';
import type { CompleteText } from '@drmas/engine/endpoints';
import type { RunEvent, Step } from '@drmas/engine/events';
import { nodeFiles } from '@drmas/engine/platform';
import { MockLanguageModelV3 } from 'ai/test';
import { describe, expect, it } from 'vitest';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { type FrozenInput, frozen } from '../../src/method/recipe/frozen.js';
import { recipeJson } from '../../src/method/recipe/recipe.js';
import { readEpisodes } from '../../src/method/store/episode-files.js';
import { resolveRecipe } from '../../src/runs/composition/resolve-recipe.js';
import { evaluate, resume, train } from '../../src/runs/run/api.js';
import { temporaryRoot, tinyDefinition } from '../support/tiny-run.js';

const root = temporaryRoot();
const brief = ['training.steps=2', 'training.checkpointEvery=1', 'evaluation.every=2', 'warmStart.steps=4'];
const judgedBy = (verifier: FrozenInput, changes: Partial<RecipeInput> = {}) =>
  tinyDefinition({ assign: { solver: 'solver', verifier }, ...changes } as Partial<RecipeInput>);
const approve: CompleteText = () => ({ text: '<approve>' });
const stepsOf = (events: readonly { type: string }[]) => events.filter((event): event is Step => event.type === 'step');

describe('a frozen agent that a function answers for', () => {
  it('gets messages and sampling, is recorded by its name, and is asked again after a resume and in evaluations', async () => {
    const requests: TextRequest[] = [];
    const definition = judgedBy(
      frozen({
        name: 'rule',
        price: { write: 2e6 },
        complete: async (request, signal) => {
          expect(signal.aborted).toBe(false);
          requests.push(request);
          return { text: '<approve>', promptTokens: 7, responseTokens: 1 };
        },
      }),
    );
    const run = join(root, 'function');
    const controller = new AbortController();
    const seen: RunEvent[] = [];
    const stop = (event: RunEvent) => {
      seen.push(event);
      if (event.type === 'checkpoint' && event.step === 1) controller.abort(new Error('enough'));
    };
    const options = { run, set: brief, threads: 1, sinks: [{ write: stop }], signal: controller.signal };
    await expect(train(definition, options)).rejects.toThrow('enough');
    expect(requests[0]).toMatchObject({
      messages: [{ role: 'system', content: '<verifier>' }, { role: 'user' }, { role: 'assistant' }],
      maxTokens: 2,
      temperature: 1,
    });
    expect(new Set(requests.map(({ seed }) => seed)).size).toBe(requests.length);
    expect(stepsOf(seen)[0]?.agents.verifier).toMatchObject({ frozen: true, cost: expect.any(Number) });
    expect(seen).toContainEqual(
      expect.objectContaining({ type: 'warning', message: expect.stringMatching(/^verifier: rule may answer/) }),
    );

    const asked = requests.length;
    const { events } = await resume(run, definition, { threads: 1 });
    expect(stepsOf(events).map(({ step }) => step)).toEqual([1, 2]);
    expect(requests.length).toBeGreaterThan(asked);
    const episodes = await readEpisodes(nodeFiles, join(run, 'episodes', 'step-000002.jsonl'));
    for (const { turns } of episodes)
      expect(turns.find(({ agent }) => agent === 'verifier')).toMatchObject({
        text: '<approve>',
        frozen: true,
        endpoint: { promptTokens: 7, responseTokens: 1 },
      });
    expect((await evaluate(run, { recipe: definition, threads: 1 })).agents.verifier?.turns).toBeGreaterThan(0);
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no luck'))],
    [
      'throws at once',
      () => {
        throw new Error('no luck');
      },
    ],
  ])('fails the episodes whose request it %s, and the run goes on', async (_, fail) => {
    let calls = 0;
    const complete: CompleteText = (request, signal) => (calls++ % 3 === 0 ? fail() : approve(request, signal));
    const { events } = await train(judgedBy(frozen({ complete, concurrency: 1 })), {
      run: join(root, `fails-${calls}-${_.length}`),
      set: brief,
      threads: 1,
    });
    expect(stepsOf(events)).toHaveLength(2);
    const failed = events.filter(({ type }) => type === 'episode.failed');
    expect(failed[0]).toMatchObject({ message: expect.stringContaining('assign.verifier: no luck') });
  });

  it.each([
    ['nothing', undefined, 'nothing'],
    ['a string', 'yes', '"yes"'],
    ['no text', { finishReason: 'stop' }, 'text'],
    ['another end', { text: 'yes', finishReason: 'because' }, 'finishReason'],
  ])('that returns %s ends the run with what is expected', async (name, answer, told) => {
    const complete = (() => answer) as unknown as CompleteText;
    const running = train(judgedBy(frozen({ complete })), { run: join(root, `odd ${name}`), set: brief, threads: 1 });
    await expect(running).rejects.toThrow(/assign\.verifier: complete returned .*, expected \{ text \}/);
    await expect(running).rejects.toThrow(told);
  });

  it('or a constant text, which costs no tokens and repeats', async () => {
    const definition = judgedBy(frozen({ text: '<approve>' }));
    const { events } = await train(definition, { run: join(root, 'constant'), set: brief, threads: 1 });
    const last = events.findLast((event) => event.type === 'evaluation');
    expect(last?.agents.verifier?.tokens).toEqual({ read: 0, written: 0, trained: 0 });
    expect(events.some((event) => event.type === 'warning' && event.code === 'endpoint.nondeterministic')).toBe(false);
  });

  it('is not mistaken for another function with the same settings, and shares its limit with itself', async () => {
    const asked = { solver: 0, verifier: 0 };
    let [now, most] = [0, 0];
    const counting =
      (agent: keyof typeof asked): CompleteText =>
      async () => {
        asked[agent]++;
        most = Math.max(most, ++now);
        await Promise.resolve();
        now--;
        return { text: agent === 'solver' ? '1' : '<approve>' };
      };
    const both = {
      solver: frozen({ complete: counting('solver') }),
      verifier: frozen({ complete: counting('verifier') }),
    };
    await evaluate(tinyDefinition({ assign: both } as Partial<RecipeInput>), { threads: 1 });
    expect(asked.solver).toBeGreaterThan(0);
    expect(asked.verifier).toBe(asked.solver);

    most = 0;
    const one = frozen({ complete: counting('solver'), concurrency: 1 });
    const shared = { solver: one, verifier: one };
    await evaluate(tinyDefinition({ assign: shared } as Partial<RecipeInput>), { threads: 1 });
    expect(most).toBe(1);
  });

  it('is in no file: recipe.json has its settings, and an override cannot name it', () => {
    const resolve = (verifier: FrozenInput, ...overrides: string[]) => resolveRecipe(judgedBy(verifier), { overrides });
    const recipe = resolve(frozen({ complete: approve }), 'assign.verifier.concurrency=2');
    expect(recipeJson(recipe).assign).toEqual({
      solver: 'solver',
      verifier: { type: 'text', name: 'a function', concurrency: 2 },
    });
    expect(JSON.stringify(recipeJson(recipe))).not.toContain('functions');
    expect(() =>
      resolve(frozen({ url: 'http://127.0.0.1:1/v1', model: 'm' }), 'assign.verifier={"type":"text"}'),
    ).toThrow(/^assign\.verifier: only the code of a recipe can name a function/);
    expect(() => resolve({ type: 'text' } as unknown as FrozenInput)).toThrow(
      /^assign\.verifier\.complete: expected a function, got nothing/,
    );
    expect(resolve(frozen({ complete: approve }), 'assign.verifier=verifier').functions).toBeUndefined();
  });
});

describe('a frozen agent that a model of AI SDK answers for', () => {
  const usage = {
    inputTokens: { total: 11, noCache: 11, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 3, text: 3, reasoning: undefined },
  };
  const answering = (...texts: string[]) =>
    new MockLanguageModelV3({
      provider: 'someone',
      modelId: 'large',
      doGenerate: async () => ({
        content: texts.map((text) => ({ type: 'text' as const, text })),
        finishReason: { unified: 'stop' as const, raw: 'stop' },
        usage,
        warnings: [],
      }),
    });

  it('is asked with the prompt of its interface, and counted as its provider counts', async () => {
    const model = answering('<app', 'rove>');
    const run = join(root, 'ai-sdk');
    const { events } = await train(judgedBy(frozen(model)), { run, set: brief, threads: 1 });
    expect(stepsOf(events)).toHaveLength(2);
    expect(model.doGenerateCalls[0]).toMatchObject({
      prompt: [
        { role: 'system', content: '<verifier>' },
        { role: 'user', content: [{ type: 'text', text: expect.any(String) }] },
        { role: 'assistant', content: expect.any(Array) },
      ],
      maxOutputTokens: 2,
      temperature: 1,
      seed: expect.any(Number),
    });
    const [episode] = await readEpisodes(nodeFiles, join(run, 'episodes', 'step-000001.jsonl'));
    expect(episode?.turns.find(({ agent }) => agent === 'verifier')).toMatchObject({
      text: '<approve>',
      value: '<approve>',
      endpoint: { promptTokens: 11, responseTokens: 3 },
    });
    expect(recipeJson(resolveRecipe(judgedBy(frozen(model)), {})).assign).toMatchObject({
      verifier: { type: 'text', name: 'someone/large' },
    });
  });

  it('that is no model is refused at once', () => {
    expect(() => frozen({ specificationVersion: 'v3', provider: 'a', modelId: 'b' })).toThrow(/doGenerate/);
  });
});
