/** Tracers of npm that want a newer Node write the calls of a program, and `drmas import` reads them. */
import { OpenTelemetry } from '@ai-sdk/otel';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { generateText, isStepCount, registerTelemetry, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { _exportsForTestingOnly, initLogger, traced, wrapOpenAI } from 'braintrust';
import OpenAI from 'openai';
import { describe, it } from 'vitest';
import { z } from 'zod';
import { temporaryRoot } from '../../support/tiny-run.js';
import { ARGUMENTS, callOpenAi, expectSample, linesOf, price, pricing, repeatable } from '../traced-calls.js';

const root = temporaryRoot();

describe('spans of npm’s tracers', () => {
  it('AI SDK 7', async () => {
    const exporter = new InMemorySpanExporter();
    new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
    registerTelemetry(new OpenTelemetry());
    const usage = {
      inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 5, text: 5, reasoning: 0 },
    };
    const finishReason = { unified: 'stop', raw: 'stop' } as const;
    const model = new MockLanguageModelV4({
      modelId: 'big-1',
      doGenerate: async ({ prompt }) => ({
        content:
          prompt.length > 2 || prompt.length === 1
            ? [{ type: 'text', text: '5' }]
            : [{ type: 'tool-call', toolCallId: 'c1', toolName: 'price', input: ARGUMENTS }],
        ...{ finishReason, usage, warnings: [] },
      }),
    });
    const { name, description } = price;
    const telemetry = { functionId: 'buyer' };
    const inputSchema = z.looseObject({ fruit: z.string() });
    const buyer = new ToolLoopAgent({
      ...{ model, instructions: 'Say its price.', stopWhen: isStepCount(4), telemetry },
      tools: { [name]: tool({ description, inputSchema, execute: () => '5' }) },
    });
    await buyer.generate({ prompt: '3 fig' });
    const image = { type: 'file' as const, mediaType: 'image/png', data: new Uint8Array([1, 2]) };
    const content = [{ type: 'text' as const, text: 'look' }, image];
    await generateText({ model, prompt: [{ role: 'user', content }], telemetry });
    await expectSample('ai-7', linesOf(exporter.getFinishedSpans() as never), root);
  });

  it('Braintrust', async () => {
    await _exportsForTestingOnly.simulateLoginForTests();
    const logged = _exportsForTestingOnly.useTestBackgroundLogger();
    initLogger({ projectName: 'shop', projectId: 'shop' });
    const { url, close } = await pricing();
    const client = wrapOpenAI(new OpenAI({ apiKey: 'none', baseURL: url }));
    await traced(() => traced(() => callOpenAi(client as never), { name: 'buyer' }), { name: 'order' });
    close();
    const rows = (await logged.drain()) as Record<string, unknown>[];
    const ids = rows.flatMap(({ id, span_id, root_span_id }) => [id, span_id, root_span_id]);
    const stable = rows.map(({ context: _, created: __, metrics, ...row }, i) => {
      const { prompt_tokens, completion_tokens } = metrics as Record<string, unknown>;
      return { ...row, metrics: { start: i, prompt_tokens, completion_tokens } };
    });
    await expectSample('braintrust', repeatable(stable, ids), root);
  });
});
