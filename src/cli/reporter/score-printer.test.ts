import type { ScoredEvaluation } from '@drmas/engine/events';
import { describe, expect, it } from 'vitest';
import { evaluation, stamped, started, step } from '../../../test/fixtures/run-events.js';
import { emptyHistory, evaluationLine, measureLines, remember } from './progress-printer.js';
import { evaluationLines, sliceLines } from './score-printer.js';
import { summaryLines } from './summary-printer.js';

const { type: _, agents: __, seconds: ___, step: ____, split: _____, samples: ______, ...scores } = evaluation(1, 0.5);
const bounds = { passInterval: { low: 0.25, high: 0.75 }, majorityInterval: { low: 0, high: 1 } };
const divided = {
  ...evaluation(1, 0.5),
  slices: { subject: { Algebra: { ...scores, tasks: 7, ...bounds }, [`Geometry ${'x'.repeat(90)}`]: scores } },
};

describe('the parts of an evaluation', () => {
  it('have a line each, with intervals where there is room', () => {
    const [head, algebra, geometry, blank] = sliceLines(divided, 100);
    expect(head).toMatch(/^subject +tasks +avg@4 +pass@4 +maj@4$/);
    expect(algebra).toMatch(
      /^Algebra +7 +50\.0 % +\[47\.0, 53\.0\] +55\.0 % +\[25\.0, 75\.0\] +52\.0 % +\[0\.0, 100\.0\]$/,
    );
    expect(geometry).toMatch(/^Geometry x{14}… +256 +50\.0 %/);
    expect(blank).toBe('');
  });

  it('go without intervals on a narrow screen', () => {
    const lines = sliceLines(divided, 60);
    expect(lines[1]).toMatch(/^Algebra +7 +50\.0 % +55\.0 % +52\.0 %$/);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
  });

  it('are not there where nothing was divided', () => expect(sliceLines(evaluation(1, 0.5), 60)).toEqual([]));
});

describe('what an evaluation measured besides its scores', () => {
  const { solver, verifier } = evaluation(1, 0.5).agents;
  const measured = {
    ...evaluation(1, 0.5),
    reward: 0.475,
    rewardInterval: { low: 0.4, high: 0.6 },
    parts: { attempts: -0.025, correct: 0.5 },
    metrics: { trueVerdicts: 0.84 },
    agents: {
      solver: { ...solver, reward: 0.475 },
      verifier: { ...verifier, reward: 0.084, parts: { verdicts: 0.084 } },
    } as ScoredEvaluation['agents'],
  };
  const all =
    '  trueVerdicts 0.84  reward 0.47  reward: attempts -0.0250  reward: correct 0.50  reward of verifier 0.0840';

  it('is a line of metrics and rewards, the metrics first', () => {
    expect(measureLines(measured, 120)).toEqual([all]);
    expect(measureLines(measured, 40)).toEqual([all.slice(0, all.indexOf('  reward: attempts'))]);
    expect(evaluationLines(measured, 80)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^trueVerdicts +0\.84$/),
        expect.stringMatching(/^reward +0\.47 +\[0\.40, 0\.60\]$/),
      ]),
    );
  });

  it('is empty if there is only the score', () => {
    expect(measureLines(evaluation(1, 0.5), 80)).toEqual([]);
    const plain = { solver: { ...solver, reward: 0.5 } } as ScoredEvaluation['agents'];
    expect(measureLines({ ...evaluation(1, 0.5), reward: 0.5, parts: { correct: 0.5 }, agents: plain }, 80)).toEqual(
      [],
    );
  });
});

const continuous = (at: number, reward: number): ScoredEvaluation => ({ ...evaluation(at, 0), reward, parts: {} });

const summary = (saysSuccess: boolean, ...evaluations: ScoredEvaluation[]) => {
  const bodies = [{ ...started, success: saysSuccess }, ...evaluations, step(1)];
  const history = bodies.reduce((before, body) => remember(before, stamped(body)), emptyHistory());
  return summaryLines(history, 10, 80).join('\n');
};

describe('the last lines of a run', () => {
  it('come in time for a run of 130,000 steps', () => {
    const event = stamped(step(1));
    const history = emptyHistory();
    for (let i = 0; i < 130_000; i++) remember(history, event);
    expect(summaryLines(history, 10, 80).join('\n')).toMatch(/^training reward/);
  });

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

  it('say that a difference may be chance if the intervals overlap', () => {
    const wide = { ...evaluation(3, 0.55), interval: { level: 0.95, low: 0.45, high: 0.65 } };
    expect(summary(true, evaluation(0, 0.5), wide).replaceAll(/\s+/g, ' ')).toContain('They overlap: the difference');
    const apart = { ...wide, averageAtK: 0.9, interval: { level: 0.95, low: 0.8, high: 0.95 } };
    expect(summary(true, evaluation(0, 0.5), apart)).not.toContain('overlap');
    const narrow = { ...evaluation(0, 0), interval: { level: 0.95, low: 0, high: 0 } };
    const said = (...events: ScoredEvaluation[]) => summary(true, ...events).replaceAll(/\s+/g, ' ');
    expect(said(narrow, wide)).toContain('held-out tasks. An earlier version of drmas wrote the interval of step 0,');
    expect(said(evaluation(0, 0.5), wide)).not.toContain('An earlier version');
    const solved = summary(true, evaluation(0, 1), evaluation(3, 1));
    expect(solved).toContain('held-out tasks. The scores are equal.');
    expect(solved).not.toContain('chance');
  });

  it('keep the row of a reward that equals the score by chance in one evaluation', () => {
    const earned = (at: number, score: number, reward: number) =>
      ({
        ...evaluation(at, score),
        agents: { solver: { ...evaluation(at, 0).agents.solver, reward } },
      }) as ScoredEvaluation;
    const [before, after] = [earned(0, 0.5, 0.25), earned(3, 0.75, 0.75)];
    expect(summary(true, before, after)).toMatch(/^ +reward of solver +0\.25 +-> +0\.75/m);
    expect(measureLines(after, 80)).toEqual([]);
    expect(measureLines(after, 80, [before, after])).toEqual(['  reward of solver 0.75']);
  });

  it('say how many episodes were scored if a reward failed', () => {
    const event = { ...evaluation(3, 0.5), unscored: 3, episodes: 40 };
    expect(summary(true, evaluation(0, 0.5), event)).toContain('37 of 40 episodes scored');
    expect(evaluationLine(event, 120)).toContain('37 of 40 episodes scored');
    expect(evaluationLine(evaluation(3, 0.5), 120)).not.toContain('scored');
    const { averageAtK: _, passAtK: __, majorityAtK: ___, interval: ____, ...away } = evaluation(4, 0.5);
    const none = { ...away, tasks: 0, unscored: 8, episodes: 8, agents: {} };
    expect(evaluationLine(none, 120)).toBe('evaluation at step 4  0 of 8 episodes scored  0 tasks x 4  2.0 s');
    expect(measureLines(none, 120)).toEqual([]);
    const history = [started, evaluation(0, 0.5), none].reduce((h, body) => remember(h, stamped(body)), emptyHistory());
    expect(summaryLines(history, 10, 80)[0]).toMatch(/^score 50\.0 % \[/);
  });
});
