import { readFile } from 'node:fs/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fakePython, torchReport } from '../../../../test/support/fake-python.js';
import { rank16 } from '../../../../test/support/rank-16.js';
import type { DecoderConfig } from '../contract/architecture.js';
import { torchMemory, torchMemoryPlan } from './torch-footprint.js';

/** SmolLM2-135M, the shape that research/bench/card/card.py measured. */
const smollm2: DecoderConfig = {
  vocabSize: 49152,
  width: 576,
  layers: 30,
  heads: 9,
  kvHeads: 3,
  headDim: 64,
  feedForward: 1536,
  context: 2048,
  normEpsilon: 1e-6,
  ropeBase: 1e6,
};

interface Trained {
  readonly part: string;
  readonly shape: string;
  readonly computed: number;
  readonly peak_GB: number;
}

describe('the memory of the engine on PyTorch', () => {
  it('is that of a card within a tenth', async () => {
    const lines = (await readFile(new URL('../../../../docs/card.jsonl', import.meta.url), 'utf8')).trim().split('\n');
    // The first run: of later ones the peak is that of recording a pass.
    const measured = lines
      .map((line) => JSON.parse(line) as Trained)
      .filter(({ part, shape }) => part === 'train' && shape === 'smollm2-135m')
      .slice(0, 2);
    expect(measured).toHaveLength(2);
    for (const { computed, peak_GB: peak } of measured) {
      // On a card a batch has a multiple of 1,024 rows, and at most 8,192.
      const rows = Math.min(8192, 1024 * Math.ceil(computed / 1024));
      const run = { device: 'cuda', recompute: false, longest: rows } as const;
      const policy = { name: 'solver', config: smollm2, ...rank16, versions: 0 };
      const { policies, total } = torchMemory(run, [policy], rows);
      const bytes = Object.values(policies.solver ?? {}).reduce((sum, each) => sum + each, total?.bases ?? 0);
      expect(bytes / 1e9 / peak).toBeGreaterThan(0.9);
      expect(bytes / 1e9 / peak).toBeLessThan(1.1);
    }
  });

  it('counts the copies in bfloat16 that updates of a whole model read', () => {
    const run = { device: 'cuda', recompute: false, longest: 64 } as const;
    const activations = (precision: 'bfloat16' | 'float32', recompute: boolean) => {
      const { adapter: _, ...whole } = { ...rank16, precision };
      const policy = { name: 'solver', config: smollm2, ...whole, versions: 1 };
      return torchMemory({ ...run, recompute }, [policy], 64).policies.solver?.activations ?? 0;
    };
    const narrow = activations('bfloat16', false);
    expect(narrow).toBeGreaterThan(2 * 134_515_008);
    expect(narrow - 2 * 134_515_008).toBeLessThan(activations('float32', false));
    expect(activations('bfloat16', true)).toBeLessThan(2 * 134_515_008);
  });

  afterEach(() => void vi.unstubAllEnvs());

  it.each<[string, object, RegExp, boolean?]>([
    ['fits', {}, /has 23\.0 GB free, so the run fits$/, true],
    ['a card that others use', { cards: [{ ...torchReport.cards[0], free: 5e8 }] }, /so the run does not fit$/, false],
    ['an old PyTorch', { torch: '2.7.1' }, /cannot start here: .*needs PyTorch 2\.8 or later/],
    ['an old Python', { version: '3.9.18' }, /cannot start here: .*needs Python 3\.10 or later/],
    ['no PyTorch', { torch: null, cards: [] }, /cannot start here: .* has no PyTorch: uv pip install/],
    ['no CUDA', { cuda: null, cards: [] }, /cannot start here: .*is a build without CUDA/],
    ['a card that fails', { cards: [{ ...torchReport.cards[0], error: 'busy' }] }, /cannot compute on Card: busy/],
  ])('is compared with the card that `train` would use: %s', async (_, changes, note, fits) => {
    vi.stubEnv('DRMAS_PYTHON', await fakePython({ ...torchReport, ...changes }));
    const run = { device: 'cuda', recompute: false, longest: 64 } as const;
    const policy = { name: 'solver', config: smollm2, ...rank16, versions: 1 };
    const plan = await torchMemoryPlan(run, [policy]);
    expect(plan.notes).toEqual([expect.stringMatching(note)]);
    expect(plan.fits).toBe(fits);
  });
});
