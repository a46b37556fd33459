import type * as Otel from '@opentelemetry/api';

/** What is used of `@opentelemetry/api`, which is there only where somebody traces. */
export type OtelApi = Pick<typeof Otel, 'context' | 'trace' | 'isSpanContextValid' | 'SpanKind' | 'SpanStatusCode'>;
