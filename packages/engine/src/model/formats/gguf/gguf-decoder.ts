/** A decoder for llama.cpp: its sizes and its tensors under that program's names. */

import type { DecoderConfig } from '../../../contract/architecture.js';
import { CheckpointError } from '../../../errors.js';
import { familyOf, unrotatedByDefault } from '../model-config.js';
import { readTensor, type StoredTensor } from '../safetensors.js';
import { rowLength } from '../tensor.js';
import type { GgufMetadata, GgufTensor, GgufValue } from './gguf-file.js';
import { ggufName, isReordered, KEYS, ROPE_FACTORS, reordered } from './gguf-names.js';
import { ropeFactors } from './gguf-rope.js';

const count = (value: number): GgufValue => ({ type: 'uint32', value });
const real = (value: number): GgufValue => ({ type: 'float32', value });

/** The decoder's description. @throws CheckpointError naming what llama.cpp's model of this family lacks */
export function decoderMetadata(config: DecoderConfig): GgufMetadata {
  const family = familyOf(config);
  const { ropeScaling } = config;
  if (family === 'gemma3')
    throw new CheckpointError(
      'GGUF files of Gemma 3 hold a SentencePiece model with scores, which drmas cannot write; export a Hugging Face directory',
    );
  if (family === 'lfm2')
    throw new CheckpointError('drmas writes no GGUF files of LFM2; export a Hugging Face directory');
  if (config.slidingWindow !== undefined)
    throw new CheckpointError(
      'a GGUF file has no place for the sliding window of Mistral; export a Hugging Face directory',
    );
  if ((family === 'qwen3' || family === 'smollm3') && config.attentionBias !== undefined)
    throw new CheckpointError(`a GGUF file has no place for the biases of attention in a model of ${family}`);
  if (family === 'smollm3' && config.unrotatedLayers?.join() !== unrotatedByDefault(config.layers).join())
    throw new CheckpointError(
      `in a GGUF file of ${family} every fourth layer does not rotate; here these do not, from 0: ${config.unrotatedLayers?.join(', ')}`,
    );
  if (family !== 'llama' && ropeScaling?.type === 'llama3')
    throw new CheckpointError(
      `a GGUF file stretches positions the way of Llama 3 in Llama models alone, not ${family}`,
    );
  return {
    'general.architecture': { type: 'string', value: family },
    [`${family}.${KEYS.layers}`]: count(config.layers),
    [`${family}.${KEYS.context}`]: count(config.context),
    [`${family}.${KEYS.width}`]: count(config.width),
    [`${family}.${KEYS.feedForward}`]: count(config.feedForward),
    [`${family}.${KEYS.heads}`]: count(config.heads),
    [`${family}.${KEYS.kvHeads}`]: count(config.kvHeads),
    [`${family}.${KEYS.keyDim}`]: count(config.headDim),
    [`${family}.${KEYS.valueDim}`]: count(config.headDim),
    [`${family}.${KEYS.normEpsilon}`]: real(config.normEpsilon),
    [`${family}.${KEYS.ropeBase}`]: real(config.ropeBase),
    [`${family}.${KEYS.rotated}`]: count(config.headDim),
    [`${family}.${KEYS.vocabSize}`]: count(config.vocabSize),
    ...(ropeScaling?.type === 'linear' && {
      [`${family}.${KEYS.ropeScaling}`]: { type: 'string', value: 'linear' },
      [`${family}.${KEYS.ropeFactor}`]: real(ropeScaling.factor),
    }),
  };
}

/** The tensors in the order of the directory, and the additional tensors that llama.cpp needs. */
export function decoderTensors(config: DecoderConfig, stored: Iterable<StoredTensor>): GgufTensor[] {
  const family = familyOf(config);
  const tensors = Array.from(stored, (tensor): GgufTensor => {
    const { name, shape } = tensor;
    const isTurned = isReordered(family, name);
    const read = async () => {
      const data = await readTensor(tensor);
      return isTurned ? reordered(data, 'neighbours', config.headDim, rowLength(shape)) : data;
    };
    return { name: ggufName(name), shape, read };
  });
  if (config.ropeScaling?.type !== 'llama3') return tensors;
  const factors = ropeFactors(config);
  return [...tensors, { name: ROPE_FACTORS, shape: [factors.length], read: async () => factors }];
}
