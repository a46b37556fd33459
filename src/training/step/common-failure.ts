import type { EpisodeGroup, Failure } from '../../core/episode.js';

/**
 * The failure that all episodes share; undefined where one of them did not fail, or failed for another reason. Going on
 * would train on nothing: the team has a mistake, or what it calls is gone.
 */
export function commonFailure(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): Failure | undefined {
  const failures = groups.flatMap(({ episodes }) => episodes.map(({ failure }) => failure));
  const [first] = failures;
  const shared = first !== undefined && failures.every((other) => other !== undefined && same(first, other));
  return shared ? first : undefined;
}

/** The message for a person, with the place in the team's code where there is one. */
export function failureText({ reason, message, stack }: Failure): string {
  return `(${reason}) ${message}${stack === undefined ? '' : `\n${stack}`}`;
}

/** Errors thrown at one place are the same; of others the messages are compared, apart from their numbers. */
function same(a: Failure, b: Failure): boolean {
  if (a.reason !== b.reason) return false;
  const place = placeOf(a);
  return place === undefined ? likeness(a) === likeness(b) : place === placeOf(b);
}

const placeOf = ({ stack }: Failure) => stack?.split('\n', 1)[0];
const likeness = ({ message }: Failure) => message.replaceAll(/\d+/g, '#');
