/** Checks the value that `play` returned. */
import { isSmall } from '../../base/errors.js';
import { EpisodeFailure } from './episode-failure.js';

/** How deep a forgotten `await` is looked for, and in how many values. */
const DEEPEST = 4;
const MOST_VALUES = 1_000;

/** @throws EpisodeFailure for an outcome that is too large, or that holds a promise: an `await` was forgotten */
export function checkOutcome(outcome: unknown, maxOutcomeBytes: number): void {
  if (!isSmall(outcome, maxOutcomeBytes))
    throw new EpisodeFailure('error', `the outcome is larger than training.maxOutcomeBytes, ${maxOutcomeBytes}`);
  const place = placeOfPromise(outcome);
  if (place !== undefined)
    throw new EpisodeFailure('error', `play returned a promise as ${place}: \`await\` it before play returns`);
}

/** The path of a promise in plain objects and lists, as code would write it. Getters are not called. */
function placeOfPromise(outcome: unknown): string | undefined {
  const rest: { readonly value: unknown; readonly path: string; readonly depth: number }[] = [
    { value: outcome, path: 'outcome', depth: 0 },
  ];
  try {
    for (let seen = 0; seen < MOST_VALUES; seen++) {
      const next = rest.shift();
      if (next === undefined) return undefined;
      const { value, path, depth } = next;
      if (value instanceof Promise) return path;
      if (typeof value !== 'object' || value === null || depth === DEEPEST) continue;
      const prototype: unknown = Object.getPrototypeOf(value);
      if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) continue;
      for (const [key, inner] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
        const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
        if (typeof inner.value === 'object') rest.push({ value: inner.value, path: at, depth: depth + 1 });
      }
    }
  } catch {
    // A value that refuses to be read is written as a text.
  }
  return undefined;
}
