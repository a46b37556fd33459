/** The embedded engine on a GPU: the cases that the decoder's test leaves out, models from files, and refusals. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OptimizerSettings } from '@drmas/engine/contract';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { CriticModel } from '@drmas/engine/internal/model/decoder/critic-model';
import { PolicyModel } from '@drmas/engine/internal/model/decoder/policy-model';
import { decoderTensors, initialise } from '@drmas/engine/internal/model/decoder/weights/decoder-tensors';
import { fillOnHost } from '@drmas/engine/internal/tensor/memory';
import { selectEngineKernels } from '@drmas/engine/internal/tensor/select';
import { createReferenceKernels, type Kernels } from '@drmas/engine/kernels';
import { RandomStream } from '@drmas/engine/math';
import { loadPolicy } from '@drmas/engine/node';
import { nodeFiles } from '@drmas/engine/platform';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plain, randomSequence } from '../contracts/decoder.js';
import { goldenModels, goldenPath } from '../goldens.js';
import { plainAdamW } from '../support/adamw.js';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { takesTime, timeForMishaps } from '../support/time-and-chance.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { checkedKernels } from './opened-device.js';

const random = new RandomStream('the engine on a GPU');
const sequences = [17, 2, 40, 9].map((length) => randomSequence(random, length));
const upstream = sequences.map(({ tokens }) => Float32Array.from(tokens, () => random.normal()));

const optimizers: readonly OptimizerSettings[] = [
  plainAdamW(1e-3),
  { type: 'sgd', learningRate: 1e-2, momentum: 0.9, nesterov: true, weightDecay: 0.01 },
  { type: 'nigt', learningRate: 1e-2, momentum: 0.5 },
];

/** The largest |a - b| / (1 + |b|). */
const gap = (values: ArrayLike<number>, expected: ArrayLike<number>) =>
  Array.from(expected, (right, i) => Math.abs((values[i] as number) - right) / (1 + Math.abs(right))).reduce(
    (most, each) => Math.max(most, each),
    0,
  );

/** The weights after some steps of each optimiser. */
async function optimised(kernels: Kernels): Promise<Float32Array[]> {
  const all: Float32Array[] = [];
  for (const optimizer of optimizers) {
    const model = new PolicyModel(kernels, plain);
    model.initialise(3);
    for (let step = 0; step < 2; step++) {
      await model.accumulate(sequences, (indices) => indices.map((i) => upstream[i] as Float32Array));
      await model.optimStep({ optimizer, clipNorm: 1 });
    }
    all.push((await kernels.read([model.trained]))[0]);
  }
  return all;
}

/** The values of a critic after some steps. */
async function valued(kernels: Kernels): Promise<number[]> {
  const critic = new CriticModel(kernels, plain);
  fillOnHost(kernels, critic.trunk, (flat) => initialise(plain, decoderTensors(plain, flat), 5));
  critic.trunkChanged();
  for (let step = 0; step < 2; step++) {
    await critic.accumulate(sequences, (index, values) => values.map((value, t) => (value - Math.cos(index + t)) / 30));
    await critic.optimStep({ optimizer: plainAdamW(1e-2), clipNorm: 1 });
  }
  return (await critic.values(sequences)).flatMap((row) => [...row]);
}

describe('on a GPU', () => {
  let kernels: Kernels;
  beforeAll(async () => {
    kernels = await checkedKernels();
  });

  it('every optimiser steps as on the plain kernels, twice with the same bits', async () => {
    const [ours, expected] = [await optimised(kernels), await optimised(createReferenceKernels())];
    for (const [i, weights] of ours.entries()) expect(gap(weights, expected[i] as Float32Array)).toBeLessThan(5e-5);
    expect(await optimised(kernels)).toEqual(ours);
  });

  it('a critic learns the values that it learns on the plain kernels', async () => {
    const [ours, expected] = [await valued(kernels), await valued(createReferenceKernels())];
    expect(Math.max(...expected)).toBeGreaterThan(0.01);
    expect(gap(ours, expected)).toBeLessThan(5e-5);
  });
});

describe('the engine on a GPU', () => {
  const root = temporaryRoot();
  const before = process.env.DRMAS_KERNELS;
  afterAll(() => {
    if (before === undefined) delete process.env.DRMAS_KERNELS;
    else process.env.DRMAS_KERNELS = before;
  });

  describe.each(goldenModels)('computes in a thread of its own', (model) => {
    const tags = model === 'qwen3-mini-bf16' ? [] : ['long'];
    it(`what ${model} does that lies in files, and writes the same files`, { tags }, async () => {
      const directory = goldenPath(`models/${model}`);
      const tokens = [1, 5, 9, 2, 3];
      const opened = async (device: 'native' | 'webgpu') => {
        process.env.DRMAS_KERNELS = device === 'webgpu' ? device : (before ?? '');
        await using policy = await loadPolicy(directory);
        await policy.save(join(root, `${model} ${device}`));
        const { logprobs } = await policy.generate({ prompt: tokens, maxTokens: 4, temperature: 0.7, seed: 1 });
        const names = await readdir(join(root, `${model} ${device}`));
        const files = await Promise.all(
          names.map((name) => readFile(join(root, `${model} ${device}`, name), 'base64')),
        );
        return { logits: await policy.logits(tokens), logprobs, files };
      };
      const [native, gpu] = [await opened('native'), await opened('webgpu')];
      process.env.DRMAS_KERNELS = before ?? '';
      expect(gap(gpu.logits, native.logits)).toBeLessThan(1e-4);
      expect(gap(gpu.logprobs, native.logprobs)).toBeLessThan(1e-4);
      expect(gpu.files).toEqual(native.files);
    });
  });

  it('is ended while it computes, and the process goes on', async () => {
    process.env.DRMAS_KERNELS = 'webgpu';
    const policy = await loadPolicy(goldenPath('models/qwen3-mini-bf16'));
    process.env.DRMAS_KERNELS = before ?? '';
    const answer = policy.generate({ prompt: [1, 5, 9], maxTokens: 20, temperature: 1, seed: 1 });
    const ended = expect(answer).rejects.toThrow('disposed of');
    await takesTime(100);
    await policy.dispose();
    await ended;
  });

  it('is ended while it starts, and the process goes on', async () => {
    const controller = new AbortController();
    const options = { threads: 1, files: nodeFiles, device: 'gpu', signal: controller.signal } as const;
    const started = expect(startEmbedded(options)).rejects.toThrow('Ctrl-C');
    await takesTime(3_000); // the device is checked then
    controller.abort(new Error('Ctrl-C'));
    await started;
    await timeForMishaps(500); // a thread that was ended from outside often ends the process by now
  });

  it('names its device, and each device has only one name', { tags: ['long'] }, async () => {
    const backend = await startEmbedded({ threads: 1, files: nodeFiles, device: 'gpu' });
    expect(backend.hardware.kernels).toBe('webgpu');
    expect(backend.hardware.isa).toMatch(/^wgsl, ./);
    await backend.dispose();
    const selected = (environment: NodeJS.ProcessEnv, device: 'cpu' | 'gpu') =>
      selectEngineKernels({ threads: 1, environment, device });
    await expect(selected({ DRMAS_KERNELS: 'native' }, 'gpu')).rejects.toThrow(
      'the device is to be gpu, but DRMAS_KERNELS',
    );
    await expect(selected({ DRMAS_KERNELS: 'webgpu' }, 'cpu')).rejects.toThrow(
      'the device is to be cpu, but DRMAS_KERNELS',
    );
  });
});

describe('the command', () => {
  let program: CompiledProgram;
  beforeAll(async () => {
    program = await compiledProgram();
  });
  afterAll(() => program?.remove());

  it('says in a line that there is no driver, and creates nothing', async () => {
    const run = join(temporaryRoot(), 'none');
    const words = ['train', 'repair', '--set', 'backend.device=gpu', '--run', run];
    const environment = { ...process.env, VK_DRIVER_FILES: '/nowhere.json', VK_ICD_FILENAMES: '/nowhere.json' };
    const failed = await promisify(execFile)('node', [program.main, ...words], { env: environment }).then(
      () => undefined,
      (error: { readonly code: number; readonly stderr: string }) => error,
    );
    expect(failed?.code).toBeGreaterThan(0);
    expect(failed?.stderr).toMatch(/no GPU to compute on: no driver offers a GPU/);
    expect(existsSync(run)).toBe(false);
  });

  it('says what to install without the package webgpu', async () => {
    const resolve = `export async function resolve(name, context, next) {
    if (name !== 'webgpu') return next(name, context);
    throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' });
  }`;
    const url = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
    const without = url(`import { register } from 'node:module'; register(${JSON.stringify(url(resolve))});`);
    const words = ['--import', without, program.main, 'doctor', '--json'];
    const { stdout } = await promisify(execFile)('node', words);
    expect(JSON.parse(stdout)).toMatchObject({ gpu: { reason: 'it needs `npm install webgpu`' } });
  });
});
