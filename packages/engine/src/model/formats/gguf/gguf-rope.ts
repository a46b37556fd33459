/**
 * The stretching of positions of Llama 3 in a GGUF file. The file has no settings of it, but a tensor of factors: each
 * frequency divided by the stretched one.
 */

import type { DecoderConfig, RopeScaling } from '../../../contract/architecture.js';
import { CheckpointError } from '../../../errors.js';
import { ropeFrequencies } from '../../decoder/weights/rotary-table.js';
import { ROPE_FACTORS } from './gguf-names.js';

/** The settings of all Llama 3 models so far, apart from their factor. */
const PUBLISHED = { lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContext: 8192 } as const;
/** The largest relative difference between factors that count as equal. */
const TOLERANCE = 1e-5;

type Llama3 = Extract<RopeScaling, { type: 'llama3' }>;
type Fit = Pick<Llama3, 'highFrequencyFactor' | 'originalContext'>;

/** The factors of a decoder, [headDim / 2]. */
export function ropeFactors(config: DecoderConfig): Float32Array {
  const { ropeScaling: _, ...unscaled } = config;
  const stretched = ropeFrequencies(config);
  return ropeFrequencies(unscaled).map((frequency, i) => frequency / (stretched[i] ?? frequency));
}

/**
 * The settings of Llama 3's rule that give these factors; undefined if all factors are 1.
 * @param config The decoder without scaling
 * @throws CheckpointError when the rule cannot give them
 */
export function llama3Scaling(factors: Float32Array, config: DecoderConfig, file: string): RopeScaling | undefined {
  const frequencies = ropeFrequencies(config);
  if (factors.length !== frequencies.length)
    throw new CheckpointError(
      `${file}: tensor "${ROPE_FACTORS}" has ${factors.length} numbers, expected ${frequencies.length}`,
    );
  if (factors.every((factor) => factor === 1)) return undefined;
  const factor = Number(factors.reduce((a, b) => Math.max(a, b), 0).toPrecision(6));
  const scaling = { type: 'llama3', factor, ...PUBLISHED } as const;
  const fits: Llama3[] = [scaling];
  if (factor > 1) fits.push(...fitted(factors, frequencies, factor).map((fit) => ({ ...scaling, ...fit })));
  const fit = fits.find((fit) => ropeFactors({ ...config, ropeScaling: fit }).every((x, i) => near(x, factors[i])));
  if (fit !== undefined) return fit;
  throw new CheckpointError(`${file}: tensor "${ROPE_FACTORS}" stretches positions by another rule than Llama 3's`);
}

const near = (a: number, b = Number.NaN) => Math.abs(a - b) <= TOLERANCE * Math.abs(b);

/**
 * Settings with `lowFrequencyFactor` 1 (the rule knows only ratios of the three). The share of a frequency that is
 * kept, (originalContext / wave - low) / (high - low), is a line over 1 / wave between the frequencies that are kept
 * whole and those that are divided whole. Two points give the line. One point, or none, gives one of many.
 */
function fitted(factors: Float32Array, frequencies: Float32Array, factor: number): Fit[] {
  const points = Array.from(factors, (each, i) => ({
    turns: (frequencies[i] ?? 0) / (2 * Math.PI),
    kept: (1 / each - 1 / factor) / (1 - 1 / factor),
  }));
  const between = points.filter(({ kept }) => kept > TOLERANCE && kept < 1 - TOLERANCE);
  const [first] = between;
  const last = between.at(-1);
  const fits: Fit[] = [];
  const add = (originalContext: number, highFrequencyFactor: number) => {
    if (highFrequencyFactor > 1 && originalContext >= 1)
      fits.push({ originalContext: Math.round(originalContext), highFrequencyFactor });
  };
  if (first !== undefined && last !== undefined && first !== last) {
    const slope = (first.kept - last.kept) / (first.turns - last.turns);
    const low = slope * first.turns - first.kept;
    add(slope / low, Number((1 + 1 / low).toPrecision(4)));
    add(slope / low, 1 + 1 / low);
  } else {
    const whole = Math.min(...points.filter(({ kept }) => kept >= 1 - TOLERANCE).map(({ turns }) => turns));
    const divided = Math.max(0, ...points.filter(({ kept }) => kept <= TOLERANCE).map(({ turns }) => turns));
    // Without a point between, one is chosen: half way.
    const { turns, kept } = first ?? { turns: Math.sqrt(whole * divided), kept: 0.5 };
    const flattest = Math.max((1 - kept) / (whole - turns), kept / (turns - divided));
    const most = 1 / Math.max(turns - kept / flattest, 1e-3 * turns);
    const originalContext = Math.max(Math.ceil(1 / turns), Math.round(Math.sqrt(most / turns)));
    add(originalContext, 1 + (originalContext * turns - 1) / kept);
  }
  return fits;
}
