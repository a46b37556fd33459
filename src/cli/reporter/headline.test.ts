import { describe, expect, it } from 'vitest';
import { evaluation, stamped, started, step } from '../../../test/fixtures/run-events.js';
import type { EvaluationEvent } from '../../base/core/events.js';
import { evaluationLine } from './progress-printer.js';
import { emptyHistory, remember } from './run-history.js';
import { summaryLines } from './summary-printer.js';

const continuous = (at: number, reward: number): EvaluationEvent => ({ ...evaluation(at, 0), reward, parts: {} });

const summary = (saysSuccess: boolean, ...evaluations: EvaluationEvent[]) => {
  const bodies = [{ ...started, success: saysSuccess }, ...evaluations, step(1)];
  const history = bodies.reduce((before, body) => remember(before, stamped(body)), emptyHistory);
  return summaryLines(history, 10, 80).join('\n');
};

describe('the last lines of a run', () => {
  it('begin with the mean reward if the score says nothing, and say how to add a success', () => {
    const text = summary(false, continuous(0, 0.2), continuous(3, 0.31));
    expect(text).toMatch(/^reward 0\.2\d* -> 0\.31/);
    expect(text).toMatch(/Add\s+`success` beside/);
    expect(text).toMatch(/^evaluations: 0\.2\d* -> 0\.31/m);
    expect(text).not.toContain('points)');
  });

  it('begin with the score of a team that says what success is, although it is 0', () => {
    const text = summary(true, continuous(0, 0.2), continuous(3, 0.31));
    expect(text).toMatch(/^score 0\.0 % -> 0\.0 %/);
    expect(text).not.toContain('Add `success`');
  });

  it('say how many episodes were scored if a reward failed', () => {
    const event = { ...evaluation(3, 0.5), unscored: 3, episodes: 40 };
    expect(summary(true, evaluation(0, 0.5), event)).toContain('37 of 40 episodes scored');
    expect(evaluationLine(event, 120)).toContain('37 of 40 episodes scored');
    expect(evaluationLine(evaluation(3, 0.5), 120)).not.toContain('scored');
  });
});
