import { describe, expect, it } from 'vitest';
import { fakeProgram, fakePython, torchReport } from '../../../../test/support/fake-python.js';
import { deviceProblem, type FoundTorch, findTorch, lookForTorch, pythonProblem } from './find-torch.js';

const report = torchReport;
const [card] = report.cards;

describe('the search for PyTorch', () => {
  it.each<[string, object, RegExp]>([
    ['an old Python', { ...report, version: '3.9.2' }, /needs Python 3\.10 or later, and .*python is 3\.9\.2/],
    [
      'no PyTorch',
      { ...report, torch: null, error: "ModuleNotFoundError: No module named 'torch'" },
      /has no PyTorch: uv pip install torch/,
    ],
    [
      'a broken PyTorch',
      { ...report, torch: null, error: 'OSError: libcudart.so' },
      /has no PyTorch that works \(OSError: libcudart\.so\)/,
    ],
    [
      'no NumPy',
      { ...report, torch: null, error: "ModuleNotFoundError: No module named 'numpy'" },
      /has no numpy: uv pip install torch numpy/,
    ],
    [
      'a PyTorch without a package of its own',
      { ...report, torch: null, error: "ModuleNotFoundError: No module named 'sympy'" },
      /has no PyTorch that works \(.*'sympy'\)/,
    ],
    [
      'an old PyTorch',
      { ...report, torch: '2.7.1' },
      /needs PyTorch 2\.8 or later, and .* has 2\.7\.1: uv pip install/,
    ],
  ])('says what is missing: %s', async (_, answer, message) => {
    await expect(findTorch({ DRMAS_PYTHON: await fakePython(answer) })).rejects.toThrow(message);
  });

  it('tells a Python that is slow from a program that is none', async () => {
    const environment = { DRMAS_PYTHON: await fakeProgram('exec tail -f /dev/null') };
    const found = await lookForTorch(environment, { waitMs: 50 });
    expect(pythonProblem(found, environment)).toMatch(/python has no PyTorch that works \(no answer in 0\.05 s\)/);
  });

  it('names a DRMAS_PYTHON that is none', async () => {
    await expect(findTorch({ DRMAS_PYTHON: '/no/python' })).rejects.toThrow(
      'DRMAS_PYTHON is /no/python, which is none',
    );
    expect(await lookForTorch({ DRMAS_PYTHON: '/no/python' })).toBeUndefined();
  });

  it.each<[string, object, string, RegExp | undefined]>([
    ['a build without CUDA', { cuda: null, cards: [] }, 'cuda', /is a build without CUDA: install one with it/],
    [
      'no card',
      { cards: [] },
      'cuda',
      /finds no card of NVIDIA: there is none, or its driver is too old for CUDA 12\.6/,
    ],
    ['one card only', {}, 'cuda:1', /there is no cuda:1: PyTorch finds 1 \(Card\)/],
    ['an old card', { cards: [{ ...card, capability: [7, 5] }] }, 'cuda', /Card has no bfloat16/],
    [
      'a card that this PyTorch has no kernels for',
      { cards: [{ ...card, error: 'AcceleratorError: no kernel image is available' }] },
      'cuda',
      /cannot compute on Card: AcceleratorError: no kernel image/,
    ],
    [
      'no compiler',
      { uncompiled: 'RuntimeError: Failed to find C compiler' },
      'cuda',
      /compile kernels \(RuntimeError.* C compiler\).*apt install/,
    ],
    ['no compiler, of a processor', { uncompiled: 'OSError' }, 'torch-cpu', undefined],
    ['no Mac', {}, 'mps', /finds no GPU of Apple/],
    ['a card', {}, 'cuda:0', undefined],
    ['a processor', { cuda: null, cards: [] }, 'torch-cpu', undefined],
  ])('says why PyTorch cannot compute: %s', async (_, changes, device, message) => {
    const found = await findTorch({ DRMAS_PYTHON: await fakePython({ ...report, ...changes }) });
    const problem = deviceProblem(found as FoundTorch, device as 'cuda');
    if (message === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(message);
  });
});
