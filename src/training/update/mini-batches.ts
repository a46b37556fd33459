import { permutation } from '../../core/random.js';

/** Nearly equal parts in an order that the key decides; the whole in its own order where there is only one. */
export function miniBatchesOf<Sample>(
  samples: readonly Sample[],
  count: number,
  key: readonly (string | number)[],
): Sample[][] {
  if (count === 1) return [[...samples]];
  const order = permutation(samples.length, 'mini-batches', ...key);
  const parts = Array.from({ length: count }, (): Sample[] => []);
  for (const [i, index] of order.entries()) parts[i % count]?.push(samples[index] as Sample);
  return parts.filter((part) => part.length > 0);
}
