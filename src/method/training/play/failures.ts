import { TrainingError } from '@drmas/engine/errors';
import type { Warning } from '@drmas/engine/events';
import { percent, remedyOfFailure } from '@drmas/engine/host';
import {
  type Episode,
  type EpisodeGroup,
  type Failure,
  type FailureReason,
  isOfAgents,
  isUnscored,
} from '@drmas/engine/nouns';
import type { Remedy } from './demonstration-remedy.js';
import type { Played } from './played.js';

/**
 * The failure that all episodes share: the first one if all failed for the same reason at the same agent, whatever
 * their messages say. Undefined if an episode did not fail, or failed for another reason. If all share it, the team has
 * a mistake or a service is down, and further steps would learn nothing.
 */
export function commonFailure(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): Failure | undefined {
  return commonOf(failureKinds(groups));
}

const commonOf = ([most]: readonly FailureKind[]) => (most?.share === 1 ? most.first : undefined);

/** Failures of which the team's code may be the cause: `play`, a reward, a parser. */
const OF_CODE: ReadonlySet<string> = new Set(['error', 'reward', 'invalid-output'] satisfies FailureReason[]);

/** The message for a person, with the place in the team's code if it is known. */
export function failureText({ reason, message, stack }: Failure): string {
  return `(${reason}) ${message}${stack === undefined || !OF_CODE.has(reason) ? '' : `\n${stack}`}`;
}

export const allFailedText = (common: Failure): string =>
  `all episodes failed for the same reason: ${failureText(common)}`;

/**
 * Requires that an episode has a score, and that not all episodes failed for the same reason. Failures that the agents
 * cause pass: they show the models' texts.
 * @throws TrainingError
 */
export function requireWorking(groups: readonly Pick<EpisodeGroup, 'episodes'>[]): void {
  const common = commonFailure(groups);
  if (common !== undefined && !isOfAgents(common))
    throw new TrainingError(`${allFailedText(common)}\n${remedyOfFailure(common.reason)}`);
  if (groups.every(({ episodes }) => episodes.every(isUnscored))) throw new TrainingError(NO_SCORE);
}

export const NO_SCORE = 'no episode has a score, because the reward of each failed';

interface FailureKind {
  /** The reason, and the agent if there is one: `backend solver`. */
  readonly kind: string;
  readonly first: Failure;
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

/** The steps in a row that end a run if no episode is whole, and that cause a warning if most fail for one reason. */
const STEPS = 3;
/** A failure of a larger share of the episodes is frequent. */
const FREQUENT = 0.5;
/**
 * The same for a failing service or mistake of the team. It teaches the agents to avoid the call that fails, so it
 * causes a warning at once, and ends the run after several steps in a row.
 */
const FREQUENT_OF_CALLS = 0.2;
/** The name of the count of steps in which all episodes failed. Kinds of failures have no such name. */
const ALL = '(all)';

/** Steps in a row, by kind of failure. A kind that has reached `STEPS` keeps this number: it has been reported. */
export type LastingFailures = Readonly<Record<string, number>>;

type Failing = Pick<Played, 'step' | 'all'>;

/** Whether a failure is independent of the text that a model wrote. */
const isOfCalls = ({ reason }: Failure) => reason === 'backend' || reason === 'error';
const isFrequent = ({ first, share }: FailureKind) => share > (isOfCalls(first) ? FREQUENT_OF_CALLS : FREQUENT);

const remedyOfReason: Remedy = ({ reason }) => remedyOfFailure(reason);

export function failuresAfter(before: LastingFailures, { all }: Failing): LastingFailures {
  const kinds = failureKinds(all);
  const reported = Object.entries(before).filter(([kind, steps]) => kind !== ALL && steps >= STEPS);
  const frequent = kinds.filter(isFrequent).map(({ kind }) => kind);
  const counts = frequent.map((kind): [string, number] => [kind, Math.min(STEPS, (before[kind] ?? 0) + 1)]);
  const failed = kinds.reduce((sum, { share }) => sum + share, 0);
  const isWhole = all.length === 0 || failed < 1 - 1e-9;
  return Object.fromEntries([...reported, ...counts, ...(isWhole ? [] : [[ALL, (before[ALL] ?? 0) + 1] as const])]);
}

/**
 * The reason why a run must end with a step: all of its episodes failed, for one reason, or for any reason in several
 * steps in a row; or calls have failed for one reason in many episodes of several steps in a row. Failures that the
 * agents cause still teach, so that alone they end a run in its first step, and later after several steps.
 */
export function fatalFailure(
  before: LastingFailures,
  played: Failing,
  remedyOf: Remedy = remedyOfReason,
): string | undefined {
  const { step, all } = played;
  const after = failuresAfter(before, played);
  const steps = after[ALL] ?? 0;
  const kinds = failureKinds(all);
  const [most] = kinds;
  const common = commonOf(kinds);
  const isLearnt = common !== undefined && isOfAgents(common);
  if (common !== undefined && (!isLearnt || step === 1 || steps >= STEPS)) {
    const remedy = isLearnt ? `\n${remedyOf(common, all)}` : '';
    return `every episode of step ${step} failed alike: ${failureText(common)}${remedy}`;
  }
  if (steps >= STEPS && most !== undefined)
    return `every episode of the last ${steps} steps failed; in step ${step}, ${percent(most.share, 0)} of them: ${failureText(most.first)}`;
  const lasting = kinds.find(({ kind, first }) => isOfCalls(first) && after[kind] === STEPS);
  if (lasting === undefined) return undefined;
  const { share, first } = lasting;
  return `for ${STEPS} steps more than ${percent(FREQUENT_OF_CALLS, 0)} of the episodes failed for one reason; in step ${step}, ${percent(share, 0)} of them: ${failureText(first)}\n${remedyOfFailure(first.reason)}`;
}

/**
 * A warning when most episodes have failed for the same reason in several steps in a row; it is given once. Calls that
 * fail for one reason in many episodes cause one in the first step of a row.
 */
export function failureWarnings(
  before: LastingFailures,
  played: Failing,
  remedyOf: Remedy = remedyOfReason,
): Warning[] {
  const after = failuresAfter(before, played);
  const { step } = played;
  return failureKinds(played.all)
    .filter(({ kind, first }) => after[kind] === (isOfCalls(first) ? 1 : STEPS) && before[kind] !== after[kind])
    .map(({ share, first }) => {
      const episodes = isOfCalls(first)
        ? `${percent(share, 0)} of the episodes fail for one reason`
        : `for ${STEPS} steps most episodes fail for one reason, now ${percent(share, 0)} of them`;
      const end = isOfCalls(first)
        ? `\nThe run ends if more than ${percent(FREQUENT_OF_CALLS, 0)} fail for it in ${STEPS} steps in a row.`
        : '';
      return {
        type: 'warning',
        code: 'episodes.failing',
        step,
        ...(first.agent === undefined ? {} : { agent: first.agent }),
        message: `step ${step}: ${episodes}: ${failureText(first)}\n${remedyOf(first, played.all)}${end}`,
      };
    });
}
