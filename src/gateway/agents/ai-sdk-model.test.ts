import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { describe, expect, it } from 'vitest';
import type { ModelCall } from '../../teams/team/language-model.js';
import type { ModelAnswer, ModelRequest } from '../dialects/dialect.js';
import { agentModel } from './ai-sdk-model.js';

const call = { id: 'call_t1_0', name: 'look', arguments: '{"b": 1.0,  "a":"caf\\u00e9"}' };
const answer = (changes: Partial<ModelAnswer>): ModelAnswer => ({
  id: 't1',
  model: 'solver',
  content: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: { promptTokens: 5, responseTokens: 3 },
  ...changes,
});
const calling = answer({ content: 'Let me look.', reasoning: 'hm', toolCalls: [call], finishReason: 'tool_calls' });

/** A model that gives these answers in turn, and its requests. */
function scripted(...answers: ModelAnswer[]) {
  const requests: ModelRequest[] = [];
  const model = agentModel('solver', async (request) => {
    const next = answers[requests.push(request) - 1];
    if (next === undefined) throw new Error('no answer is left');
    return next;
  });
  return { model, requests };
}

const look = tool({
  description: 'Looks.',
  strict: true,
  inputSchema: jsonSchema<{ a: string }>({ type: 'object', properties: { a: { type: 'string' } } }),
  execute: async ({ a }) => ({ seen: a }),
});

describe('a model of AI SDK', () => {
  it('names the tool whose result is no JSON', async () => {
    const { model } = scripted(calling);
    const counting = tool({ inputSchema: jsonSchema<object>({ type: 'object' }), execute: async () => ({ n: 1n }) });
    const ask = { prompt: '1+1', tools: { look: counting }, stopWhen: stepCountIs(3), maxRetries: 0 };
    await expect(generateText({ model, ...ask })).rejects.toThrow(
      /^the result of the tool 'look' is no JSON: .*BigInt/,
    );
  });

  it('returns the response under the id of its turn, streamed or not', async () => {
    const ask = { system: 'Solve', prompt: '1+1', tools: { look }, stopWhen: stepCountIs(3) };
    const whole = scripted(calling, answer({ id: 't2', content: 'two' }));
    const generated = await generateText({ model: whole.model, ...ask });
    const pieces = scripted(calling, answer({ id: 't2', content: 'two' }));
    const streamed = streamText({ model: pieces.model, ...ask });
    await streamed.consumeStream();
    expect(pieces.requests).toEqual(whole.requests);
    expect([generated.text, await streamed.text]).toEqual(['two', 'two']);
    expect(generated.steps[0]?.reasoningText).toBe('hm');
    expect(generated.totalUsage).toMatchObject({ inputTokens: 10, outputTokens: 6, totalTokens: 16 });
    expect(generated.steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    const [first, second] = whole.requests;
    expect(first).toMatchObject({
      model: 'solver',
      messages: [
        { role: 'system', content: 'Solve' },
        { role: 'user', content: '1+1' },
      ],
      tools: [
        { name: 'look', description: 'Looks.', strict: true, parameters: { properties: { a: { type: 'string' } } } },
      ],
      toolChoice: 'auto',
    });
    expect(second?.messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: 'Let me look.',
        reasoning: 'hm',
        turnId: 't1',
        toolCalls: [{ ...call, arguments: '{"b":1,"a":"café"}' }], // the framework's spelling; the id names the turn
      },
      { role: 'tool', content: '{"seen":"café"}', toolCallId: 'call_t1_0', name: 'look' },
    ]);
  });

  it('answers with an empty text if there is no other part, so that a part can carry the id', async () => {
    const { content } = await scripted(answer({})).model.doGenerate({ prompt: [] });
    expect(content).toEqual([{ type: 'text', text: '', providerMetadata: { drmas: { turn: 't1' } } }]);
  });

  it('passes a schema on, and reads a fitting response', async () => {
    const { model, requests } = scripted(answer({ content: '{"ok":true}' }));
    const schema = jsonSchema<{ ok: boolean }>({ type: 'object', properties: { ok: { type: 'boolean' } } });
    const { output } = await generateText({ model, prompt: 'well?', output: Output.object({ schema }) });
    expect(output).toEqual({ ok: true });
    expect(requests[0]?.responseSchema).toMatchObject({ properties: { ok: { type: 'boolean' } } });
  });

  it('warns of settings that the recipe decides, and lowers the length alone', async () => {
    const { model, requests } = scripted(answer({}));
    const ask = { prompt: 'x', temperature: 0.2, topP: 1, seed: 3, stopSequences: ['.'], maxOutputTokens: 7 };
    const silent = globalThis as { AI_SDK_LOG_WARNINGS?: boolean };
    silent.AI_SDK_LOG_WARNINGS = false;
    const { warnings } = await generateText({ model, ...ask });
    delete silent.AI_SDK_LOG_WARNINGS;
    expect(warnings?.map((warning) => 'feature' in warning && warning.feature)).toEqual([
      ...['temperature', 'topP', 'stopSequences', 'seed'],
    ]);
    expect(requests[0]).toMatchObject({ maxTokens: 7, ignored: ['temperature', 'topP', 'stopSequences', 'seed'] });
  });

  it('warns of an effort of thinking that AI SDK 7 sends', async () => {
    const { model } = scripted(answer({}), answer({}));
    const warned = async (reasoning: string) => (await model.doGenerate({ prompt: [], reasoning })).warnings;
    expect(await warned('high')).toMatchObject([{ feature: 'reasoning' }]);
    expect(await warned('provider-default')).toEqual([]);
  });

  it('refuses parts that are not text, by name', async () => {
    const { model } = scripted(answer({}));
    const content = [{ type: 'file' as const, data: 'AAAA', mediaType: 'image/png' }];
    const refused = generateText({ model, messages: [{ role: 'user', content }], maxRetries: 0 });
    await expect(refused).rejects.toThrow("a user message has a part of type 'file'; expected text");
  });

  it.each([[''], [undefined], [{}]])('reads a call without arguments whose input is %j', async (input) => {
    const { model, requests } = scripted(answer({}));
    const part = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input };
    await model.doGenerate({ prompt: [{ role: 'assistant', content: [part] }] } as ModelCall);
    expect(requests[0]?.messages[0]?.toolCalls).toEqual([{ id: 'c', name: 'look', arguments: '{}' }]);
  });

  it.each<[string, unknown, string]>([
    ['a text', { type: 'text', value: 'x' }, 'x'],
    ['JSON', { type: 'json', value: [1, { a: null }] }, '[1,{"a":null}]'],
    ['nothing', { type: 'json', value: null }, 'null'],
    ['undefined', { type: 'json', value: undefined }, 'null'],
    ['an error', { type: 'error-text', value: 'no' }, 'no'],
    ['an error in JSON', { type: 'error-json', value: { code: 1 } }, '{"code":1}'],
    ['a denial', { type: 'execution-denied', reason: 'not now' }, 'not now'],
    ['a denial without a reason', { type: 'execution-denied' }, 'The call was denied.'],
    ['parts', { type: 'content', value: ['a', 'b'].map((text) => ({ type: 'text', text })) }, 'ab'],
    ['arguments of an older version', { plain: 1 }, '{"plain":1}'],
  ])('reads a result of a tool that is %s', async (_, output, text) => {
    const { model, requests } = scripted(answer({}));
    const part = { type: 'tool-result', toolCallId: 'c', toolName: 'look', output };
    const approval = { type: 'tool-approval-response', approvalId: 'a', approved: true };
    await model.doGenerate({ prompt: [{ role: 'tool', content: [part, approval] }] } as ModelCall);
    expect(requests[0]?.messages).toEqual([{ role: 'tool', content: text, toolCallId: 'c', name: 'look' }]);
  });
});
