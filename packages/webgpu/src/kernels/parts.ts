import { WINDOW } from './bind-groups.js';
import type { DeviceFloats } from './device-memory.js';

/** A matrix in memory. */
interface Rows {
  readonly rows: number;
  readonly width: number;
  readonly bytesPerNumber: number;
}

/**
 * The most rows of a matrix that fit a binding of so many bytes. They are even, so that a part in bfloat16 begins with
 * a word; and a binding begins before its first number and ends behind its last.
 */
export const rowsOfPart = (binding: number, { width, bytesPerNumber }: Rows): number =>
  Math.max(2, Math.floor((binding - 2 * WINDOW) / (width * bytesPerNumber) / 2) * 2);

/**
 * Calls `part` for runs of rows of a matrix that each fit a binding, with the first row and the number of rows.
 * @param binding Bytes of a binding at most
 */
export function inParts(binding: number, matrix: Rows, part: (first: number, count: number) => void): void {
  const most = rowsOfPart(binding, matrix);
  for (let first = 0; first < matrix.rows; first += most) part(first, Math.min(most, matrix.rows - first));
}

/** The length of a chunk, which `alongside` does not cut: a group sums the squares of one chunk in float32. */
export const CHUNK = 1024;

/** Calls `part` for parts of equally long memories that fit a binding. All parts but the last are whole chunks. */
export function alongside(
  binding: number,
  length: number,
  memories: readonly DeviceFloats[],
  part: (parts: readonly DeviceFloats[], count: number) => void,
): void {
  inParts(binding, { rows: Math.ceil(length / CHUNK), width: CHUNK, bytesPerNumber: 4 }, (first, count) => {
    const end = Math.min((first + count) * CHUNK, length);
    part(
      memories.map((memory) => memory.subarray(first * CHUNK, end)),
      end - first * CHUNK,
    );
  });
}
