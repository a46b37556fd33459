/** Rotary position embedding (Su et al. 2021): how far each pair of a head turns at each position. */
import type { DecoderConfig, RopeScaling } from '../../core/backend.js';
import type { Kernels } from '../../tensor/kernels.js';

/** cos and sin of every position: [context, headDim], cosines first. */
export function ropeTable(kernels: Kernels, config: DecoderConfig): Float32Array {
  const { context, headDim } = config;
  const table = kernels.allocate(context * headDim);
  const frequencies = ropeFrequencies(config);
  for (let position = 0; position < context; position++)
    frequencies.forEach((frequency, i) => {
      const angle = position * frequency;
      table[position * headDim + i] = Math.cos(angle);
      table[position * headDim + headDim / 2 + i] = Math.sin(angle);
    });
  return table;
}

/** Radians per position of each pair, [headDim / 2]: base^(-2i/headDim), stretched as `ropeScaling` says. */
export function ropeFrequencies({ headDim, ropeBase, ropeScaling }: DecoderConfig): Float64Array {
  return Float64Array.from({ length: headDim / 2 }, (_, i) => {
    const frequency = ropeBase ** ((-2 * i) / headDim);
    return ropeScaling === undefined ? frequency : scaled(frequency, ropeScaling);
  });
}

/**
 * `linear` (Chen et al. 2023) slows all frequencies down by the factor. `llama3` (Llama 3.1) slows down those that turn less
 * than `lowFrequencyFactor` times within the original context, leaves those that turn more than `highFrequencyFactor`
 * times, and goes over from one to the other in between.
 */
function scaled(frequency: number, scaling: RopeScaling): number {
  if (scaling.type === 'linear') return frequency / scaling.factor;
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContext } = scaling;
  const turns = (originalContext * frequency) / (2 * Math.PI);
  if (turns < lowFrequencyFactor) return frequency / factor;
  if (turns > highFrequencyFactor) return frequency;
  const kept = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return ((1 - kept) * frequency) / factor + kept * frequency;
}
