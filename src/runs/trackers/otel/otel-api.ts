import type * as Otel from '@opentelemetry/api';

/** The used part of `@opentelemetry/api`, an optional package. */
export type OtelApi = Pick<typeof Otel, 'context' | 'trace' | 'isSpanContextValid' | 'SpanKind' | 'SpanStatusCode'>;
