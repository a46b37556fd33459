/** A program with AI SDK 7 as it is on npm, from its telemetry to its own served agents. */
import { join } from 'node:path';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OpenTelemetry } from '@ai-sdk/otel';
import { context, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { registerTelemetry } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { afterEach, expect, it, vi } from 'vitest';
import { temporaryRoot } from '../../support/tiny-run.js';
import { linesOf } from '../traced-calls.js';
import { hostedAnswer, walk } from '../walk.js';
import { programOf } from './walk/program.js';

const root = temporaryRoot();
afterEach(() => void vi.unstubAllGlobals());

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const hosted = new MockLanguageModelV4({
  modelId: 'hosted',
  doGenerate: async ({ prompt, responseFormat }) => {
    const answer = hostedAnswer(prompt, responseFormat?.type === 'json');
    const input = JSON.stringify(typeof answer === 'string' ? {} : { city: answer.city });
    const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'look', input };
    const content = typeof answer === 'string' ? { type: 'text' as const, text: answer } : call;
    return { content: [content], finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [] };
  },
});

it('a program of AI SDK 7 answers on its served agents as in play', async () => {
  vi.stubGlobal('AI_SDK_LOG_WARNINGS', false); // of the provider, which sends no schema by default
  for (const registered of [trace, context]) registered.disable();
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.register();
  registerTelemetry(new OpenTelemetry());
  const program = programOf(() => hosted, true);
  const right = await walk(
    {
      recipe: join(import.meta.dirname, 'walk/recipe.ts'),
      served: (baseURL) => programOf(createOpenAICompatible({ name: 'drmas', baseURL })),
      traced: async (questions) => {
        for (const question of questions)
          await provider.getTracer('trip').startActiveSpan('trip', async (span) => {
            span.setAttribute('drmas.task.data', JSON.stringify({ question }));
            await program(question);
            span.end();
          });
        return linesOf(exporter.getFinishedSpans() as never);
      },
    },
    root,
  );
  expect(right).toBeGreaterThan(5); // of 10; two of them are held out
});
