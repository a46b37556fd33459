import type { Turn } from '../../../base/nouns.js';
import type { SampleRatios } from '../../../engine/loss.js';
import type { UpdatedTokens } from '../../store/episode-files.js';
import type { TurnChain } from '../samples/chains.js';
import { spanOf } from '../samples/training-samples.js';

/** The digits of a ratio on disk. */
const DIGITS = 5;

/** The ratios of each turn's tokens. `ratios` has one entry a chain. Chains without an entry are omitted. */
export function updatedTokens(chains: readonly TurnChain[], ratios: SampleRatios): Map<Turn, UpdatedTokens> {
  return new Map(
    chains.flatMap((chain, i) => {
      const ofChain = ratios[i];
      if (ofChain === undefined) return [];
      return chain.map((turn) => {
        const { start, end } = spanOf(turn);
        const all = Array.from(ofChain.ratios.subarray(start, end), (ratio) => Number(ratio.toPrecision(DIGITS)));
        const clipped = [...ofChain.clipped.subarray(start, end).entries()].flatMap(([t, is]) => (is === 1 ? [t] : []));
        const [first = 1] = all;
        const ratio = all.every((one) => one === first) ? first : all;
        return [turn, { ratio, ...(clipped.length === 0 ? {} : { clipped }) }] as const;
      });
    }),
  );
}
