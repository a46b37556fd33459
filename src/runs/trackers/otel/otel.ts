/** OpenTelemetry (opentelemetry.io): spans of the run, its episodes, their agents and their turns. */
import { messageOf, RunError } from '../../../base/errors.js';
import { defineTracker, type TrackedRun } from '../../../base/host.js';
import { EpisodeSpans } from './episode-spans.js';
import type { OtelApi } from './otel-api.js';
import { RunSpan } from './run-span.js';

/** The variable that enables texts of prompts and responses. Other GenAI instrumentations use the same name. */
const CONTENT = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

const NO_PROVIDER =
  "the tracker otel: no OpenTelemetry provider is registered; import the module that registers one in the recipe's " +
  'file, or set NODE_OPTIONS="--import file:///.../tracing.mjs" (docs/trackers.md shows one)';

export const otel = defineTracker({
  name: 'otel',
  address: 'none',
  description:
    'OpenTelemetry spans with the GenAI conventions: the run, each episode, its agents, its turns; needs `@opentelemetry/api` and a registered provider',
  open: async (run) => {
    const api = await openApi();
    const tracer = api.trace.getTracer('drmas');
    const span = new RunSpan(api, tracer, run);
    if (!api.isSpanContextValid(span.context)) throw new RunError(NO_PROVIDER);
    const episodes = new EpisodeSpans(api, tracer, run, { of: span.context, texts: wantsTexts(run) });
    return {
      name: 'the tracker otel',
      event: (event) => span.event(event),
      episode: (begun) => episodes.episode(begun),
      close: async () => {
        episodes.close();
        span.close();
        await flush(api);
      },
    };
  },
});

/** The only package of OpenTelemetry that drmas loads: a project with tracing has it already. */
async function openApi(): Promise<OtelApi> {
  try {
    return await import('@opentelemetry/api');
  } catch (error) {
    throw new RunError(
      `the tracker otel needs the package @opentelemetry/api: run npm install @opentelemetry/api: ${messageOf(error)}`,
    );
  }
}

const wantsTexts = ({ environment }: TrackedRun) =>
  /^(true|1|span_only|span_and_event)$/i.test(environment[CONTENT] ?? '');

/** Makes the registered provider send its spans, if it can; the OpenTelemetry interface has no method for it. */
async function flush({ trace }: OtelApi): Promise<void> {
  let provider: object = trace.getTracerProvider();
  if ('getDelegate' in provider && typeof provider.getDelegate === 'function') provider = provider.getDelegate();
  if ('forceFlush' in provider && typeof provider.forceFlush === 'function') await provider.forceFlush();
}
