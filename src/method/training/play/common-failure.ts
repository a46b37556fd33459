import type { EpisodeGroup, Failure } from '../../../base/nouns.js';

/**
 * The failure that all episodes share. Undefined if an episode did not fail, or failed for another reason. If all share
 * it, the team has a mistake or a service is down, and further steps would learn nothing.
 */
export function commonFailure(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): Failure | undefined {
  const failures = groups.flatMap(({ episodes }) => episodes.map(({ failure }) => failure));
  const [first] = failures;
  const shared = first !== undefined && failures.every((other) => other !== undefined && same(first, other));
  return shared ? first : undefined;
}

/** The message for a person, with the place in the team's code if it is known. */
export function failureText({ reason, message, stack }: Failure): string {
  return `(${reason}) ${message}${stack === undefined ? '' : `\n${stack}`}`;
}

/** Errors that were thrown at one place are equal. For other errors the messages are compared without their numbers. */
function same(a: Failure, b: Failure): boolean {
  if (a.reason !== b.reason) return false;
  const place = placeOf(a);
  return place === undefined ? likeness(a) === likeness(b) : place === placeOf(b);
}

const placeOf = ({ stack }: Failure) => stack?.split('\n', 1)[0];
const likeness = ({ message }: Failure) => message.replaceAll(/\d+/g, '#');
