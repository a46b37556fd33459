import type { RunFacts } from '../../../src/runs/analysis.js';
import { intervalText, pointsText, scoreText } from './texts.js';

/** A score with its interval on a scale from 0 to 1, the first one as a tick, and the gain beside it. */
export function ScoreBar({ first, last, headline }: Pick<RunFacts, 'first' | 'last' | 'headline'>) {
  if (last === null) return <span class="faint">no score yet</span>;
  if (headline === 'reward')
    return (
      <span class="score" title={`mean reward at step ${last.step}`}>
        <b>{scoreText(last, headline)}</b>{' '}
        <span class="faint">
          reward{first === null || first.step === last.step ? '' : `, first ${scoreText(first, headline)}`}
        </span>
      </span>
    );
  const at = (value: number) => 2 + 96 * Math.min(1, Math.max(0, value));
  const gain = first === null || first.step === last.step ? undefined : last.averageAtK - first.averageAtK;
  return (
    <span class="score" title={`avg@k ${scoreText(last)} ${intervalText(last)} at step ${last.step}`}>
      <b>{scoreText(last)}</b>
      <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
        <line class="rail" x1="2" x2="98" y1="7" y2="7" />
        {first !== null && <line class="from" x1={at(first.averageAtK)} x2={at(first.averageAtK)} y1="2" y2="12" />}
        <line class="span" x1={at(last.low)} x2={at(last.high)} y1="7" y2="7" />
        <line class="at" x1={at(last.averageAtK)} x2={at(last.averageAtK)} y1="1" y2="13" />
      </svg>
      <span class={gain === undefined ? 'faint' : gain >= 0 ? 'gain' : 'loss'}>
        {gain === undefined ? intervalText(last) : pointsText(gain)}
      </span>
    </span>
  );
}
