import type { EventBody, RunEvent } from '@drmas/engine/events';
import { describe, expect, it } from 'vitest';
import { evaluation, stamped, step } from '../../../test/fixtures/run-events.js';
import { type RunSummary, summariseRun, summariseVariants } from '../../runs/analysis/ablation-summary.js';
import { pairedDifferences } from '../../runs/analysis/paired-interval.js';
import { ablationLines, successLines } from './ablation-printer.js';

/** A run whose team has two parts of its reward and a reward of its verifier, with a metric and optional tokens. */
function run(variant: string, seed: number, tokens?: { readonly read: number; readonly cost?: number }): RunSummary {
  const spent = tokens && {
    tokens: { read: tokens.read, written: 10, trained: 40 },
    ...(tokens.cost !== undefined && { cost: tokens.cost }),
  };
  const played = step(1, { episodes: { played: 10, failed: 0 } });
  const agents = Object.entries(played.agents).map(([name, agent]) => [name, { ...agent, ...spent }] as const);
  const last = evaluation(1, 0.5);
  const verifier = { reward: 0.2, parts: { judged: 0.3, polite: -0.1 } };
  const events: RunEvent[] = [
    { ...played, agents: Object.fromEntries(agents) },
    {
      ...last,
      reward: 0.9 + seed,
      parts: { correct: 0.5, style: 0.4 + seed },
      metrics: { hops: 2 },
      agents: Object.fromEntries(
        Object.entries(last.agents).map(([name, agent]) => [
          name,
          { ...agent, ...(name === 'verifier' ? verifier : { reward: 0.9 + seed }) },
        ]),
      ),
    },
  ].map(stamped);
  return summariseRun({ name: `${variant}-${seed}`, variant, seed }, events);
}

function lines(runs: readonly RunSummary[], width: number): string[] {
  const variants = [...new Set(runs.map(({ variant }) => variant))];
  const result = { directory: '', baseline: 'grpo', runs, variants: summariseVariants(runs, variants) };
  return ablationLines({ ...result, differences: [], metricDifferences: {} }, width);
}

describe('an ablation whose score is 0', () => {
  const linesOf = (score: number, rewards: object, saysSuccess = false) => {
    const last = { ...evaluation(1, score), ...rewards };
    const runs = ['a', 'b'].map((variant) =>
      summariseRun({ name: variant, variant, seed: 1 }, [step(1), last].map(stamped)),
    );
    const variants = summariseVariants(runs, ['a', 'b']);
    const result = { directory: '', baseline: 'a', runs, variants, differences: [], metricDifferences: {} };
    return successLines(result, saysSuccess, 80).join(' ');
  };

  it('says why, if rewards are earned that are no success', () => {
    expect(linesOf(0, { reward: 0.4 })).toContain('Success is a reward of at least 1');
    expect(linesOf(0, { reward: 0 })).toBe('');
    expect(linesOf(0.1, { reward: 0.4 })).toBe('');
    expect(linesOf(0, { reward: 0.4 }, true)).toBe('');
    expect(linesOf(0, { reward: -0.1, parts: { solved: 0, calls: -0.1 } })).toBe('');
    expect(linesOf(0, { reward: 0.1, parts: { correct: 0, style: 0.1 } })).toBe('');
  });
});

describe('the comparison at the end of an ablation', () => {
  const priced = ['grpo', 'drmas'].flatMap((variant) =>
    [1, 2].map((seed) => run(variant, seed, { read: 100 * seed, cost: 0.25 })),
  );

  it("shows the team's metrics and rewards, and those of an agent, with their named parts", () => {
    const table = lines(priced, 80);
    const row = (label: string) => table.find((line) => line.startsWith(label))?.split(/ {2,}/);
    expect(row('last evaluation')).toEqual(['last evaluation', 'grpo', 'drmas']);
    expect(row('hops')).toEqual(['hops', '2.00', '2.00']);
    expect(row('reward: style')).toEqual(['reward: style', '1.90', '1.90']);
    expect(row('reward of verifier: judged')).toEqual(['reward of verifier: judged', '0.30', '0.30']);
    expect(table.some((line) => line.startsWith('reward of solver'))).toBe(false); // it earns what the team earns
  });

  it('averages over the runs that measured a number, and shows no 0 for one that none has measured', () => {
    const stepOf = (measured: boolean) => {
      const { reward, agents, ...played } = step(1);
      const unknown = Object.entries(agents).map(([name, { calls: _, ...agent }]) => {
        return [name, { ...agent, gradientNorm: Number.NaN }] as const;
      });
      return measured ? { ...played, reward, agents } : { ...played, agents: Object.fromEntries(unknown) };
    };
    const runOf = (seed: number, measured: boolean) =>
      summariseRun({ name: `${seed}`, variant: 'a', seed }, [stepOf(measured) as EventBody].map(stamped));
    const [whole, nothing] = [runOf(1, true), runOf(2, false)];
    for (const value of [nothing.reward, nothing.agents.verifier?.norm, nothing.agents.verifier?.maxNorm])
      expect(value).toBeNaN();
    for (const stage of [nothing.agents.verifier?.first, nothing.agents.verifier?.last])
      for (const name of ['share', 'success', 'overall', 'norm'] as const) expect(stage?.[name], name).toBeNaN();
    const [both] = summariseVariants([whole, nothing], ['a']);
    expect(both?.reward).toBe(whole.reward);
    for (const name of ['norm', 'maxNorm'] as const)
      expect(both?.agents.verifier?.[name]).toBe(whole.agents.verifier?.[name]);
    expect(both?.scoreSpread).toBeNaN();
    const shown = lines([nothing], 80).find((line) => line.startsWith('a '));
    expect(shown?.split(/ +/)).toEqual(['a', '1', 'no', 'score', 'no', 'score', '-', '-', '0']);
    const ofAgent = lines([nothing], 80).find((line) => line.startsWith('a: verifier'));
    expect(ofAgent?.split(/ {2,}/).slice(0, 4)).toEqual(['a: verifier', '-', '-', '0']);
  });

  it('leaves out of pairs and means the scores of runs whose rewards all failed, and says what is missing', () => {
    const all = { unscored: 40, episodes: 40 };
    const { score: _, ...unscored } = { ...run('drmas', 2), ...all };
    const runs = [1, 2, 3].flatMap((seed): RunSummary[] => [
      { ...run('grpo', seed), score: 0.5 },
      seed === 2 ? unscored : { ...run('drmas', seed), score: 0.7 },
      ...(seed === 1 ? [{ ...run('rloo', seed), unscored: 3, episodes: 40 }] : []),
    ]);
    const [difference] = pairedDifferences(runs, ['grpo', 'drmas'], 'grpo');
    expect(difference).toMatchObject({ pairs: 2, better: 2, mean: expect.closeTo(0.2, 12) });
    const [, mean] = summariseVariants(runs, ['grpo', 'drmas']);
    expect(mean).toMatchObject({ runs: 3, score: expect.closeTo(0.7, 12) });
    expect(lines(runs, 80).slice(-2)).toEqual([
      'rloo, pair 1: 50.0 % -> 50.0 %, 37 of 40 episodes scored at the end',
      'drmas, pair 2: 50.0 % -> no score, 0 of 40 episodes scored at the end',
    ]);
    const last = { ...evaluation(1, 0), unscored: 5, episodes: 5, metrics: { hops: 0 } };
    const summary = summariseRun({ name: 'a', variant: 'a', seed: 1 }, [stamped(last)]);
    expect(summary).toMatchObject({ unscored: 5, episodes: 5 });
    expect([summary.metrics, summary.rewards]).toEqual([undefined, undefined]);
  });

  it('averages evaluations of one step, and rewards of one step, if some were not measured', () => {
    const scores: readonly (readonly (number | undefined)[])[] = [
      [0.1, 0.3, 0.5],
      [0.3, undefined, 0.9],
      [0.2, 0.4, undefined],
    ];
    const runs = scores.map((ofRun, seed) => {
      const events = ofRun.flatMap((score, i): EventBody[] => {
        const { averageAtK: _, ...unscored } = evaluation(5 * i, 0);
        const { reward: __, ...unrewarded } = step(i + 1);
        return [
          score === undefined ? unrewarded : step(i + 1, { reward: { mean: score, std: 0 } }),
          score === undefined ? { ...unscored, unscored: 5, episodes: 5 } : evaluation(5 * i, score),
        ];
      });
      return summariseRun({ name: `a-${seed}`, variant: 'a', seed }, events.map(stamped));
    });
    const curvesOf = (of: readonly RunSummary[]) => summariseVariants(of, ['a'])[0]?.curve;
    const close = (value: number) => expect.closeTo(value, 12);
    expect(curvesOf(runs)).toEqual({
      rewards: [close(0.2), close(0.35), close(0.7)],
      evaluations: [{ step: 0, score: close(0.2) }],
    });
    expect(curvesOf(runs.slice(0, 2))?.evaluations).toEqual([
      { step: 0, score: close(0.2) },
      { step: 10, score: close(0.7) },
    ]);
    expect(runs[1]?.reward).toBeCloseTo(0.6, 12);
  });

  it('shows the tokens of an episode by agent, and what a run costs', () => {
    const table = lines(priced, 80);
    const row = (label: string) => table.findLast((line) => line.startsWith(label))?.split(/ {2,}/);
    expect(row('tokens an episode')).toEqual(['tokens an episode', 'read', 'written', 'trained', 'run costs', 'a run']);
    // 10 episodes of the step and 1,024 of the evaluation, for which the fake has no tokens
    expect(row('grpo: solver')?.slice(0, 5)).toEqual(['grpo: solver', '0', '0', '0', '0.25']);
    expect(lines([run('grpo', 1, { read: 5170 }), run('drmas', 1, { read: 10340 })], 80).join('\n')).toMatch(
      /drmas: solver +10 +0 +0\n/,
    );
  });

  it('shows neither where the logs do not tell them', () => {
    expect(lines([run('grpo', 1)], 80).join('\n')).not.toContain('tokens an episode');
  });

  it.each([49, 60])('puts the columns of many variants below each other in %i columns', (width) => {
    const many = ['grpo', 'drmas', 'rloo', 'magrpo'].map((variant) => run(variant, 1));
    const table = lines(many, width);
    const heads = table.filter((line) => line.startsWith('last evaluation'));
    expect(heads.join(' ').match(/grpo|drmas|rloo|magrpo/g)).toHaveLength(4);
    expect(Math.max(...heads.map((line) => line.length))).toBeLessThanOrEqual(width);
  });
});
