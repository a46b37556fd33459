/** True for a plain object in the JSON sense: neither `null` nor a list. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const frozen = new WeakSet<object>();

/** Freezes plain objects and lists, however deep, and gives the value back. Other objects stay as they are. */
export function deepFrozen<T>(value: T): T {
  const rest: unknown[] = [value];
  for (let next = rest.pop(); next !== undefined || rest.length > 0; next = rest.pop()) {
    if (typeof next !== 'object' || next === null || frozen.has(next)) continue;
    const prototype: unknown = Object.getPrototypeOf(next);
    if (!Array.isArray(next) && prototype !== Object.prototype && prototype !== null) continue;
    frozen.add(Object.freeze(next));
    for (const inner of Object.values(next)) if (typeof inner === 'object' && inner !== null) rest.push(inner);
  }
  return value;
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
