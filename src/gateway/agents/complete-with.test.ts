import { MockLanguageModelV3 } from 'ai/test';
import { expect, it } from 'vitest';
import { completeWith } from './complete-with.js';

const tokens = { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined };
const usage = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: undefined } };
const request = {
  messages: [{ role: 'user', content: 'Who?' }],
  maxTokens: 9,
  temperature: 1,
  topP: 1,
  topK: 0,
  seed: 1,
};

it.each([
  ['stop', 'stop'],
  ['length', 'length'],
  ['content-filter', 'a content filter ended the answer of mock-provider/mock-model-id'],
  ['error', 'mock-provider/mock-model-id ended its answer by an error'],
] as const)('an answer of a model that ended by %s is %s', async (unified, expected) => {
  const answer = { content: [{ type: 'text' as const, text: '' }], finishReason: { unified, raw: unified }, usage };
  const model = new MockLanguageModelV3({ doGenerate: { ...answer, warnings: [] } });
  const reply = completeWith(model)(request as never, new AbortController().signal);
  expect(
    await Promise.resolve(reply).then(
      ({ finishReason }) => finishReason,
      ({ message }: Error) => message,
    ),
  ).toBe(expected);
});

it('is sent its own calls as it gave them: with metadata of providers, and ids of its own', async () => {
  const providerMetadata = { google: { thoughtSignature: 'AbC==' } };
  const own = [
    { type: 'reasoning' as const, text: 'hm', providerMetadata: { anthropic: { signature: 'x' } } },
    { type: 'text' as const, text: 'So.' },
    { type: 'tool-call' as const, toolCallId: 'Xy1', toolName: 'add', input: '{"a":1}', providerMetadata },
    { type: 'source' as const, sourceType: 'url' as const, id: 's', url: 'https://e.x' },
  ];
  const answer = { content: own, finishReason: { unified: 'tool-calls' as const, raw: 'tool' }, usage, warnings: [] };
  const model = new MockLanguageModelV3({ doGenerate: answer });
  const complete = completeWith(model);
  const never = new AbortController().signal;
  const { toolCalls = [], providerData } = await complete(request as never, never);
  const said = { role: 'assistant', content: 'So.', toolCalls: toolCalls.map((call) => ({ ...call, id: 'call_0' })) };
  const result = { role: 'tool', content: '2', toolCallId: 'call_0', name: 'add' };
  await complete({ ...request, messages: [{ ...said, providerData }, result] } as never, never);
  expect(model.doGenerateCalls[1]?.prompt).toEqual([
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'x' } } },
        { type: 'text', text: 'So.' },
        { type: 'tool-call', toolCallId: 'Xy1', toolName: 'add', input: { a: 1 }, providerOptions: providerMetadata },
      ],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'Xy1', toolName: 'add', output: { type: 'text', value: '2' } }],
    },
  ]);
});

it.each(['', ' ', '{}'])('is sent a call back that it wrote without arguments: %j', async (input) => {
  const content = [{ type: 'tool-call' as const, toolCallId: 'Xy1', toolName: 'now', input }];
  const answer = { content, finishReason: { unified: 'tool-calls' as const, raw: 'tool' }, usage, warnings: [] };
  const model = new MockLanguageModelV3({ doGenerate: answer });
  const complete = completeWith(model);
  const never = new AbortController().signal;
  const { providerData } = await complete(request as never, never);
  const toolCalls = [{ id: 'call_0', name: 'now', arguments: '{}' }];
  await complete(
    { ...request, messages: [{ role: 'assistant', content: '', toolCalls, providerData }] } as never,
    never,
  );
  expect(model.doGenerateCalls[1]?.prompt[0]?.content).toMatchObject([{ toolCallId: 'Xy1', input: {} }]);
});

it('is sent the reasoning before calls, and whether a tool is strict', async () => {
  const answer = { content: [], finishReason: { unified: 'stop' as const, raw: 'stop' }, usage, warnings: [] };
  const model = new MockLanguageModelV3({ doGenerate: answer });
  const toolCalls = [{ id: 'c1', name: 'add', arguments: '{}' }];
  const said = { role: 'assistant', content: 'Me.', reasoning: 'hm' } as const;
  const tools = [{ name: 'add', parameters: { type: 'object' }, strict: true }];
  const further = { ...request, messages: [{ ...said, toolCalls }, said], tools };
  await completeWith(model)(further as never, new AbortController().signal);
  const text = { type: 'text', text: 'Me.' };
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'add', input: {} };
  expect(model.doGenerateCalls[0]).toMatchObject({
    prompt: [{ content: [{ type: 'reasoning', text: 'hm' }, text, call] }, { content: [text] }],
    tools: [{ type: 'function', name: 'add', strict: true, inputSchema: { type: 'object' } }],
  });
});
