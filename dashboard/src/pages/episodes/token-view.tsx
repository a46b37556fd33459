import { useState } from 'preact/hooks';
import { significant } from '../../../../src/base/host.js';
import type { ShownToken } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';
import { type Shade, shadeOf, shades } from './token-shades.js';

/** The tokens of a response, shaded by likelihood, ratio or advantage; the chosen one in numbers. */
export function TokenView({ tokens }: { readonly tokens: readonly ShownToken[] }) {
  const [shade, setShade] = useState<Shade>('log-prob');
  const [chosen, setChosen] = useState<number>();
  const largest = Math.max(...tokens.map(({ advantage }) => Math.abs(advantage ?? 0)), 1e-9);
  const token = chosen === undefined ? undefined : tokens[chosen];
  return (
    <div class="tokens">
      <div class="shades">
        {shades.map((one) => (
          <button key={one} type="button" class="plain" aria-pressed={shade === one} onClick={() => setShade(one)}>
            {one}
          </button>
        ))}
        <span class="faint">{legendOf(shade, tokens)}</span>
      </div>
      <pre onMouseLeave={() => setChosen(undefined)}>
        {tokens.map((one, i) => {
          const { kind, strength } = shadeOf(one, shade, largest);
          return (
            // biome-ignore lint/a11y: its title has the same text
            <span
              key={i}
              class={`token ${kind}${one.clipped ? ' clipped' : ''}${chosen === i ? ' chosen' : ''}`}
              style={{ '--shade': `${Math.round(100 * strength)}%` }}
              title={numbersOf(one)}
              onMouseEnter={() => setChosen(i)}
              onClick={() => setChosen(i)}
            >
              {clean(one.text)}
            </span>
          );
        })}
      </pre>
      <p class="numbers">{token === undefined ? <span class="faint">{summaryOf(tokens)}</span> : numbersOf(token)}</p>
    </div>
  );
}

function legendOf(shade: Shade, tokens: readonly ShownToken[]): string {
  if (shade === 'log-prob') return 'darker: less likely when it was sampled';
  if (shade === 'ratio')
    return tokens.every(({ ratio }) => ratio === null)
      ? 'no update used this turn, or it was not kept'
      : 'green: more likely at its last update, red: less likely; framed: clipped';
  return new Set(tokens.map(({ advantage }) => advantage)).size === 1
    ? 'all tokens of the turn have the same'
    : 'green: above, red: below';
}

/** The whole response in numbers. */
function summaryOf(tokens: readonly ShownToken[]): string {
  const ratios = tokens.flatMap(({ ratio }) => ratio ?? []);
  if (ratios.length === 0) return 'move the pointer to a token to see its numbers';
  const [least, most] = [significant(Math.min(...ratios)), significant(Math.max(...ratios))];
  const span = least === most ? least : `${least} to ${most}`;
  return `ratio ${span}, ${tokens.filter(({ clipped }) => clipped).length} of ${tokens.length} clipped`;
}

function numbersOf({ text, logprob, ratio, clipped, advantage }: ShownToken): string {
  const numbers = [
    logprob === null ? '' : `log-prob ${significant(logprob)} (p ${significant(Math.exp(logprob))})`,
    ratio === null ? '' : `ratio ${significant(ratio)}${clipped ? ', clipped' : ''}`,
    advantage === null ? '' : `advantage ${significant(advantage)}`,
  ];
  return `${JSON.stringify(clean(text))}: ${numbers.filter((number) => number !== '').join(', ')}`;
}
