/** Fields of spans, in the forms of the exporters that write them. */
import { isObject, NumberText, nestsTooDeep, parseExactly } from '@drmas/engine/errors';

import type { TracePlace } from './unread.js';

export type JsonFields = Readonly<Record<string, unknown>>;

/** A span of a trace, with the attribute names of whichever convention it was written in. */
export interface TraceSpan {
  readonly trace: string;
  readonly id: string;
  readonly parent?: string | undefined;
  readonly name: string;
  /** Only compared with other spans of the trace: nanoseconds, milliseconds or a date, as the file has it. */
  readonly start: string;
  readonly attributes: JsonFields;
  readonly events?: readonly JsonFields[] | undefined;
  readonly scores: readonly TraceScore[];
  readonly failed: boolean;
  /** Whether a limit of the tracer left out attributes, or events with messages. */
  readonly dropped?: boolean | undefined;
  readonly place: TracePlace;
  /** A row that belongs to a span or a trace and is none: an event in a log, or a score. */
  readonly kind?: 'event' | 'score';
}

export interface TraceScore {
  readonly name: string;
  /** NaN for a score that is no number. */
  readonly value: number;
  readonly id?: string | undefined;
}

export type UnplacedSpan = Omit<TraceSpan, 'place'>;

/** A field by its name in JSON or in Python: `spanId`, `span_id`. */
export function fieldOf(value: JsonFields, name: string): unknown {
  return value[name] ?? value[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
}

/** The fields of several objects; of fields with one name the last counts. */
export const merged = <Value>(parts: readonly Readonly<Record<string, Value>>[]): Readonly<Record<string, Value>> =>
  Object.fromEntries(parts.flatMap((fields) => Object.entries(fields)));

export const isEmpty = (value: unknown) =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

export const textField = (value: JsonFields, name: string) => text(fieldOf(value, name));

/** Scores as a list of `{ name, value }`, or as an object of numbers. */
export function scoresOf(value: unknown): TraceScore[] {
  if (Array.isArray(value))
    return value.filter(isObject).flatMap((each) => {
      // Langfuse numbers categories, some of them all with 0.
      const isCategory = /^(?:CATEGORICAL|TEXT)$/.test(wordOf(fieldOf(each, 'dataType')));
      const word = fieldOf(each, 'stringValue') ?? each.value;
      const ofCategory = typeof word === 'string' ? word : Number.NaN;
      return scoreOf(each.name, isCategory ? ofCategory : (each.value ?? each.score), text(each.id));
    });
  return isObject(value) ? Object.entries(value).flatMap(([name, given]) => scoreOf(name, given)) : [];
}

/** A score as a list of one; an empty list if it has no name or no value. */
export function scoreOf(name: unknown, value: unknown, id?: string): TraceScore[] {
  const written = text(name);
  return written === undefined || isEmpty(value) ? [] : [{ name: written, value: scoreNumber(value), id }];
}

/** Judges write these words for what others write as booleans. */
const WORDS: Readonly<Record<string, number>> = { yes: 1, true: 1, no: 0, false: 0 };
/** A number or a word as a text, or as the JSON of a text. */
const IN_TEXT = /^\s*"?(?:(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)|(yes|true|no|false))"?\s*$/i;

function scoreNumber(value: unknown): number {
  if (typeof value === 'boolean' || typeof value === 'number' || value instanceof NumberText) return Number(value);
  const [, digits, word = ''] = IN_TEXT.exec(typeof value === 'string' ? value : '') ?? [];
  return digits === undefined ? (WORDS[word.toLowerCase()] ?? Number.NaN) : Number(digits);
}

/** The attributes of what went into a call of a model, or into another span, and of what came out. */
export const contentNames = (
  isCall: boolean,
  { input, output }: { readonly input: unknown; readonly output: unknown },
) =>
  isCall
    ? { 'gen_ai.input.messages': input, 'gen_ai.output.messages': output }
    : { 'input.value': input, 'output.value': output };

/** Attributes as an object, as OTLP's list of keys with typed values, or as the JSON of one of these. */
export function attributesOf(written: unknown): Record<string, unknown> {
  const value = jsonOf(written, /^\s*[[{]/);
  if (Array.isArray(value))
    return Object.fromEntries(value.filter(isObject).map((each) => [wordOf(each.key), typedValue(each.value)]));
  return isObject(value) && !(value instanceof NumberText) ? { ...value } : {};
}

/** The names of typed values in OTLP's JSON. */
const TYPED = /^(?:string|int|double|bool|bytes)_?[vV]alue$/;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Bytes in base64 as the text that they are in UTF-8; others as they are. */
function textOfBytes(base64: string): string {
  try {
    return utf8.decode(Uint8Array.from(Buffer.from(base64, 'base64')));
  } catch {
    return base64;
  }
}

/** A typed value of OTLP JSON as plain data; other values as they are. */
export function typedValue(value: unknown): unknown {
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  const [array, list] = [fieldOf(value, 'arrayValue'), fieldOf(value, 'kvlistValue')];
  if (isObject(array)) return listOf(array.values).map(typedValue);
  // An empty value stands for null.
  if (isObject(list))
    return Object.fromEntries(Object.entries(attributesOf(list.values)).map(([key, each]) => [key, each ?? null]));
  if (names.length === 0) return undefined;
  const typed = names.length === 1 ? names.find((name) => TYPED.test(name)) : undefined;
  if (typed === undefined) return value;
  const plain = value[typed];
  if (/^bytes/.test(typed) && typeof plain === 'string') return textOfBytes(plain);
  return /^int/.test(typed) && typeof plain === 'string' ? (jsonOf(plain, /^-?\d+$/) ?? plain) : plain;
}

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/**
 * A text, a number or a boolean as a text. Other values have none: an object of a trace may have a field `toString`, so
 * `String` would throw.
 */
export function wordOf(value: unknown): string {
  if (value instanceof NumberText) return value.text;
  return typeof value === 'object' || value === undefined ? '' : String(value);
}

/** A time that sorts as text. */
export function startText(value: unknown): string {
  const [seconds, nanos] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof seconds === 'number') return `${String(seconds).padStart(20, '0')}.${wordOf(nanos).padStart(9, '0')}`;
  if (typeof value === 'number' || value instanceof NumberText) return Number(value).toFixed(9).padStart(30, '0');
  if (typeof value === 'string' && /^\d+$/.test(value)) return value.padStart(20, '0');
  return dateText(wordOf(value));
}

const DATE = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?\s?(?:Z|UTC|([+-]\d\d):?(\d\d)?)?$/i;

/** A date as seconds with a fraction: dates of one exporter may differ in their digits and their zones. */
function dateText(date: string): string {
  const [, day, time, fraction = '', hours = '+00', minutes = '00'] = DATE.exec(date) ?? [];
  const seconds = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${hours}:${minutes}`) / 1000;
  return Number.isNaN(seconds) ? date : `${String(seconds).padStart(20, '0')}.${fraction.padEnd(9, '0')}`;
}

/** Fields of parts without a type, of which a part has one. */
const OF_BEDROCK = ['text', 'toolUse', 'toolResult', 'reasoningContent', 'cachePoint', 'image', 'document', 'video'];

/** A tool may return a list of objects with the field `text` alone. */
const isOfBedrock = (part: JsonFields, role: unknown) => {
  const [name = '', ...more] = Object.keys(part);
  return more.length === 0 && OF_BEDROCK.includes(name) && (name !== 'text' || role !== 'tool');
};

/** A content of several parts that was written as their JSON; other texts, JSON too, are contents as they are. */
export function partsOf(content: unknown, role: unknown): unknown {
  const parts = jsonOf(content, /^\s*\[/);
  const isPart = (part: unknown) => isObject(part) && (typeof part.type === 'string' || isOfBedrock(part, role));
  return Array.isArray(parts) && parts.length > 0 && parts.every(isPart) ? parts : content;
}

/** The value of a JSON text; other values, and texts of another form or nested too deep, as they are. */
export function jsonOf(value: unknown, form = /^\s*[[{"]/): unknown {
  if (typeof value !== 'string' || !form.test(value) || nestsTooDeep(value)) return value;
  try {
    return parseExactly(value);
  } catch {
    return value;
  }
}
