/** Providers of AI SDK that speak to a server, with agents behind it: each of the dialects by its own client. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, type LanguageModel, Output, stepCountIs, streamText, ToolLoopAgent, tool } from 'ai';
import { afterAll, beforeAll, vi } from 'vitest';
import { boundFetch } from '../../../src/gateway/agents/index.js';
import { aiSdkCells } from '../ai-sdk-cells.js';
import { clientContract } from '../client-contract.js';
import { type CellContext, type CellPlay, conformance } from '../conformance.js';

const cells = aiSdkCells({ generateText, streamText, tool, ToolLoopAgent, Output, stopAfter: stepCountIs });

/** The cells with the models of a provider, which were made before any episode. */
function cellsOf(modelOf: (agent: string) => LanguageModel) {
  const agents = { boss: { model: modelOf('boss') }, helper: { model: modelOf('helper') } };
  const withModels =
    (play: CellPlay): CellPlay =>
    (context) =>
      play({ ...context, agents } as unknown as CellContext);
  return {
    text: withModels(cells.text),
    tools: withModels(cells.tools),
    'parallel tools': withModels(cells['parallel tools']),
    streaming: withModels(cells.streaming),
    'structured output': withModels(cells['structured output']),
    'sub-agent': withModels(cells['sub-agent']),
  };
}

const connection = { baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch };

const compatible = createOpenAICompatible({ name: 'drmas', supportsStructuredOutputs: true, ...connection });
conformance('AI SDK 6, `@ai-sdk/openai-compatible`', cellsOf(compatible));

const openai = createOpenAI(connection);
conformance('AI SDK 6, `@ai-sdk/openai`', cellsOf(openai.responses));
conformance('AI SDK 6, `@ai-sdk/openai`, chat', cellsOf(openai.chat));

// Of models whose name it does not know it demands a call of a tool in place of an output, and warns of their length.
beforeAll(() => void vi.stubGlobal('AI_SDK_LOG_WARNINGS', false));
afterAll(() => void vi.unstubAllGlobals());
const lines = { 'structured output': { boss: ['json({ "ok": true })'] } };
conformance('AI SDK 6, `@ai-sdk/anthropic`', cellsOf(createAnthropic(connection)), { lines });

clientContract('a provider of AI SDK', async ({ model, ...address }, { stream, signal }) => {
  const provider = createOpenAICompatible({ name: 'drmas', ...address });
  const request = { model: provider(model), prompt: 'Hi', ...(signal && { abortSignal: signal }) };
  if (!stream) return (await generateText(request)).text;
  let failure: unknown;
  const onError = ({ error }: { readonly error: unknown }) => {
    failure = error;
  };
  let text = '';
  for await (const piece of streamText({ ...request, onError }).textStream) text += piece;
  if (failure !== undefined) throw failure;
  if (signal?.aborted) throw signal.reason; // its streams end silently
  return text;
});
