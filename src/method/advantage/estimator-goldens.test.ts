import type { TurnRecord } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { golden, goldenNames } from '../../../test/goldens.js';
import { estimateAdvantages } from '../../runs/composition/estimate-advantages.js';
import { estimateStep } from './estimate.js';
import type { Estimator } from './estimators/index.js';

interface GoldenTurn {
  task: string;
  episode: string;
  agent: string;
  turnIndex: number;
  reward: number;
  valid: boolean;
  length: number;
  parts?: Record<string, number>;
  anchor?: string;
}
type Params = Record<string, unknown> & { invalidPenalty: number | null; epsilon: number };
interface Case {
  id: string;
  kind: string;
  params: Params;
  turns: GoldenTurn[];
  expected: (number | number[])[] | null;
  error?: string;
}

const literal = { minimumSpread: 0, singleton: 'raw' } as const;
const first = { episodeScore: 'first' } as const;

/** A golden case, in the format that the README of the goldens describes. */
const files: Record<string, (params: Params) => Estimator> = {
  grpo: ({ epsilon }) => ({ type: 'grpo', epsilon, ...literal }),
  grpo_no_std: () => ({ type: 'dr-grpo', ...literal }),
  drmas: ({ epsilon }) => ({ type: 'drmas', epsilon, ...literal }),
  drmas_no_std: () => ({ type: 'drmas', spread: 'none', ...literal }),
  mixed_formula: ({ meanOver, stdOver, globalUnit, epsilon }) => ({
    type: 'partition',
    score: 'turn',
    mean: meanOver === 'agent' ? 'agent' : 'task',
    spread: stdOver === 'agent' ? 'agent' : 'task',
    unit: globalUnit === 'turn' ? 'turn' : 'episode',
    epsilon,
    ...literal,
  }),
  rloo: ({ byAgent }) => ({ type: 'rloo', byAgent: byAgent === true, singleton: 'raw', ...first }),
  reinforce_plus_plus_baseline: ({ byAgent }) => ({
    type: 'reinforce++-baseline',
    byAgent: byAgent === true,
    singleton: 'raw',
    ...first,
  }),
  gigpo: ({ byAgent, mode, stepAdvantageWeight, gamma, epsilon, similarityThreshold }) => ({
    type: 'gigpo',
    byAgent: byAgent === true,
    spread: mode === 'mean_norm' ? 'none' : 'group',
    stepWeight: Number(stepAdvantageWeight),
    gamma: Number(gamma),
    similarity: similarityThreshold === null ? undefined : Number(similarityThreshold),
    epsilon,
    ...literal,
  }),
  reinforce_plus_plus: ({ gamma }) => ({ type: 'reinforce++', gamma: Number(gamma) }),
  gae: ({ gamma, lam }) => ({ type: 'gae', gamma: Number(gamma), lambda: Number(lam) }),
  remax: () => ({ type: 'remax' }),
  shrinkage_formula: ({ spread, epsilon }) => ({ type: 'shrinkage', spread: spread as 'agent' | 'none', epsilon }),
  gdpo_formula: ({ byAgent, weights, epsilon }) => ({
    type: 'gdpo',
    byAgent: byAgent === true,
    weights: weights as Record<string, number>,
    epsilon,
  }),
  maxrl_formula: ({ byAgent }) => ({ type: 'maxrl', byAgent: byAgent === true }),
  hierarchical_grpo_formula: ({ episodeAgents }) => ({
    type: 'hierarchical-grpo',
    episodeAgents: episodeAgents as string[],
  }),
};

function turnsOf({ turns, params }: Case): TurnRecord[] {
  return turns.map(({ turnIndex, anchor, valid, ...turn }) => ({
    ...turn,
    turn: turnIndex,
    reward: turn.reward - (valid ? 0 : (params.invalidPenalty ?? 0)),
    ...(anchor === undefined ? {} : { observation: anchor }),
  }));
}

describe('advantages agree with the original implementations', () => {
  it('every file is used: here, by the filter, and by the KL term', () => {
    const others = ['grpo_passk', 'filter_groups', 'kl_in_reward'];
    expect(goldenNames('advantages')).toEqual([...Object.keys(files), ...others].sort());
  });

  it.each(Object.keys(files))('%s', (file) => {
    for (const one of golden<{ cases: Case[] }>(`advantages/${file}`).cases) {
      const penalised = one.turns.some((turn) => !turn.valid) && one.params.invalidPenalty !== null;
      if (file === 'gigpo' && penalised) continue; // informative: the original mixes rows of different penalties
      const advantages = estimateAdvantages(turnsOf(one), files[file]?.(one.params) ?? { type: 'grpo' });
      expect(advantages).toHaveLength(one.turns.length);
      const flat = advantages.flat();
      const expected = one.expected?.flat() ?? [];
      expect(flat).toHaveLength(expected.length);
      // The originals subtract penalties, average episodes and discount steps in float32.
      const inSingle = ['grpo', 'grpo_no_std', 'gigpo'].includes(file);
      const tolerance = penalised ? 2e-6 : inSingle ? 2e-7 : 1e-9;
      const off = expected.map((value, i) => Math.abs(value - (flat[i] ?? Number.NaN)) / Math.max(1, Math.abs(value)));
      expect(Math.max(...off), one.id).toBeLessThan(tolerance);
    }
  });

  it('gae: the targets of a critic', () => {
    for (const one of golden<{ cases: (Case & { returns: number[][] })[] }>('advantages/gae').cases) {
      const returns = estimateStep(turnsOf(one), files.gae?.(one.params) ?? { type: 'grpo' }).returns;
      expect(returns).toHaveLength(one.turns.length);
      one.returns.forEach((row, i) => {
        expect(returns?.[i]).toHaveLength(row.length);
        row.forEach((value, t) => {
          expect(returns?.[i]?.[t], one.id).toBeCloseTo(value, 8);
        });
      });
    }
    expect(estimateStep([], { type: 'drmas' }).returns).toBeUndefined();
  });

  it('grpo_passk gives the best episode its lead (the original: on its first row only)', () => {
    for (const one of golden<{ cases: Case[] }>('advantages/grpo_passk').cases) {
      if (one.params.byAgent === true) continue; // the original's leads by agent: ours are the team's
      const spread = one.params.normByStd === true ? 'task' : 'none';
      const turns = turnsOf(one);
      const estimate = () =>
        estimateAdvantages(turns, {
          type: 'grpo-passk',
          spread,
          epsilon: one.params.epsilon,
          minimumSpread: 0,
          ...first,
        });
      if (one.error !== undefined) expect(estimate, one.id).toThrow('needs two episodes');
      else {
        const advantages = estimate();
        one.expected?.forEach((value, i) => {
          if (value !== 0) expect(advantages[i], one.id).toBeCloseTo(Number(value), 6);
          else if (advantages[i] !== 0) {
            const sibling = turns.findIndex((t) => t.episode === turns[i]?.episode && t.task === turns[i]?.task);
            expect(advantages[i], one.id).toBeCloseTo(Number(one.expected?.[sibling]), 6);
          }
        });
      }
    }
  });
});
