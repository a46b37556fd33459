import type * as Api from '@opentelemetry/api';
import type { RunEvent, Step } from '../../../base/events.js';
import type { TrackedRun } from '../../../base/host.js';
import { measurementsOf } from '../measurements.js';
import type { OtelApi } from './otel-api.js';

/** The span of an execution of a run, with a child for each step and an event for each other event. */
export class RunSpan {
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

/** The plain fields of an event. */
function attributesOf(event: RunEvent): Api.Attributes {
  const plain = Object.entries(event).filter(
    ([key, value]) =>
      !['type', 'time', 'version'].includes(key) && ['string', 'number', 'boolean'].includes(typeof value),
  );
  return Object.fromEntries(plain.map(([key, value]) => [`drmas.${key}`, value]));
}
