/** Rotary position embedding (Su et al. 2021): how far each pair of a head turns at each position. */
import type { DecoderConfig, RopeScaling } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';

const { fround, PI } = Math;

/** cos and sin of every position: [context, headDim], cosines first. */
export function ropeTable(kernels: Kernels, config: DecoderConfig): Float32Array {
  const { context, headDim } = config;
  const table = kernels.allocate(context * headDim);
  const frequencies = ropeFrequencies(config);
  for (let position = 0; position < context; position++)
    frequencies.forEach((frequency, i) => {
      const angle = fround(position * frequency);
      table[position * headDim + i] = Math.cos(angle);
      table[position * headDim + headDim / 2 + i] = Math.sin(angle);
    });
  return table;
}

/**
 * Radians per position of each pair, [headDim / 2]: base^(-2i/headDim), stretched as `ropeScaling` says. Every step is
 * rounded to float32 as transformers rounds it: thousands of positions on, an angle that is more exact than the one a
 * model was trained with is another angle (at position 6000 it moves logits by 3e-3).
 */
export function ropeFrequencies({ headDim, ropeBase, ropeScaling }: DecoderConfig): Float32Array {
  return Float32Array.from({ length: headDim / 2 }, (_, i) => {
    const frequency = fround(1 / fround(ropeBase ** fround((2 * i) / headDim)));
    return ropeScaling === undefined ? frequency : scaled(frequency, ropeScaling);
  });
}

/**
 * `linear` (Chen et al. 2023) slows all frequencies down by the factor. `llama3` (Llama 3.1) slows down those whose
 * waves are longer than originalContext / lowFrequencyFactor positions, leaves those shorter than originalContext /
 * highFrequencyFactor, and goes over from one to the other in between.
 */
function scaled(frequency: number, scaling: RopeScaling): number {
  if (scaling.type === 'linear') return frequency / scaling.factor;
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContext } = scaling;
  const wave = fround(fround(1 / frequency) * fround(2 * PI)); // torch divides a number by a tensor in these two steps
  if (wave > originalContext / lowFrequencyFactor) return frequency / factor;
  if (wave < originalContext / highFrequencyFactor) return frequency;
  const waves = fround(fround(1 / wave) * originalContext);
  const kept = fround(fround(waves - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor));
  return fround(fround(fround(1 - kept) * frequency) / factor) + fround(kept * frequency);
}
