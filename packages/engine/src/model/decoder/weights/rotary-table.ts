/** Rotary position embedding (Su et al. 2021): the angle by which each pair of a head turns at each position. */
import type { DecoderConfig, RopeScaling } from '../../../contract/architecture.js';
import type { Kernels } from '../../../tensor/kernels.js';
import { type Floats, fillOnHost } from '../../../tensor/memory.js';
import { convolves } from './decoder-tensors.js';

const { fround, PI } = Math;

type Rotation = Pick<DecoderConfig, 'context' | 'headDim' | 'ropeBase' | 'scoreDivisor'> & {
  readonly ropeScaling?: RopeScaling | undefined;
};

/**
 * The cosines and sines of every position: [context, headDim], cosines first. Kernels divide scores by sqrt(headDim):
 * if `scoreDivisor` is another number, the table holds half of the difference for queries and half for keys.
 */
export function ropeTable(kernels: Kernels, config: Rotation): Floats {
  const memory = kernels.allocate(config.context * config.headDim);
  fillOnHost(kernels, memory, (table) => writeTable(table, config));
  return memory;
}

/**
 * The table for each layer [layers]; undefined for a layer that does not rotate or attend. Layers share one table,
 * those with a sliding window another one.
 */
export function ropeTables(kernels: Kernels, config: DecoderConfig): (Floats | undefined)[] {
  const { slidingWindow, unrotatedLayers } = config;
  const table = ropeTable(kernels, config);
  const local =
    slidingWindow && ropeTable(kernels, { ...config, ropeBase: slidingWindow.ropeBase, ropeScaling: undefined });
  return Array.from({ length: config.layers }, (_, layer) => {
    if (unrotatedLayers?.includes(layer) || convolves(config, layer)) return undefined;
    return slidingWindow?.layers.includes(layer) ? local : table;
  });
}

function writeTable(table: Float32Array, config: Rotation): void {
  const { context, headDim, scoreDivisor = headDim } = config;
  const scale = (headDim / scoreDivisor) ** 0.25;
  const frequencies = ropeFrequencies(config);
  for (let position = 0; position < context; position++)
    frequencies.forEach((frequency, i) => {
      const angle = fround(position * frequency);
      table[position * headDim + i] = scale * Math.cos(angle);
      table[position * headDim + headDim / 2 + i] = scale * Math.sin(angle);
    });
}

/**
 * The angle per position of each pair in radians, [headDim / 2]: base^(-2i/headDim), scaled by `ropeScaling`. Every
 * step is rounded to float32 as transformers rounds it: at large positions, an angle more exact than the one a model
 * was trained with is a different angle (at position 6000 it moves logits by 3e-3).
 */
export function ropeFrequencies({ headDim, ropeBase, ropeScaling }: Rotation): Float32Array {
  return Float32Array.from({ length: headDim / 2 }, (_, i) => {
    const frequency = fround(1 / fround(ropeBase ** fround((2 * i) / headDim)));
    return ropeScaling === undefined ? frequency : scaled(frequency, ropeScaling);
  });
}

/**
 * Scales a frequency. `linear` (Chen et al. 2023) divides all frequencies by the factor. `llama3` (Llama 3.1) divides
 * those with waves longer than originalContext / lowFrequencyFactor positions, keeps those with waves shorter than
 * originalContext / highFrequencyFactor, and interpolates between the two in between.
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
