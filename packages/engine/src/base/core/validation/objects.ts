import { ArgumentError } from '../errors.js';

/** True for a plain object in the JSON sense: neither `null` nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields that have a value: none that is undefined or null. */
export function given<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], null | undefined> } {
  const present = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(present) as { [Key in keyof Fields]?: Exclude<Fields[Key], null | undefined> };
}

/** The value of a record's own property. A name that comes from a user may be one that every object has. */
export const ownValue = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;

/** Frozen objects and lists without a part that `isolated` copies. */
const settled = new WeakSet<object>();

/** Copies by their originals: an object that occurs twice has one copy. */
type Copies = Map<object, object>;

/**
 * Data for one of many readers, who cannot change it for the others. Plain objects and lists are frozen, however deep,
 * and shared. Freezing does not protect dates, maps, sets and typed arrays, so each reader gets copies of them, and of
 * the values of maps. The keys of maps, the members of sets, arrays in the shared memory of threads, and objects of
 * other classes stay as they are.
 */
export const isolated = <T>(value: T): T => (freeze(value) ? value : (isolatedPart(value as object, new Map()) as T));

/** Freezes plain objects and lists. @returns Whether readers can change nothing then */
function freeze(value: unknown): boolean {
  const seen = new Set<object>();
  const rest = [value];
  let isProtected = true;
  while (rest.length > 0) {
    const next = rest.pop();
    if (!isReference(next) || settled.has(next) || seen.has(next)) continue;
    if (isPlain(next)) {
      seen.add(Object.freeze(next));
      for (const inner of Object.values(next)) if (isReference(inner)) rest.push(inner);
    } else if (isCopied(next)) isProtected = false;
  }
  if (isProtected) for (const each of seen) settled.add(each);
  return isProtected;
}

function isolatedPart(value: object, copies: Copies): object {
  const known = settled.has(value) ? value : copies.get(value);
  if (known !== undefined) return known;
  if (!isPlain(value)) return copyOf(value, copies);
  const copy = shallowCopy(value);
  copies.set(value, copy); // a value may contain itself
  if (replaceParts(copy, (inner) => isolatedPart(inner, copies))) return Object.freeze(copy);
  copies.set(value, value);
  settled.add(value);
  return value;
}

const TypedArray: typeof Uint8Array = Object.getPrototypeOf(Uint8Array);
const COPIED: readonly (object | null)[] = [Date.prototype, Map.prototype, Set.prototype];

const isCopied = (value: object): boolean =>
  COPIED.includes(Object.getPrototypeOf(value)) || (value instanceof TypedArray && value.buffer instanceof ArrayBuffer);

/** A copy of a date, a map, a set or a typed array; any other object itself. */
function copyOf(value: object, copies: Copies): object {
  if (!isCopied(value)) return value;
  const copy = unfilledCopy(value);
  copies.set(value, copy);
  if (value instanceof Map)
    for (const [key, inner] of value) (copy as Map<unknown, unknown>).set(key, copyOfPart(inner, copies, true));
  return copy;
}

function unfilledCopy(value: object): object {
  if (value instanceof Date) return new Date(value);
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set(value);
  try {
    return TypedArray.prototype.slice.call(value); // a Buffer stays one
  } catch {
    return value; // of a class whose constructor takes no length
  }
}

const isReference = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Whether an object is a list, or has no class. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

/** A copy of a list or plain object, to be changed, with the same parts. */
function shallowCopy(value: object): object {
  if (Array.isArray(value)) return value.slice();
  return Object.getPrototypeOf(value) === null ? Object.assign(Object.create(null), value) : { ...value };
}

/** Replaces the objects in a list or plain object. @returns Whether one became another */
function replaceParts(parts: object, replace: (part: object) => unknown): boolean {
  const fields = parts as Record<PropertyKey, unknown>;
  let isChanged = false;
  for (const key of Array.isArray(parts) ? parts.keys() : Object.keys(parts)) {
    const inner = fields[key];
    if (!isReference(inner)) continue;
    fields[key] = replace(inner);
    isChanged ||= fields[key] !== inner;
  }
  return isChanged;
}

/** A copy of plain objects and lists, however deep, to be changed. Objects of classes stay as they are. */
export function plainCopy<T>(value: T): T {
  try {
    return copyOfPart(value, new Map()) as T;
  } catch {
    return value; // one of its fields throws when it is read, or it is deeper than the stack
  }
}

/** @param isIsolating Whether objects are copied as `isolated` does, and settled ones are shared */
function copyOfPart(value: unknown, copies: Copies, isIsolating = false): unknown {
  if (!isReference(value)) return value;
  const known = isIsolating && settled.has(value) ? value : copies.get(value);
  if (known !== undefined) return known;
  if (!isPlain(value)) return isIsolating ? copyOf(value, copies) : value;
  const copy = shallowCopy(value);
  copies.set(value, copy);
  replaceParts(copy, (inner) => copyOfPart(inner, copies, isIsolating));
  return copy;
}

/**
 * Whether a value takes at most about `limit` characters of JSON. The check stops at the limit and counts an object
 * that occurs twice only once, so it also works for huge and circular values. Values that cannot be read count as
 * small: a text replaces them.
 */
export function isSmall(value: unknown, limit: number): boolean {
  try {
    return sizeUpTo(value, limit) <= limit;
  } catch {
    return true;
  }
}

function sizeUpTo(value: unknown, limit: number): number {
  const seen = new Set<object>();
  const rest: unknown[] = [value];
  let size = 0;
  while (rest.length > 0 && size <= limit) {
    const next = rest.pop();
    if (typeof next === 'string') size += next.length + 2;
    else if (typeof next !== 'object' || next === null) size += 4;
    else if (!seen.has(next)) {
      seen.add(next);
      if (ArrayBuffer.isView(next)) size += 2 * next.byteLength;
      else size += push(rest, next);
    }
  }
  return size;
}

/** Adds an object's values to the list; returns the characters of its keys. */
function push(rest: unknown[], object: object): number {
  if (Array.isArray(object)) {
    for (const inner of object) rest.push(inner);
    return 2 + object.length;
  }
  let size = 2;
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
    size += name.length + 4;
    rest.push(value);
  }
  return size;
}

/**
 * Checks that arrays have the same rows of the same lengths.
 * @throws ArgumentError naming the first array whose shape differs from the first array's
 */
export function assertSameShape(arrays: Readonly<Record<string, readonly ArrayLike<unknown>[]>>): void {
  const [first, ...others] = Object.entries(arrays);
  if (first === undefined) return;
  const [name, rows] = first;
  for (const [otherName, otherRows] of others) {
    if (otherRows.length !== rows.length) {
      throw new ArgumentError(`${otherName} has ${otherRows.length} rows, ${name} has ${rows.length}`);
    }
    rows.forEach((row, r) => {
      const length = otherRows[r]?.length;
      if (length !== row.length) {
        throw new ArgumentError(`${otherName}[${r}] has ${length} entries, ${name}[${r}] has ${row.length}`);
      }
    });
  }
}

export const [QUOTE, BACKSLASH] = [0x22, 0x5c];
export const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The deepest nesting of values in files. Functions walk through values by recursion, and the stack has a limit. */
export const DEEPEST = 500;

/** Whether arrays and objects are nested deeper than `DEEPEST` in a text of JSON. */
export function nestsTooDeep(text: string): boolean {
  if (text.length < 2 * DEEPEST) return false;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (inString) {
      if (character === BACKSLASH) at++;
      else if (character === QUOTE) inString = false;
    } else if (character === QUOTE) inString = true;
    else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      if (++depth > DEEPEST) return true;
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) depth--;
  }
  return false;
}

/** The value of a JSON text; undefined if it is none, or nested deeper than `DEEPEST`. */
export function jsonValue(text: string): unknown {
  if (nestsTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object of a JSON text; undefined if it is none. */
export function jsonObject(text: string): Record<string, unknown> | undefined {
  const value = jsonValue(text);
  return isObject(value) ? value : undefined;
}
