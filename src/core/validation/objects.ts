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
 * Whether a value is small enough to be written down: about `limit` characters of JSON at most. It stops reading at the
 * limit, and an object that occurs twice counts once, so that nothing is too large or too circular to be judged. What
 * cannot be read is small: a text takes its place.
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

/** Puts what an object holds on the list; returns the characters of its names. */
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
