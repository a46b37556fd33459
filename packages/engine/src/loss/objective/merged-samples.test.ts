import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byType, inEach } from '../../../../../test/support/expectations.js';
import { evaluate, terms, typeOfTerm } from '../../../../../test/support/objectives.js';
import { sampleOf } from '../../../../../test/support/samples.js';
import type { Span, TrainingSample } from '../../base/core/sample.js';
import { countTokens } from '../aggregate.js';
import { type LossSpec, lossKind } from '../loss-spec.js';
import { policyLoss } from '../policy-loss.js';
import { mergeSamples, normalizerOf } from './merged-samples.js';
import { rowsOfSample } from './sample-rows.js';

describe('mergeSamples', () => {
  it('keeps one row of identical samples, in order of first appearance, and drops rows without advantage', () => {
    const rows = mergeSamples([
      sampleOf([1, 2], [0, 0]),
      sampleOf([2], [1]),
      sampleOf([1, 2], [1, -2]),
      sampleOf([3], [0]),
      sampleOf([1, 2], [0.5, 1]),
    ]);
    expect(rows.map((row) => row.indices)).toEqual([[0, 2, 4], [1]]);
    expect(rows[0]?.rows[0]?.parts).toEqual([
      { advantages: Float64Array.of(0, 1.5, 1), counts: Uint32Array.of(0, 2, 1) },
      { advantages: Float64Array.of(0, 0, -2), counts: Uint32Array.of(0, 0, 1) },
    ]);
  });

  it('keeps rows without advantage where other terms of the loss need them', () => {
    const rows = mergeSamples([sampleOf([2], [0]), sampleOf([1], [1])], 'scored');
    expect(rows.map(({ indices, rows: [row] }) => [indices, row?.parts.length])).toEqual([
      [[0], 0],
      [[1], 1],
    ]);
  });

  it.each([
    ['agent', { agent: 'verifier' }],
    ['temperature', { temperature: 0.5 }],
    ['the length of the episode', { episodeTokens: 5 }],
    ['mask', { mask: Uint8Array.of(0, 1, 0) }],
    ['behaviour log-prob', { behaviourLogprobs: Float32Array.of(0, -9, -9) }],
    ['reference log-prob', { referenceLogprobs: Float32Array.of(0, -9, -9) }],
    ['tokens', { tokens: Int32Array.of(8, 1, 2) }],
  ])('keeps samples apart that differ in %s', (_, difference) => {
    expect(mergeSamples([sampleOf([1, 2], [1, 1]), sampleOf([1, 2], [1, 1], difference)])).toHaveLength(2);
  });

  it('takes the normalizer from every sample, dropped ones too', () => {
    const samples = [sampleOf([1, 2], [0, 0]), sampleOf([1, 2, 3], [1, 1, 1])];
    const of = (aggregate: Extract<LossSpec, { type: 'ppo-clip' }>['aggregate']) =>
      normalizerOf(samples, { type: 'ppo-clip', clip: 0.2, aggregate }, 10);
    expect(of('token-mean')).toBe(5);
    expect(of('seq-mean-token-sum')).toBe(2);
    expect(of('seq-mean-token-sum-norm')).toBe(2 * 10);
  });

  it('refuses arrays of different lengths and advantages that are not numbers', () => {
    expect(() => mergeSamples([sampleOf([1, 2], [1])])).toThrow('advantages[0] has 2 entries, tokens[0] has 3');
    expect(() => mergeSamples([sampleOf([1], [Number.NaN])])).toThrow('an advantage of agent solver is not a number');
  });
});

interface Response {
  /** Tokens before it that the policy did not write. */
  readonly read: number;
  readonly tokens: readonly number[];
  readonly advantage: number;
}

// Few distinct ones, so that chains are copies of each other, also ones that are paid otherwise.
const response = fc.record({
  read: fc.constantFrom(0, 1),
  tokens: fc.constantFrom([1], [2, 3]),
  advantage: fc.constantFrom(-1, 0, 0, 0.5),
});
const chains = fc.array(fc.array(response, { minLength: 1, maxLength: 3 }).map(chainOf), {
  minLength: 1,
  maxLength: 8,
});

function chainOf(responses: readonly Response[]): TrainingSample {
  const tokens: number[] = [7];
  const advantages: number[] = [0];
  const spans: Span[] = [];
  for (const { read, tokens: written, advantage } of responses) {
    for (let i = 0; i < read; i++) tokens.push(5);
    const start = tokens.length;
    tokens.push(...written);
    spans.push({ start, end: tokens.length });
    advantages.length = tokens.length;
    advantages.fill(advantage, start);
  }
  const logprobs = (of: (token: number, t: number) => number) => Float32Array.from(tokens, of);
  return {
    tokens: Int32Array.from(tokens),
    mask: Uint8Array.from(tokens, (_, t) => (spans.some(({ start, end }) => t >= start && t < end) ? 1 : 0)),
    spans,
    behaviourLogprobs: logprobs((token, t) => -0.4 * token - 0.1 * t),
    proximalLogprobs: logprobs((token, t) => -0.4 * token - 0.1 * t + Math.sin(3 * token + t) / 5),
    referenceLogprobs: logprobs((token, t) => -0.5 * token + 0.2 * t),
    advantages: Float32Array.from(advantages, (advantage = 0) => advantage),
    temperature: 1,
    policyVersion: 0,
    agent: 'solver',
    episodeTokens: 11,
  };
}

/** The turns of a chain as samples of their own. */
function turnsOf({ spans = [], ...chain }: TrainingSample): TrainingSample[] {
  return spans.map(({ start, end }) => ({
    ...chain,
    ...(Object.fromEntries(
      (['tokens', 'behaviourLogprobs', 'proximalLogprobs', 'referenceLogprobs', 'advantages'] as const).map((name) => [
        name,
        chain[name]?.slice(0, end),
      ]),
    ) as Pick<TrainingSample, 'tokens' | 'behaviourLogprobs' | 'advantages'>),
    mask: new Uint8Array(end).fill(1, start),
  }));
}

/** The sum over the samples that begin like a chain, at each of its positions. */
function summed(length: number, rows: readonly (ArrayLike<number> | undefined)[]): number[] {
  return Array.from({ length }, (_, t) => rows.reduce((sum, row) => sum + (row?.[t] ?? 0), 0));
}

describe('a chain of turns', () => {
  it.each(
    byType(
      terms.filter(({ loss }) => lossKind(loss).aggregate !== 'chain-mean'),
      typeOfTerm,
    ),
  )('gives the loss, gradients and metrics of its turns one by one: $type', ({ items }) => {
    fc.assert(
      fc.property(chains, (all) =>
        inEach(items, (term) => {
          // Chains of different agents are not merged, nor are their turns.
          const apart = all.map((chain, i) => ({ ...chain, agent: `agent ${i}` }));
          const turns = apart.flatMap(turnsOf).map((turn, i) => ({ ...turn, agent: `${turn.agent}, turn ${i}` }));
          const normalizer = normalizerOf(turns, term.loss, 4);
          expect(normalizerOf(apart, term.loss, 4)).toBeCloseTo(normalizer, 12);
          const whole = evaluate(apart, { ...term, normalizer });
          const single = evaluate(turns, { ...term, normalizer });
          expect(whole.loss).toBeCloseTo(single.loss, 12);
          for (const [name, value] of Object.entries(single.metrics))
            expect(whole.metrics[name as keyof typeof whole.metrics], name).toBeCloseTo(value as number, 12);
          whole.sent.forEach(({ agent, tokens }, c) => {
            const ofChain = single.sent.flatMap((turn, i) => (turn.agent.startsWith(`${agent},`) ? [i] : []));
            const expected = (rows: readonly (ArrayLike<number> | undefined)[]) =>
              summed(
                tokens.length,
                ofChain.map((i) => rows[i]),
              );
            expect([...(whole.gradients[c] ?? [])]).toEqual(expected(single.gradients));
            if (term.entropyCoefficient !== undefined)
              expect([...(whole.spreads[c] ?? [])]).toEqual(expected(single.spreads));
          });
        }),
      ),
      { numRuns: 7 },
    );
  });

  it.each(byType(terms, typeOfTerm))('is merged with its copies, exactly: $type', ({ items }) => {
    fc.assert(
      fc.property(chains, (all) =>
        inEach(items, (term) => {
          const options = { ...term, normalizer: Math.max(1, normalizerOf(all, term.loss, 4)) };
          const merged = evaluate(all, options);
          const apart = evaluate(
            all.map((chain, i) => ({ ...chain, agent: `agent ${i}` })),
            options,
          );
          expect(merged.loss).toBeCloseTo(apart.loss, 12);
          expect(merged.metrics.clippingBias ?? 0).toBeCloseTo(apart.metrics.clippingBias ?? 0, 12);
          const nameOf = ({ tokens, spans }: TrainingSample) => JSON.stringify([[...tokens], spans]);
          expect(new Set(merged.sent.map(nameOf)).size).toBe(merged.sent.length);
          merged.sent.forEach((chain, c) => {
            const copies = apart.gradients.filter((_, i) => nameOf(apart.sent[i] as TrainingSample) === nameOf(chain));
            summed(chain.tokens.length, copies).forEach((value, t) => {
              expect(merged.gradients[c]?.[t]).toBeCloseTo(value, 5);
            });
          });
        }),
      ),
      { numRuns: 7 },
    );
  });

  it('weighs 1 in the aggregation chain-mean, whatever it is made of', () => {
    const loss = { type: 'ppo-clip', clip: 0.2, aggregate: 'chain-mean' } as const;
    fc.assert(
      fc.property(chains, (all) => {
        const normalizer = normalizerOf(all, loss, 4);
        expect(normalizer).toBeCloseTo(all.length, 12);
        const turns = all.flatMap((chain) =>
          turnsOf(chain).map((turn) => ({ ...turn, chainTokens: countTokens(chain.mask) })),
        );
        const logprobs = turns.map((turn) => turn.proximalLogprobs ?? []);
        const input = {
          logprobs,
          behaviourLogprobs: turns.map((turn) => turn.behaviourLogprobs),
          advantages: turns.map((turn) => turn.advantages),
          mask: turns.map((turn) => turn.mask),
          chainTokens: turns.map((turn) => turn.chainTokens),
        };
        const evaluated = evaluate(all, { loss, normalizer }, (chain) => chain.proximalLogprobs as Float32Array);
        expect(evaluated.loss).toBeCloseTo(policyLoss(input, loss).loss, 12);
      }),
    );
  });

  it('has spans in order that hold all that was written', () => {
    const withSpans = (...spans: [number, number][]) =>
      sampleOf([1, 2, 3], [1, 1, 1], { spans: spans.map(([start, end]) => ({ start, end })) });
    expect(rowsOfSample(withSpans([1, 2], [2, 4])).map(({ mask }) => [...mask])).toEqual([[1], [1, 1]]);
    for (const spans of [[[2, 4], [1, 2]], [[1, 5]], [[3, 1]]] as [number, number][][]) // biome-ignore format: pairs
      expect(() => rowsOfSample(withSpans(...spans))).toThrow('expected spans in order within 4 tokens');
    expect(() => rowsOfSample(withSpans([1, 3]))).toThrow('has 1 written tokens outside its spans');
  });
});
