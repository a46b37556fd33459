/** Failures that last: steps in a row in which all, or most, episodes fail. */
import type { Warning } from '../../../base/events.js';
import { percent, remedyOfFailure } from '../../../base/host.js';
import { commonFailure, failureKinds, failureText } from './common-failure.js';
import type { Played } from './played.js';

/** The steps in a row that end a run if no episode is whole, and that cause a warning if most fail for one reason. */
const STEPS = 3;
/** A failure of a larger share of the episodes is frequent. */
const FREQUENT = 0.5;
/** The name of the count of steps in which all episodes failed. Kinds of failures have no such name. */
const ALL = '(all)';

/** Steps in a row, by kind of failure. A kind that has reached `STEPS` keeps this number: it has been reported. */
export type LastingFailures = Readonly<Record<string, number>>;

type Failing = Pick<Played, 'step' | 'all'>;

/** The counts after a step. */
export function failuresAfter(before: LastingFailures, { all }: Failing): LastingFailures {
  const kinds = failureKinds(all);
  const reported = Object.entries(before).filter(([kind, steps]) => kind !== ALL && steps >= STEPS);
  const frequent = kinds.filter(({ share }) => share > FREQUENT).map(({ kind }) => kind);
  const counts = frequent.map((kind): [string, number] => [kind, Math.min(STEPS, (before[kind] ?? 0) + 1)]);
  const failed = kinds.reduce((sum, { share }) => sum + share, 0);
  const isWhole = all.length === 0 || failed < 1 - 1e-9;
  return Object.fromEntries([...reported, ...counts, ...(isWhole ? [] : [[ALL, (before[ALL] ?? 0) + 1] as const])]);
}

/**
 * The reason why a run must end with a step: all of its episodes failed, for one reason, or for any reason in several
 * steps in a row. Outputs that do not fit still teach, so that alone they end a run in its first step, and later after
 * several steps.
 */
export function fatalFailure(before: LastingFailures, played: Failing): string | undefined {
  const { step, all } = played;
  const steps = failuresAfter(before, played)[ALL] ?? 0;
  const common = commonFailure(all);
  const isWeak = common?.reason === 'invalid-output';
  if (common !== undefined && (!isWeak || step === 1 || steps >= STEPS)) {
    const remedy = isWeak ? `\n${remedyOfFailure(common.reason)}` : '';
    return `every episode of step ${step} failed alike: ${failureText(common)}${remedy}`;
  }
  const [most] = failureKinds(all);
  if (steps < STEPS || most === undefined) return undefined;
  return `every episode of the last ${steps} steps failed; in step ${step}, ${percent(most.share, 0)} of them: ${failureText(most.first)}`;
}

/** A warning when most episodes have failed for the same reason in several steps in a row. It is given once. */
export function failureWarnings(before: LastingFailures, played: Failing): Warning[] {
  const after = failuresAfter(before, played);
  return failureKinds(played.all)
    .filter(({ kind }) => after[kind] === STEPS && before[kind] !== STEPS)
    .map(({ share, first }) => ({
      ...{ type: 'warning', code: 'episodes.failing', step: played.step },
      ...(first.agent === undefined ? {} : { agent: first.agent }),
      message: `step ${played.step}: for ${STEPS} steps most episodes fail for one reason, now ${percent(share, 0)} of them: ${failureText(first)}\n${remedyOfFailure(first.reason)}`,
    }));
}
