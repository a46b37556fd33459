import type { Before, Share } from './kernel-arguments.js';

export interface LinearOnto<F, W> {
  readonly out: F;
  readonly before?: Before<F> | undefined;
  readonly x: F;
  readonly packed: W;
  readonly share?: Share<F, W> | undefined;
  readonly rows: number;
  readonly inputs: number;
  readonly outputs: number;
}

/** The calls that `linearOnto` replaces: `linear` in one precision, and the calls that fill its output before. */
interface ReplacedCalls<F, W> {
  copy(given: { readonly to: F; readonly from: F }): void;
  repeat(given: { readonly out: F; readonly row: F; readonly rows: number }): void;
  linear(given: Omit<LinearOnto<F, W>, 'before' | 'share'> & { readonly accumulate: boolean }): void;
}

/** `linearOnto` by the calls that it replaces. */
export function linearOntoByCalls<F extends object, W>(
  { copy, repeat, linear }: ReplacedCalls<F, W>,
  { out, before, x, packed, share, rows, inputs, outputs }: LinearOnto<F, W>,
): void {
  if (before !== undefined) {
    if ('bias' in before) repeat({ out, row: before.bias, rows });
    else if (before.residual !== out) copy({ to: out, from: before.residual });
  }
  linear({ out, x, packed, rows, inputs, outputs, accumulate: before !== undefined });
  if (share !== undefined)
    linear({ out, x: share.x, packed: share.packed, rows, inputs: share.width, outputs, accumulate: true });
}
