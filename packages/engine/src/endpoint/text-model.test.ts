import { expect, it } from 'vitest';
import type { TextRequest } from '../contract/text-backend.js';
import { openTextModel, textModelSchema } from './text-model.js';

it('gives a function messages and tools of its own, which it may change', async () => {
  const request: TextRequest = {
    messages: [{ role: 'user', content: 'Who?' }],
    tools: [{ name: 'look', parameters: { type: 'object', properties: {} } }],
    ...{ maxTokens: 9, temperature: 1, topP: 1, topK: 0, seed: 1 },
  };
  const before = structuredClone(request);
  const model = openTextModel('judge', textModelSchema.parse({ type: 'text' }), ({ messages, tools = [] }) => {
    Object.assign(messages[0] ?? {}, { content: 'changed' });
    (messages as unknown[]).push({ role: 'user', content: 'more' });
    Object.assign(tools[0]?.parameters.properties ?? {}, { n: {} });
    return { text: `${messages.length}` };
  });
  expect(await model.complete(request, new AbortController().signal)).toMatchObject({ text: '2' });
  expect(request).toEqual(before);
});
