import { type Episode, inCanonicalOrder, type Turn } from '@drmas/engine/nouns';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chainsOf, countChains, type TurnChain } from './chains.js';
import { spanOf, trainingSample } from './training-samples.js';

let named = 0;

/** A turn with these tokens, all of whose log-probs are -1. */
const turnOf = (prompt: readonly number[], response: readonly number[], changes: Partial<Turn> = {}): Turn =>
  ({
    id: String(named++).padStart(16, '0'),
    agent: 'solver',
    policy: 'solver',
    policyVersion: 0,
    temperature: 1,
    prompt,
    response,
    logprobs: response.map(() => -1),
    ...changes,
  }) as Turn;

const tokensOf = ({ prompt, response }: Turn) => [...prompt, ...response];
const text = (tokens: readonly number[]) => tokens.map((token) => `${token},`).join('');
const beginsWith = ({ prompt }: Turn, before: Turn) => text(prompt).startsWith(text(tokensOf(before)));

// Only two tokens, so that calls also begin alike by chance, and a prompt can contain an earlier call with its reply.
const tokens = (minLength: number) => fc.array(fc.integer({ min: 0, max: 1 }), { minLength, maxLength: 3 });
/** The change of the conversation before a call: it continues, loses its end or its order, or starts again. */
const rewriting = fc.constantFrom('go on', 'go on', 'go on', 'cut', 'drop', 'reverse', 'summarise', 'resend');

const episode = fc
  .array(
    fc.record({
      from: fc.nat(),
      rewriting,
      added: tokens(0),
      response: tokens(0),
      agent: fc.constantFrom('solver', 'solver', 'judge'),
      policyVersion: fc.constantFrom(0, 0, 0, 1),
      temperature: fc.constantFrom(1, 1, 1, 0.5),
    }),
    { minLength: 1, maxLength: 14 },
  )
  .map((calls) => {
    const turns: Turn[] = [];
    for (const { from, rewriting: how, added, response, ...names } of calls) {
      const before = turns[from % Math.max(1, turns.length)] ?? turnOf([0], []);
      const past = tokensOf(before);
      const histories = {
        'go on': past,
        cut: past.slice(0, -1),
        drop: past.filter((_, t) => t !== past.length >> 1),
        reverse: past.toReversed(),
        summarise: [1],
        resend: before.prompt.slice(0, -1),
      };
      turns.push(turnOf([...histories[how], ...added, 0], response, names));
    }
    return turns;
  });

const keyOf = ({ agent, policy, policyVersion, temperature }: Turn) =>
  JSON.stringify([agent, policy, policyVersion, temperature]);

describe('chainsOf', () => {
  it('has every sampled token once, after exactly its prompt, for any rewritten history', () => {
    fc.assert(
      fc.property(episode, (turns) => {
        const chains = chainsOf(turns);
        expect(new Set(chains.flat())).toEqual(new Set(turns));
        expect(chains.flat()).toHaveLength(turns.length);
        const rows = chains.flatMap((chain) => {
          const { tokens: fed, mask } = trainingSample(chain.map((turn) => ({ turn, advantage: 1 })));
          const spans = chain.map(spanOf);
          expect(mask.reduce((sum, one) => sum + one, 0)).toBe(spans.reduce((sum, s) => sum + s.end - s.start, 0));
          return chain.map((turn, i) => {
            expect([...fed.subarray(0, spans[i]?.end)]).toEqual(tokensOf(turn));
            return turn;
          });
        });
        expect(rows).toHaveLength(turns.length);
      }),
      { numRuns: 500 },
    );
  });

  it('opens a chain only if every call that the turn could continue already has a continuation', () => {
    fc.assert(
      fc.property(episode, (turns) => {
        const chains = chainsOf(turns);
        for (const [first] of chains) {
          const before = turns.filter(
            (turn) =>
              turn.response.length > 0 && keyOf(turn) === keyOf(first as Turn) && beginsWith(first as Turn, turn),
          );
          for (const turn of before) expect(chains.some((chain) => chain.at(-1) === turn)).toBe(false);
        }
        for (const chain of chains) expect(new Set(chain.map(keyOf)).size).toBe(1);
      }),
      { numRuns: 500 },
    );
  });

  it('does not depend on the order of the calls', () => {
    const shuffled = episode.chain((turns) =>
      fc.tuple(fc.constant(turns), fc.shuffledSubarray(turns, { minLength: turns.length, maxLength: turns.length })),
    );
    fc.assert(
      fc.property(shuffled, ([turns, others]) => {
        expect(chainsOf(inCanonicalOrder(others))).toEqual(chainsOf(inCanonicalOrder(turns)));
      }),
    );
  });

  it('makes one chain of a loop, two of a fork, and continues the longest chain', () => {
    const first = turnOf([1, 2], [3]);
    const second = turnOf([1, 2, 3, 4], [5, 6]);
    const third = turnOf([1, 2, 3, 4, 5, 6], [7]);
    const fork = turnOf([1, 2, 3, 9], [7]);
    const shapes = (chains: readonly TurnChain[]) => chains.map((chain) => chain.map((turn) => turn.prompt.length));
    expect(shapes(chainsOf([third, first, second]))).toEqual([[2, 4, 6]]);
    expect(shapes(chainsOf([first, second, fork, third]))).toEqual([[2, 4, 6], [4]]);
    const [short, long] = [turnOf([1], [2]), turnOf([1], [2, 3])]; // the second's prompt begins with both
    expect(chainsOf([short, long, second])).toEqual([[short], [long, second]]);
    const judged = turnOf([1, 2, 3, 4], [5], { agent: 'judge' });
    expect(shapes(chainsOf([first, judged]))).toEqual([[2], [4]]);
  });
});

it('are counted by agent, over the episodes in which it is called', () => {
  const loop = [turnOf([1], [2]), turnOf([1, 2, 3], [4]), turnOf([9], [1])];
  const judged = turnOf([5], [5], { agent: 'judge' });
  const frozen = turnOf([6], [6], { agent: 'helper', frozen: true });
  const episodes = [{ turns: [...loop, judged, frozen] }, { turns: [turnOf([1], [2])] }, { turns: [] }] as unknown;
  expect(countChains(episodes as Episode[])).toEqual({
    solver: { perEpisode: 1.5, turns: 4 / 3, longest: 2 },
    judge: { perEpisode: 1, turns: 1, longest: 1 },
  });
});
