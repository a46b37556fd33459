/**
 * The mapping between an adapter's tensors in the engine and in PEFT's files: the engine stores the A's of projections
 * that read the same input side by side, and every matrix as [inputs, outputs]; PEFT stores each as [outputs, inputs].
 */
import type { AdapterSettings, DecoderConfig } from '../../contract/architecture.js';
import type { Floats } from '../../tensor/memory.js';
import { type AdapterTensors, adaptedMatrices, adapterPair } from '../decoder/weights/adapter-tensors.js';
import type { TensorShape } from './tensor.js';
import { projectionName } from './tensor-names.js';
import type { TensorPlace } from './tensor-place.js';

function* adaptedProjections(config: DecoderConfig, settings: AdapterSettings) {
  for (let layer = 0; layer < config.layers; layer++) {
    for (const adapted of adaptedMatrices(config, layer, settings)) {
      let before = 0;
      for (const [n, { projection, outputs }] of adapted.parts.entries()) {
        const name = `base_model.model.${projectionName(config, projection, layer)}`;
        yield { name, layer, ...adapted, n, outputs, before };
        before += outputs;
      }
    }
  }
}

/** Every tensor that an adapter's file must hold: two for every target in every layer, as [outputs, inputs]. */
export function expectedAdapterTensors(config: DecoderConfig, settings: AdapterSettings): TensorShape[] {
  const { rank } = settings;
  return [...adaptedProjections(config, settings)].flatMap(({ name, inputs, outputs }) => [
    { name: `${name}.lora_A.weight`, shape: [rank, inputs] },
    { name: `${name}.lora_B.weight`, shape: [outputs, rank] },
  ]);
}

export const agentTensor = (agent: string, name: string): string => `agents.${agent}.${name}`;

export function adapterPlaces<F extends Floats>(
  tensors: AdapterTensors<F>,
  config: DecoderConfig,
  settings: AdapterSettings,
): TensorPlace<F>[] {
  const { rank } = settings;
  const shapes = expectedAdapterTensors(config, settings);
  const buffers = [...adaptedProjections(config, settings)].flatMap(({ layer, matrix, n, width, outputs, before }) => {
    const { A, B } = adapterPair(tensors, layer, matrix);
    return [
      { data: A.subarray(n * rank) as F, stride: width },
      { data: B.subarray(before * rank) as F, stride: outputs },
    ];
  });
  return shapes.map((shape, i) => ({ ...shape, ...(buffers[i] as (typeof buffers)[number]) }));
}
