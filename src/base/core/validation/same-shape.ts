import { ArgumentError } from '../errors.js';

/**
 * Checks that arrays have the same rows of the same lengths.
 * @throws ArgumentError naming the first array whose shape differs from the first array's
 */
export function assertSameShape(arrays: Readonly<Record<string, readonly ArrayLike<unknown>[]>>): void {
  const [first, ...others] = Object.entries(arrays);
  if (first === undefined) return;
  const [name, rows] = first;
  for (const [otherName, otherRows] of others) {
    if (otherRows.length !== rows.length) {
      throw new ArgumentError(`${otherName} has ${otherRows.length} rows, ${name} has ${rows.length}`);
    }
    rows.forEach((row, r) => {
      const length = otherRows[r]?.length;
      if (length !== row.length) {
        throw new ArgumentError(`${otherName}[${r}] has ${length} entries, ${name}[${r}] has ${row.length}`);
      }
    });
  }
}
