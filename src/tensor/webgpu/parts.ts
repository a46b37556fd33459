import { WINDOW } from './bind-groups.js';

/**
 * Calls `part` for runs of rows of a matrix, each of which fits a binding: with the first row and their number.
 * @param binding Bytes of a binding at most
 */
export function inParts(
  binding: number,
  { rows, width, bytesPerNumber }: { readonly rows: number; readonly width: number; readonly bytesPerNumber: number },
  part: (first: number, count: number) => void,
): void {
  // Even, so that a part in bfloat16 begins with a word; a binding begins before its first number and ends behind it.
  const most = Math.max(2, Math.floor((binding - 2 * WINDOW) / (width * bytesPerNumber) / 2) * 2);
  for (let first = 0; first < rows; first += most) part(first, Math.min(most, rows - first));
}
