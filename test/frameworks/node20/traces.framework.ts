/** Tracers as they are on npm write the calls of a program, and `drmas import` reads them. */
import { OpenAIInstrumentation as OpenInference } from '@arizeai/openinference-instrumentation-openai';
import { OpenInferenceSimpleSpanProcessor } from '@arizeai/openinference-vercel';
import { observeOpenAI } from '@langfuse/openai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { startActiveObservation } from '@langfuse/tracing';
import { type Attributes, type Context, context, type Span, trace } from '@opentelemetry/api';
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { OpenAIInstrumentation as OpenLlmetry } from '@traceloop/instrumentation-openai';
import { generateText, stepCountIs, ToolLoopAgent, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import OpenAI from 'openai';
import { OpenAIInstrumentation as OldOpenLlmetry } from 'traceloop-old';
import { describe, it } from 'vitest';
import { z } from 'zod';
import { takesTime } from '../../support/time-and-chance.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { ARGUMENTS, callOpenAi, expectLines, expectSample, linesOf, price, pricing } from '../traced-calls.js';

const root = temporaryRoot();

/** Where spans go, and the tracer that makes them. Spans of a program's own are parents if they are active. */
function tracing(processor = (exporter: InMemorySpanExporter): SpanProcessor => new SimpleSpanProcessor(exporter)) {
  for (const registered of [trace, context]) registered.disable(); // those of the test before
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [processor(exporter)] });
  provider.register();
  return { exporter, provider, tracer: provider.getTracer('program') };
}

/** Plays a program within a span of these attributes. */
async function within(span: Span, program: (context: Context) => Promise<void>): Promise<void> {
  const inside = trace.setSpan(context.active(), span);
  await context.with(inside, () => program(inside));
  span.end();
}

/** The calls with `openai`, as an instrumentation of it records them in a span of an agent. */
async function instrumented(
  instrumentation: { setTracerProvider(provider: never): void; manuallyInstrument(module: never): void },
  attributes: Attributes,
): Promise<string> {
  const { exporter, provider, tracer } = tracing();
  instrumentation.setTracerProvider(provider as never);
  class Client extends OpenAI {}
  instrumentation.manuallyInstrument(Client as never);
  const { url, close } = await pricing();
  const client = new Client({ apiKey: 'none', baseURL: url });
  await within(tracer.startSpan('buyer', { attributes }), () => callOpenAi(client as never));
  close();
  return linesOf(exporter.getFinishedSpans() as never);
}

/** The calls of an agent of AI SDK 6. */
async function ofAiSdk(processor?: Parameters<typeof tracing>[0]) {
  const { exporter } = tracing(processor);
  const usage = {
    inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 5, text: 5, reasoning: 0 },
  };
  const finishReason = { unified: 'stop', raw: 'stop' } as const;
  const model = new MockLanguageModelV3({
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
  const inputSchema = z.looseObject({ fruit: z.string() });
  const telemetry = { isEnabled: true, functionId: 'buyer' };
  const buyer = new ToolLoopAgent({
    ...{ model, instructions: 'Say its price.', stopWhen: stepCountIs(4), experimental_telemetry: telemetry },
    tools: { [name]: tool({ description, inputSchema, execute: () => '5' }) },
  });
  await buyer.generate({ prompt: '3 fig' });
  const image = { type: 'file' as const, mediaType: 'image/png', data: new Uint8Array([1, 2]) };
  const content = [{ type: 'text' as const, text: 'look' }, image];
  await generateText({ model, prompt: [{ role: 'user', content }], experimental_telemetry: telemetry });
  return exporter.getFinishedSpans();
}

describe('spans of npm’s tracers', () => {
  it('AI SDK 6', async () => {
    await expectSample('ai-6', linesOf((await ofAiSdk()) as never), root);
  });

  it('AI SDK 6 in OTLP, as a collector stores it', async () => {
    const bytes = JsonTraceSerializer.serializeRequest((await ofAiSdk()) as never);
    await expectLines('ai-6', `${new TextDecoder().decode(bytes)}\n`, root);
  });

  it('OpenInference in AI SDK 6', async () => {
    const spans = await ofAiSdk((exporter) => new OpenInferenceSimpleSpanProcessor({ exporter: exporter as never }));
    await expectSample('openinference-ai-6', linesOf(spans as never), root);
  });

  it('OpenInference in openai', async () => {
    const lines = await instrumented(new OpenInference() as never, { 'openinference.span.kind': 'AGENT' });
    await expectSample('openinference-openai', lines, root);
  });

  const entity = { 'traceloop.span.kind': 'agent', 'traceloop.entity.name': 'buyer' };
  it('OpenLLMetry', async () => {
    await expectSample('openllmetry-0.27', await instrumented(new OpenLlmetry() as never, entity), root);
  });

  it('OpenLLMetry before OpenTelemetry’s conventions', async () => {
    await expectSample('openllmetry-0.20', await instrumented(new OldOpenLlmetry() as never, entity), root);
  });

  it('Langfuse', async () => {
    const keys = { publicKey: 'none', secretKey: 'none', baseUrl: 'http://127.0.0.1:1' };
    const { exporter } = tracing(
      (exporter) =>
        new LangfuseSpanProcessor({ exporter: exporter as never, exportMode: 'immediate', ...keys }) as never,
    );
    const { url, close } = await pricing();
    const client = observeOpenAI(new OpenAI({ apiKey: 'none', baseURL: url }));
    await startActiveObservation('buyer', () => callOpenAi(client as never), { asType: 'agent' });
    close();
    await takesTime(1000); // it waits for its upload of the image, which fails
    await expectSample('langfuse', linesOf(exporter.getFinishedSpans() as never), root);
  });
});
