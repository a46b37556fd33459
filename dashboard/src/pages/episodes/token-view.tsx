import { useState } from 'preact/hooks';
import { significant } from '../../../../src/core/format.js';
import type { ShownToken } from '../../../../src/report/analysis/shown-episode.js';
import { clean } from '../../parts/texts.js';

/** -log p at which a token is as dark as it gets: one in 150. */
const DARKEST = 5;

/** The tokens of a response, shaded by how unlikely each was, or by its advantage. */
export function TokenView({ tokens }: { readonly tokens: readonly ShownToken[] }) {
  const [shade, setShade] = useState<'log-prob' | 'advantage'>('log-prob');
  const advantages = new Set(tokens.map(({ advantage }) => advantage));
  const largest = Math.max(...tokens.map(({ advantage }) => Math.abs(advantage ?? 0)), 1e-9);
  return (
    <div class="tokens">
      <div class="shades">
        {(['log-prob', 'advantage'] as const).map((one) => (
          <button key={one} type="button" class="plain" aria-pressed={shade === one} onClick={() => setShade(one)}>
            {one}
          </button>
        ))}
        <span class="faint">
          {shade === 'log-prob'
            ? 'darker: less likely when it was sampled'
            : advantages.size === 1
              ? 'all tokens of the turn have the same'
              : 'green: above, red: below'}
        </span>
      </div>
      <pre>
        {tokens.map((token, i) => (
          <span
            key={i}
            class={`token ${shade === 'log-prob' ? 'likely' : (token.advantage ?? 0) >= 0 ? 'above' : 'below'}`}
            style={{ '--shade': `${Math.round(100 * strength(token, shade, largest))}%` }}
            title={titleOf(token)}
          >
            {clean(token.text)}
          </span>
        ))}
      </pre>
    </div>
  );
}

function strength({ logprob, advantage }: ShownToken, shade: 'log-prob' | 'advantage', largest: number): number {
  const of = shade === 'log-prob' ? -(logprob ?? 0) / DARKEST : Math.abs(advantage ?? 0) / largest;
  return 0.75 * Math.min(1, Math.max(0, of));
}

function titleOf({ logprob, advantage }: ShownToken): string {
  const probability = logprob === null ? '' : `log-prob ${significant(logprob)} (p ${significant(Math.exp(logprob))})`;
  return [probability, advantage === null ? '' : `advantage ${significant(advantage)}`].filter(Boolean).join(', ');
}
