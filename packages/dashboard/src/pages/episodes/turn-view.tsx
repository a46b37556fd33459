import { significant } from '@drmas/engine/host';
import { useState } from 'preact/hooks';
import type { ShownToken, ShownTurn } from '../../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';
import { useSource } from '../../run-store.js';
import type { TurnPlace } from '../../source/source.js';
import { askAddress } from '../talk/use-talk.js';
import { type Shade, shadeOf, shades } from './token-shades.js';

interface TurnViewProps {
  readonly turn: ShownTurn;
  readonly place: TurnPlace & { readonly run: string };
  readonly colour: string;
  /** The earlier turns that its prompt contains, in words. */
  readonly reads: readonly string[];
  readonly dimmed: boolean;
}

const signed = (value: number) => `${value > 0 ? '+' : ''}${significant(value)}`;

/** A turn: agent, reward and response; prompt and tokens on request. */
export function TurnView({ turn, place, colour, reads, dimmed }: TurnViewProps) {
  const source = useSource();
  const [tokens, setTokens] = useState<readonly ShownToken[]>();
  const [problem, setProblem] = useState<string>();
  const { advantage } = turn;
  const again = source.talk && askAddress(place.run, place, turn);
  const sign = advantage === null || advantage === 0 ? '' : advantage > 0 ? ' good' : ' bad';
  const showTokens = () => {
    if (tokens !== undefined) return setTokens(undefined);
    source.tokens?.(place.run, place).then(setTokens, (error: Error) => setProblem(error.message));
  };
  return (
    <div class={`turn${sign}${dimmed ? ' dimmed' : ''}`}>
      <div class="what">
        <b class={colour}>{clean(turn.agent)}</b>
        {turn.frozen && <span>frozen</span>}
        {advantage !== null && <span class="advantage">A {signed(advantage)}</span>}
        <span>reward {significant(turn.reward)}</span>
        {turn.stepReward !== 0 && <span>its own {signed(turn.stepReward)}</span>}
        {turn.penalty !== 0 && <span>penalty {significant(-turn.penalty)}</span>}
        {!turn.valid && <span class="flag">invalid</span>}
        {turn.cut && <span class={turn.valid ? 'faint' : 'flag'}>ended by maxTokens</span>}
        {reads.length > 0 && <span>read {clean(reads.join(', '))}</span>}
      </div>
      {tokens === undefined ? <pre>{clean(turn.text) || '(nothing)'}</pre> : <TokenView tokens={tokens} />}
      {problem !== undefined && <p class="notice bad">{clean(problem)}</p>}
      <div class="more">
        {turn.messages.length > 0 && (
          <details>
            <summary>prompt</summary>
            {turn.messages.map(([role, text], i) => (
              <div key={i} class="message">
                <span class="faint">{role}</span>
                <pre>{clean(text)}</pre>
              </div>
            ))}
          </details>
        )}
        {source.tokens !== undefined && turn.tokens > 0 && (
          <button type="button" class="plain" aria-pressed={tokens !== undefined} onClick={showTokens}>
            {turn.tokens} {turn.tokens === 1 ? 'token' : 'tokens'}
          </button>
        )}
        {again !== undefined && <a href={again}>ask it again</a>}
      </div>
    </div>
  );
}

/** The tokens of a response, shaded by likelihood, ratio or advantage; the chosen one in numbers. */
function TokenView({ tokens }: { readonly tokens: readonly ShownToken[] }) {
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
