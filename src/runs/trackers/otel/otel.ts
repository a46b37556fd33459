/** OpenTelemetry (opentelemetry.io): spans of the run, its episodes, their agents and their turns. */

import { messageOf, RunError } from '@drmas/engine/errors';
import type { RunEvent, Step } from '@drmas/engine/events';
import { defineTracker, type TrackedRun } from '@drmas/engine/host';
import type * as Api from '@opentelemetry/api';
import { measurementsOf } from '../measurements.js';
import { EpisodeSpans, type OtelApi } from './episode-spans.js';

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

/** The span of an execution of a run, with a child for each step and an event for each other event. */
class RunSpan {
  readonly #api: OtelApi;
  readonly #tracer: Api.Tracer;
  readonly #span: Api.Span;

  constructor(api: OtelApi, tracer: Api.Tracer, { name, recipe, events }: TrackedRun) {
    this.#api = api;
    this.#tracer = tracer;
    this.#span = tracer.startSpan(`run ${name}`, {
      attributes: { 'drmas.run': name, 'drmas.recipe': recipe, 'drmas.resumed': events.length > 0 },
    });
  }

  get context(): Api.SpanContext {
    return this.#span.spanContext();
  }

  event(event: RunEvent): void {
    const { type, time } = event;
    const at = new Date(time);
    if (type === 'step') this.#step(event, at);
    else if (type === 'warmup')
      return; // there are hundreds, each with little information
    else this.#span.addEvent(type, attributesOf(event), at);
    if (type === 'run.started') this.#span.setAttribute('drmas.seed', event.seed);
    if (type !== 'run.finished') return;
    const { ERROR, OK } = this.#api.SpanStatusCode;
    this.#span.setAttribute('drmas.end', event.reason);
    this.#span.setStatus({ code: event.reason === 'failed' ? ERROR : OK });
  }

  close(): void {
    this.#span.end();
  }

  /** The event of a step comes at its end and has its seconds. */
  #step(event: RunEvent & Step, end: Date): void {
    const { context, trace } = this.#api;
    const startTime = new Date(end.getTime() - event.seconds * 1000);
    const measured = measurementsOf(event).map(({ name, value }) => [`drmas.${name.replaceAll('/', '.')}`, value]);
    const attributes = { 'drmas.step': event.step, ...Object.fromEntries(measured) };
    const parent = trace.setSpan(context.active(), this.#span);
    this.#tracer.startSpan(`step ${event.step}`, { startTime, attributes }, parent).end(end);
  }
}

function attributesOf(event: RunEvent): Api.Attributes {
  const plain = Object.entries(event).filter(
    ([key, value]) =>
      !['type', 'time', 'version'].includes(key) && ['string', 'number', 'boolean'].includes(typeof value),
  );
  return Object.fromEntries(plain.map(([key, value]) => [`drmas.${key}`, value]));
}
