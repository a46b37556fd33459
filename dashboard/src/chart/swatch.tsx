import { dashOf } from './theme.js';

/** A piece of a line in the colour and the dashes of its number. */
export function Swatch({ colour }: { readonly colour: number }) {
  return (
    <svg class="swatch" viewBox="0 0 22 10" aria-hidden="true">
      <line x1="0" x2="22" y1="5" y2="5" stroke-dasharray={dashOf(colour).join(' ')} />
    </svg>
  );
}
