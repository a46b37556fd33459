import type { RunRecord } from '../../method/store.js';
import { type AblationRecord, type Variant, variantsOf } from '../../method/store.js';
import type { ComparedRun, ListedAblation } from '../../runs/analysis.js';

/** The variants of an ablation and the runs of each, read from the runs' recipes. */
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

/**
 * The name of the run's variant: its overrides minus those that all runs share. Undefined if the run belongs to none.
 */
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
