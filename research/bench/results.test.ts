import { describe, expect, it } from 'vitest';
import { forShape, TRAIN_PRECISIONS } from './context.js';
import { PEAK } from './measure/peak.js';
import { amount, reportText, table } from './report.js';
import { drmasIn, peakMemory, peerRatios, precisionRatios, type Results, rowsOf, threadRatios } from './results.js';
import { largeShapes, type Shape, shapes, trainingFlops, trainingName } from './workload.js';

const series = (name: string, threads: number, rates: readonly number[], clean = true) => ({
  name,
  threads,
  unit: 'tok',
  repetitions: rates.map((rate) => ({
    amount: rate,
    seconds: 1,
    rate,
    ownCores: threads,
    otherCores: clean ? 0 : 1,
    wallSeconds: 1,
    clean,
  })),
});

const rows = rowsOf(
  'train',
  'tiny',
  [
    series('drmas', 1, [100]),
    series('drmas', 2, [180, 190, 200]),
    series('PyTorch, eager', 2, [70]),
    series('PyTorch, compiled', 1, [95]),
    series('TRL', 1, [19], false),
    series(PEAK, 1, [400, 500]),
    series(PEAK, 2, [1000]),
  ],
  2,
);

describe('results', () => {
  it('share of the best peak of as many threads', () => {
    expect(rows.map(({ peakShare }) => peakShare)).toEqual([0.4, 0.38, 0.14, 0.38, 0.076, undefined, undefined]);
  });

  it('compare our best number of threads with the best variant of a peer', () => {
    const [torch, trl, none] = peerRatios(rows, { PyTorch: 2.3, TRL: undefined, absent: 5 });
    expect(torch).toMatchObject({ value: 2, target: 2.3, clean: true });
    expect(torch?.what).toContain('PyTorch, compiled, 1 thread');
    expect(trl).toMatchObject({ value: 10, clean: false });
    expect(trl).not.toHaveProperty('target');
    expect(none).toBeUndefined();
  });

  it('compare products in bfloat16 with those of a peer', () => {
    const coarse = rowsOf('train', 'tiny', [
      series(drmasIn('float32'), 1, [100]),
      series(drmasIn('bfloat16'), 1, [300]),
      series('PyTorch, eager', 1, [70]),
      series('PyTorch autocast, eager', 1, [150]),
    ]);
    const ratios = peerRatios(coarse, { 'PyTorch autocast': 1.5 }, drmasIn('bfloat16'));
    expect(ratios).toMatchObject([{ value: 2, target: 1.5, clean: true }]);
    expect(ratios[0]?.what).toMatch(/^drmas, bfloat16 \/ PyTorch autocast, eager/);
  });

  it('say what the second thread brings', () => {
    expect(threadRatios(rows, 1.8)).toMatchObject([{ value: 1.9, target: 1.8 }]);
  });

  it("say how much memory was taken, on our own engine's rows alone", () => {
    const measured = peakMemory(rows.slice(1, 3), 10, 8);
    expect(measured.rows.map(({ peakResidentBytes }) => peakResidentBytes)).toEqual([10, undefined]);
    expect(measured.ratios).toMatchObject([{ shape: 'tiny', value: 0.8, target: 1 }]);
  });
});

describe('precisions', () => {
  it('are compared at each number of threads, with a target for the most', () => {
    const all = [
      ...[1, 2].map((threads) => series(drmasIn('float32'), threads, [100 * threads])),
      series(drmasIn('bfloat16'), 2, [300]),
      series(drmasIn('bfloat16'), 1, [120], false),
    ];
    const ratios = precisionRatios(rowsOf('train', 'base', all), 1.5);
    expect(ratios.map(({ value, target, clean }) => [value, target, clean])).toEqual([
      [1.2, undefined, false],
      [1.5, 1.5, true],
    ]);
    expect(precisionRatios(rowsOf('train', 'base', all.slice(0, 2)))).toEqual([]);
  });
});

describe('a large shape', () => {
  const qwen = largeShapes[0] as Shape;
  const results: Results = { kernels: [], rows: [], ratios: [], skipped: [] };
  const options = {
    device: 'cpu' as const,
    threads: [1, 2],
    repetitions: 3,
    shapes: [qwen],
    precisions: TRAIN_PRECISIONS,
    peers: true,
    peerDevice: 'cpu' as const,
    requests: undefined,
    python: undefined,
    drmas: undefined,
    llamaServer: undefined,
  };
  const context = { options, results, say: () => {} };

  it('is measured with one engine at a time and without peers, which the report says', () => {
    expect(forShape(context, 'train', qwen).options).toMatchObject({
      threads: [2],
      precisions: ['float32'],
      peers: false,
    });
    expect(results.skipped.map(({ what }) => what)).toEqual(['train qwen05: 1 thread', 'train qwen05: peers']);
  });

  it('is measured beside peers on a GPU', () => {
    const onGpu = { ...context, options: { ...options, device: 'gpu' as const } };
    expect(forShape(onGpu, 'train', qwen)).toBe(onGpu);
  });

  it('is called by what is trained of it', () => {
    const names = [...shapes, qwen].map(trainingName);
    expect(names).toEqual(['tiny', 'small', 'base', 'qwen05, LoRA rank 16, recomputing']);
  });

  it('counts four operations for a frozen parameter, six for a trained one', () => {
    const embedding = 151_936 * 896;
    const layer = 896 * (14 + 2 * 2) * 64 + 896 * 896 + 3 * 896 * 4864 + 2 * 896;
    expect(trainingFlops(qwen, 5)).toBe(4 * (embedding + 24 * layer + 896) + 6 * 5);
    expect(trainingFlops(shapes[0] as Shape, 5)).toBe(6 * 5);
  });
});

describe('report', () => {
  it('writes amounts with three digits and a prefix', () => {
    expect([0.957, 49_912, 1_206_000, 5.771e11].map(amount)).toEqual(['0.957', '49.9k', '1.21M', '577G']);
  });

  it('says what the process held', () => {
    const measured = { kernels: [], skipped: [], ...peakMemory(rows.slice(0, 1), 6.789e9, 8e9) };
    expect(reportText(measured)).toContain('train tiny: 6.79GB');
  });

  it('aligns columns', () => {
    expect(table(['a', 'bb'], [['xyz', '1']], 1)).toBe('a    bb\n---  --\nxyz   1');
  });
});
