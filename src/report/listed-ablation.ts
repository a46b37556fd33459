import { type AblationRecord, type Variant, variantsOf } from '../store/ablation-record.js';
import type { RunRecord } from '../store/run-record.js';
import type { ComparedRun } from './analysis/ablation-summary.js';
import type { ListedAblation } from './analysis/feed.js';

/** The variants of an ablation and the runs of each, as their recipes say it. */
export function listedAblation(
  name: string,
  record: AblationRecord,
  runs: readonly { readonly name: string; readonly record: RunRecord }[],
): ListedAblation {
  const variants = variantsOf(record);
  const common = record.recipe.overrides.length;
  return {
    name,
    variants: variants.map(({ name }) => name),
    baseline: record.baseline,
    ...(record.parts === undefined ? {} : { parts: record.parts }),
    runs: runs.flatMap((run) => comparedRun(run.name, run.record, variants, common) ?? []),
  };
}

/** Which variant a run is, by what it overrides after what all runs do; undefined where it is none. */
function comparedRun(
  name: string,
  { recipe, resolved }: RunRecord,
  variants: readonly Variant[],
  common: number,
): ComparedRun | undefined {
  const rest = recipe.overrides.slice(common);
  const is = ({ overrides }: Variant) =>
    overrides.every((override, i) => override === rest[i]) && (rest[overrides.length] ?? 'seed=').startsWith('seed=');
  const variant = variants.find(is);
  if (variant === undefined || typeof resolved.seed !== 'number') return undefined;
  return { name, variant: variant.name, seed: resolved.seed };
}
