import type { Episode, EpisodeGroup, Failure } from '../../../base/nouns.js';

/**
 * The failure that all episodes share: the first one if all failed for the same reason at the same agent, whatever
 * their messages say. Undefined if an episode did not fail, or failed for another reason. If all share it, the team has
 * a mistake or a service is down, and further steps would learn nothing.
 */
export function commonFailure(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): Failure | undefined {
  const episodes = groups.flatMap((group) => group.episodes);
  const first = episodes[0]?.failure;
  if (first === undefined) return undefined;
  return episodes.every(({ failure }) => failure !== undefined && kindOf(failure) === kindOf(first))
    ? first
    : undefined;
}

/** The message for a person, with the place in the team's code if it is known. */
export function failureText({ reason, message, stack }: Failure): string {
  return `(${reason}) ${message}${stack === undefined ? '' : `\n${stack}`}`;
}

/** The failures of a kind: one reason, and the agent whose call failed if there is one. */
export interface FailureKind {
  /** The reason, and the agent if there is one: `backend solver`. */
  readonly kind: string;
  readonly first: Failure;
  /** The share of all episodes. */
  readonly share: number;
}

/** The kinds of an episode's failures, the most frequent one first. */
export function failureKinds(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): FailureKind[] {
  const episodes: Episode[] = groups.flatMap((group) => group.episodes);
  const kinds = new Map<string, { readonly first: Failure; count: number }>();
  for (const { failure } of episodes) {
    if (failure === undefined) continue;
    const ofKind = kinds.get(kindOf(failure)) ?? { first: failure, count: 0 };
    ofKind.count++;
    kinds.set(kindOf(failure), ofKind);
  }
  return [...kinds]
    .map(([kind, { first, count }]) => ({ kind, first, share: count / episodes.length }))
    .sort((a, b) => b.share - a.share);
}

const kindOf = ({ reason, agent = '' }: Failure) => `${reason} ${agent}`.trim();
