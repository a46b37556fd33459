import type { AblationRecord } from '../store/ablation-record.js';
import type { RunRecord } from '../store/run-record.js';
import type { ComparedRun } from './analysis/ablation-summary.js';
import type { ListedAblation } from './analysis/feed.js';

/** The variants of an ablation and the runs of each, as their recipes say it. */
export function listedAblation(
  name: string,
  { vary, baseline }: AblationRecord,
  runs: readonly { readonly name: string; readonly record: RunRecord }[],
): ListedAblation {
  const variants = vary.reduce<string[]>(
    (names, { values }) =>
      names.flatMap((first) => values.map((value) => (first === '' ? value : `${first}, ${value}`))),
    [''],
  );
  return { name, variants, baseline, runs: runs.flatMap((run) => comparedRun(run.name, run.record, vary) ?? []) };
}

/** Which variant a run is, by its last override of each key that varies; undefined where it lacks one. */
function comparedRun(
  name: string,
  { recipe, resolved }: RunRecord,
  vary: AblationRecord['vary'],
): ComparedRun | undefined {
  const values = vary.map(({ key }) =>
    recipe.overrides.findLast((override) => override.startsWith(`${key}=`))?.slice(key.length + 1),
  );
  if (values.includes(undefined) || typeof resolved.seed !== 'number') return undefined;
  return { name, variant: values.join(', '), seed: resolved.seed };
}
