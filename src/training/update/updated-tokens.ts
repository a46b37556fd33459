import type { Turn } from '../../core/episode.js';
import type { SampleRatios } from '../../loss/objective/objective.js';
import type { UpdatedTokens } from '../../store/episode-files.js';
import type { Chain } from '../step/chains.js';
import { spanOf } from './training-samples.js';

/** The digits of a ratio on disk. */
const DIGITS = 5;

/** The tokens of every turn as its update saw them. `ratios` has one entry a chain; chains without one are left out. */
export function updatedTokens(chains: readonly Chain[], ratios: SampleRatios): Map<Turn, UpdatedTokens> {
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
