/** The worker's own tests, and its style. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lookForTorch } from '@drmas/engine/internal/torch/find-torch';
import { describe, expect, it } from 'vitest';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const cwd = fileURLToPath(new URL('../../packages/engine/python', import.meta.url));
const bench = fileURLToPath(new URL('../../research/bench/card/card.py', import.meta.url));
const run = (...words: string[]) =>
  spawnSync(process.env.DRMAS_PYTHON as string, words, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, OMP_NUM_THREADS: '1' },
  });

/** A PyTorch with two cards, one of which is in use by another program. It has no Triton. */
const WITH_CARDS = `
__version__ = '2.13.0+cu126'
class version: cuda = '12.6'
class backends: pass
class cuda:
    class device:
        def __init__(self, i): pass
        def __enter__(self): pass
        def __exit__(self, *_): pass
    is_available, device_count = (lambda: True), (lambda: 2)
    def get_device_properties(i):
        return type('About', (), dict(name='Card %d' % i, major=9, minor=0, total_memory=80))
    def mem_get_info(i):
        if i == 1: raise RuntimeError('all CUDA-capable devices are busy')
        return 70, 80
def ones(*_, **__): return __import__('numpy').ones(1)
`;

describe.skipIf(!available)('the worker in Python', () => {
  it('is refused for what a card or its compiler lacks, each by its name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'drmas-cards-'));
    writeFileSync(join(folder, 'torch.py'), WITH_CARDS);
    const path = process.env.PYTHONPATH;
    process.env.PYTHONPATH = folder;
    const found = await lookForTorch();
    if (path === undefined) delete process.env.PYTHONPATH;
    else process.env.PYTHONPATH = path;
    expect(found).toMatchObject({
      torch: '2.13.0+cu126',
      error: null,
      uncompiled: expect.stringMatching(/torch\._dynamo/),
    });
    expect(found?.cards.map(({ name, memory, free, error }) => [name, memory, free, error])).toEqual([
      ['Card 0', 80, 70, null],
      ['Card 1', 80, 0, 'RuntimeError: all CUDA-capable devices are busy'],
    ]);
  });

  it('passes its own tests', () => {
    const { status, stderr } = run('-m', 'unittest');
    expect(stderr).toMatch(/^OK$/m);
    expect(status).toBe(0);
  });

  it('is where the bench of cards looks for it, and a part that fails leaves the others', () => {
    const out = mkdtempSync(join(tmpdir(), 'drmas-card-'));
    const rehearsal = ['--device', 'cpu', '--shapes', 'absent,tiny', '--parts', 'check,publish'];
    const { stdout, stderr, status } = run(bench, ...rehearsal, '--out', out);
    expect(stdout, stderr).toMatch(/"part": "check".*"repeats_equal": true/);
    expect(stdout).toMatch(/"part": "publish".*"shape": "absent", "failed": "KeyError: 'absent'"/);
    expect(stdout).toMatch(/"part": "publish".*"shape": "tiny", "ms"/);
    expect(readFileSync(join(out, 'card.jsonl'), 'utf8')).toBe(stdout);
    expect(status).toBe(0);
  });

  it.each(['check', 'format --check'])('keeps to its style: ruff %s', (words) => {
    const { stdout, stderr, status } = run('-m', 'ruff', ...words.split(' '), '.');
    expect(`${stdout}${stderr}`).toMatch(/All checks passed|already formatted/);
    expect(status).toBe(0);
  });

  it('has the types that it says it has', () => {
    const { stdout, status } = run('-m', 'mypy', 'drmas_torch');
    expect(stdout).toMatch(/^Success/m);
    expect(status).toBe(0);
  });
});
