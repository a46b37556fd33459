/** An OpenTelemetry provider for tests. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, type ContextManager, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';

/** The context across `await`, as `@opentelemetry/context-async-hooks` keeps it. */
class AwaitedContext implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = () => this.#storage.getStore() ?? ROOT_CONTEXT;
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    inner: Context,
    run: F,
    receiver?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(inner, () => run.apply(receiver, args));
  }
  bind = <T>(_: Context, target: T) => target;
  enable = () => this;
  disable = () => this;
}

/** Registers a provider as a program does, until the test is over, and returns its exports. */
export function registeredExporter(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  context.setGlobalContextManager(new AwaitedContext());
  onTestFinished(() => {
    trace.disable();
    context.disable();
  });
  return exporter;
}
