import { useState } from 'preact/hooks';
import { significant } from '../../../../src/base/host.js';
import type { ShownToken, ShownTurn } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';
import { useSource } from '../../run-store.js';
import type { TurnPlace } from '../../source/source.js';
import { askAddress } from '../talk/use-quoted.js';
import { TokenView } from './token-view.js';

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
        {turn.cut && <span class="flag">cut at its limit</span>}
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
