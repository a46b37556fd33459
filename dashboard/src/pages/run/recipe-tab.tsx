import type { ShownRecord } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';

/** The recipe as it was resolved. */
export function RecipeTab({ record }: { readonly record: ShownRecord | null }) {
  if (record === null) return <p class="empty">recipe.json cannot be read.</p>;
  const { recipe, resolved } = record;
  return (
    <>
      <p class="faint">
        From {clean(recipe.source)}
        {recipe.overrides.length === 0 ? ', nothing overridden' : ', with'}
      </p>
      {recipe.overrides.length > 0 && (
        <p>
          {recipe.overrides.map((override) => (
            <code key={override}>{clean(override)}</code>
          ))}
        </p>
      )}
      <pre class="json">{clean(JSON.stringify(resolved, null, 2))}</pre>
    </>
  );
}
