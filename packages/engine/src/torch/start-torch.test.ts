import { afterEach, describe, expect, it, vi } from 'vitest';
import { fakePython, torchReport } from '../../../../test/support/fake-python.js';
import type { TorchDevice } from '../host.js';
import { startTorch, type TorchOptions } from './start-torch.js';

/** Files that throw when they are read. */
const files = new Proxy({} as TorchOptions['files'], {
  get(_, name) {
    throw new Error(`${String(name)} was called`);
  },
});

describe('the start of the engine on PyTorch', () => {
  afterEach(() => void vi.unstubAllEnvs());

  it.each<[string, object, TorchDevice, TorchOptions['precisions'], RegExp]>([
    ['int8', {}, 'cuda', ['float32', 'int8'], /float32 and bfloat16: expected another precision than int8/],
    ['an old PyTorch', { torch: '2.7.1' }, 'torch-cpu', [], /needs PyTorch 2\.8 or later/],
    ['a build without CUDA', { cuda: null, cards: [] }, 'cuda', [], /is a build without CUDA/],
    ['a second card that is not there', {}, 'cuda:1', [], /there is no cuda:1: PyTorch finds 1/],
  ])('is refused by name before anything is read: %s', async (_, changes, device, precisions, message) => {
    vi.stubEnv('DRMAS_PYTHON', await fakePython({ ...torchReport, ...changes }));
    await expect(startTorch({ device, files, precisions })).rejects.toThrow(message);
  });
});
