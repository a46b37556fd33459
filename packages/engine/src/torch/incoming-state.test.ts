import { describe, expect, it } from 'vitest';
import type { DecoderConfig } from '../contract/architecture.js';
import { BackendError } from '../errors.js';
import type { FilePiece, TensorPiece } from '../model/formats/tensor.js';
import { IncomingState } from './incoming-state.js';

const config: DecoderConfig = {
  vocabSize: 4,
  width: 2,
  layers: 1,
  heads: 1,
  kvHeads: 1,
  headDim: 2,
  feedForward: 2,
  context: 8,
  ropeBase: 1e4,
  normEpsilon: 1e-6,
};
const asBytes: TensorPiece = { name: 'model.norm.weight', dtype: 'F32', first: 0, bytes: new Uint8Array(8) };
const inFile: FilePiece = {
  name: 'model.embed_tokens.weight',
  dtype: 'F32',
  path: 'model.safetensors',
  offset: 0,
  shape: [4, 2],
};

describe('a state on its way to the worker', () => {
  it.each([
    ['bytes before files', asBytes, inFile],
    ['files before bytes', inFile, asBytes],
  ])('refuses %s, since one of them would be lost', (_, first, second) => {
    const state = new IncomingState(config, undefined, undefined);
    expect(state.put(first)).toBe(true);
    expect(() => state.put(second)).toThrow(
      new BackendError(`tensor "${second.name}": some of the weights come as bytes, and others are in files`),
    );
  });
});
