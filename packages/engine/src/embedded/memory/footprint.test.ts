import { describe, expect, it } from 'vitest';
import { plainAdamW } from '../../../../../test/support/adamw.js';
import type { TrainingSample } from '../../base/core/sample.js';
import {
  type AdapterSettings,
  type DecoderConfig,
  PRECISIONS,
  PROJECTIONS,
  type Precision,
} from '../../contract/architecture.js';
import {
  type BaseKind,
  type BlockFormats,
  matrixShapes,
  parameterCount,
} from '../../model/decoder/weights/decoder-tensors.js';
import type { MatrixKind } from '../../tensor/kernel-arguments.js';
import type { Kernels } from '../../tensor/kernels.js';
import { selectKernels } from '../../tensor/select.js';
import { Engine } from '../thread/engine.js';
import { packSamples } from '../thread/sample-batch.js';
import { baseFootprint, cacheFootprint, type FootprintRequest, memoryPlan, policyFootprint } from './footprint.js';

const config: DecoderConfig = {
  vocabSize: 64,
  width: 64,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 32,
  feedForward: 128,
  context: 1100,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const adapter: AdapterSettings = { rank: 4, alpha: 4, targets: PROJECTIONS };
const optimizer = plainAdamW(1e-3);
const length = 1030; // a batch has at least 1024 rows

const { kernels } = await selectKernels({ threads: 1 });

/** Kernels that know how many bytes they were asked for. */
function counting(): { kernels: Kernels; bytes(): number } {
  const sizes: number[] = [];
  const allocate = (floats: number) => {
    sizes.push(4 * floats);
    return kernels.allocate(floats);
  };
  const allocateBfloat16 = (length: number) => {
    sizes.push(2 * length);
    return kernels.allocateBfloat16(length);
  };
  const allocateIntegers = (length: number) => {
    sizes.push(4 * length);
    return kernels.allocateIntegers(length);
  };
  return {
    kernels: { ...kernels, allocate, allocateBfloat16, allocateIntegers },
    bytes: () => sizes.reduce((a, b) => a + b, 0),
  };
}

const sample = (agent: string): TrainingSample => ({
  tokens: new Int32Array(length).fill(7),
  mask: new Uint8Array(length).fill(1, length - 2),
  behaviourLogprobs: new Float32Array(length),
  advantages: new Float32Array(length).fill(1),
  temperature: 1,
  policyVersion: 0,
  agent,
});

/** The precisions of models that are not in blocks. */
const WHOLE_PRECISIONS = ['float32', 'bfloat16'] as const;

/** The model that a test trains and samples. */
interface Taken {
  readonly kind?: MatrixKind;
  readonly precision?: Precision;
  readonly versions?: number;
}

const taken = new Map<string, Promise<number>>();

/** Trains and samples one step of each kind. Returns the memory that the engine requested from its kernels. */
function takes(shape: 'whole' | 'adapter', settings: Taken = {}): Promise<number> {
  const key = JSON.stringify([shape, settings]);
  const before = taken.get(key);
  if (before !== undefined) return before;
  const bytes = measured(shape, settings);
  taken.set(key, bytes);
  return bytes;
}

/** By so many versions at last. */
async function measured(
  shape: 'whole' | 'adapter',
  { kind = 'float32', precision = 'float32', versions = 1 }: Taken,
): Promise<number> {
  const { kernels, bytes } = counting();
  const engine = new Engine(kernels);
  const [base, policy] = [0, 1];
  if (shape === 'adapter') engine.createBase(base, config, kind);
  const shaped = shape === 'adapter' ? { base, adapter } : config;
  engine.createPolicy(policy, { name: 'policy', shape: shaped, precision }, { seed: 1 });
  const play = async (id: number) => {
    engine.publish(policy, versions);
    engine.submit(id, policy, {
      prompt: new Array(length - 1).fill(1),
      stopTokens: [],
      maxTokens: 1,
      temperature: 0,
      topP: 1,
      topK: 0,
      key: [1, 2],
    });
    await engine.tick();
  };
  await play(0);
  const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
  await engine.forwardBackward(policy, packSamples([sample('a')]), options);
  await engine.forwardBackward(policy, packSamples([sample('b')]), options);
  await engine.optimStep(policy, { optimizer, clipNorm: 1 });
  for (let version = 1; version < versions; version++) await play(version);
  return bytes();
}

const sum = (parts: object) => Object.values(parts).reduce((a: number, b: number) => a + b, 0);

describe('the footprint', () => {
  const request = {
    config,
    precision: 'float32',
    optimizer,
    agents: 2,
    versions: 1,
    longest: length,
    recompute: false,
  } as const;

  const base = (kept: MatrixKind, sizes: DecoderConfig = config) =>
    baseFootprint({ config: sizes, kept, precisions: new Set(['float32']) });

  it.each(WHOLE_PRECISIONS)(
    'of a whole model in %s is about what the engine asks its kernels for',
    async (precision) => {
      const expected = sum(policyFootprint({ ...request, precision })) + cacheFootprint(config, length);
      const ratio = (await takes('whole', { precision })) / expected;
      expect(ratio).toBeGreaterThan(0.6);
      expect(ratio).toBeLessThan(1.3);
    },
  );

  it.each(['float32', 'bfloat16'] as const)(
    'of an adapter and its base in %s too',
    { tags: 'verify' },
    async (kind) => {
      const expected = sum(policyFootprint({ ...request, adapter })) + base(kind) + cacheFootprint(config, length);
      const ratio = (await takes('adapter', { kind })) / expected;
      expect(ratio).toBeGreaterThan(0.6);
      expect(ratio).toBeLessThan(1.3);
    },
  );

  it('of a base in bfloat16 is smaller by a quarter or more, by what the engine asks for too', {
    tags: 'verify',
  }, async () => {
    for (const sizes of [config, { ...config, untiedOutput: true, attentionBias: 'qkvo' } as const]) {
      const [fine, coarse] = [base('float32', sizes), base('bfloat16', sizes)];
      // Packed forms take half. In float32 the layers' matrices exist in packed form only, in bfloat16 also as stored.
      expect(coarse / fine).toBeGreaterThan(0.5);
      expect(coarse / fine).toBeLessThan(0.75);
    }
    const saved = (await takes('adapter')) - (await takes('adapter', { kind: 'bfloat16' }));
    // In float32 the layers' matrices are given up once they are packed.
    const givenUp = Object.values(matrixShapes(config, 0)).reduce(
      (sum, { inputs, outputs }) => sum + inputs * outputs,
      0,
    );
    const expected = base('float32') + 4 * config.layers * givenUp - base('bfloat16');
    expect(saved / expected).toBeGreaterThan(0.95);
    expect(saved / expected).toBeLessThan(1.2); // one copy of a matrix serves those that are read later
  });

  it('of a base in blocks is within a tenth of what the engine asks for, and smaller by more than two thirds', () => {
    const kept: BlockFormats = {
      embedding: 'Q8_0',
      output: 'Q8_0',
      layers: Array.from({ length: config.layers }, () => ({
        ...({ qkv: 'Q4_1', attentionOut: 'Q4_0', gateUp: 'Q4_1', down: 'Q8_0' } as const),
      })),
    };
    const wide = { ...config, width: 64, feedForward: 96, vocabSize: 1000 };
    const { kernels, bytes } = counting();
    expect(new Engine(kernels).createBase(1, wide, kept)).toBe(true);
    const expected = baseFootprint({ config: wide, kept, precisions: new Set(['float32']) });
    expect(bytes() / expected).toBeGreaterThan(0.9);
    expect(bytes() / expected).toBeLessThan(1.1);
    expect(expected / base('float32', wide)).toBeLessThan(0.3);
    const rounded = baseFootprint({ config: wide, kept, precisions: new Set(PRECISIONS) }) - expected;
    expect(rounded).toBe(2 * 2 * (parameterCount(wide) - wide.width * (2 * wide.layers + 1))); // packed, both ways
  });

  it('is not planned for a policy in int8 whose base is not in blocks', () => {
    const plan = (kept: BaseKind) => {
      const policy = { name: 'coder', config, precision: 'int8', optimizer, agents: 1, versions: 1 } as const;
      const adapted = { ...policy, adapter: { settings: adapter, base: 'file', kept } };
      return memoryPlan({ recompute: false }, [adapted], length).total?.bases;
    };
    const format = 'Q8_0';
    const layer = { qkv: format, attentionOut: format, gateUp: format, down: format } as const;
    expect(plan({ embedding: format, layers: [layer, layer], output: format })).toBeGreaterThan(0);
    for (const kept of ['float32', 'bfloat16'] as const)
      expect(() => plan(kept)).toThrow("'coder' is in int8: expected an adapter, or a model that is not trained, on a");
  });

  it('has a copy and a cache more for each version that is kept', { tags: 'verify' }, async () => {
    const plan = (versions: number) =>
      memoryPlan(
        { recompute: false },
        [{ name: 'policy', config, precision: 'float32', optimizer, agents: 1, versions }],
        length,
      ).total;
    const [one, three] = [plan(1), plan(3)];
    expect(three?.cache).toBe(3 * (one?.cache ?? 0));
    const ratio = (await takes('whole', { versions: 3 })) / (three?.total ?? 0);
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(1.3);
  });

  it('is smaller by half of all packed forms where products are in bfloat16', { tags: 'verify' }, async () => {
    const saved = (adapted: Partial<FootprintRequest>) =>
      policyFootprint({ ...request, ...adapted }).weights -
      policyFootprint({ ...request, ...adapted, precision: 'bfloat16' }).weights;
    const least = 0.9; // the cache grows by positions, and panels are filled up
    const forms = 2 / 3; // the packed copy of published weights, made when training continues, does not exist here
    expect(
      ((await takes('whole')) - (await takes('whole', { precision: 'bfloat16' }))) / (forms * saved({})),
    ).toBeGreaterThan(least);
    const whole = base('float32') - baseFootprint({ config, kept: 'float32', precisions: new Set(['bfloat16']) });
    const difference = (await takes('adapter')) - (await takes('adapter', { precision: 'bfloat16' }));
    expect(difference / (whole + saved({ adapter }))).toBeGreaterThan(least);
    const read = (...precisions: Precision[]) =>
      baseFootprint({ config, kept: 'bfloat16', precisions: new Set(precisions) });
    expect(read(...WHOLE_PRECISIONS) - read('float32')).toBe(read('float32') - read());
  });

  it('has moments only where the optimiser has, and one gradient for one agent', async () => {
    const sgd = { type: 'sgd', learningRate: 0.1, momentum: 0, nesterov: false, weightDecay: 0 } as const;
    const lean = policyFootprint({ ...request, optimizer: sgd, agents: 1 });
    const full = policyFootprint(request);
    expect(lean.optimizer).toBe(0);
    expect(2 * lean.gradients).toBe(full.gradients);
  });
});
