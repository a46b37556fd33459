import { describe, expect, it } from 'vitest';
import { memoryFiles, safetensorsBytes } from '../../../../../test/support/memory-files.js';
import { CheckpointError } from '../../base/core/errors.js';
import { type AdapterSettings, type DecoderConfig, PROJECTIONS } from '../../contract/architecture.js';
import { adapterParameterCount, adapterTensors } from '../decoder/weights/adapter-tensors.js';
import { adapterPlaces, expectedAdapterTensors } from './adapter-layout.js';
import { adaptedModules, openAdapterWeights, readAdapterConfig, storedModules, writeAdapterConfig } from './peft.js';
import { readInto, requireTensor } from './safetensors.js';
import { takeTensor } from './tensor-place.js';

const config: DecoderConfig = {
  vocabSize: 7,
  width: 6,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  feedForward: 5,
  context: 8,
  ropeBase: 1e4,
  normEpsilon: 1e-6,
};
const adapter: AdapterSettings = { rank: 3, alpha: 6, targets: ['k', 'v', 'o', 'gate', 'down'] };

/** An adapter whose every number is another one. */
function counting(settings: AdapterSettings) {
  const flat = Float32Array.from({ length: adapterParameterCount(config, settings) }, (_, i) => i);
  return adapterTensors(config, settings, flat);
}
const stored = (settings: AdapterSettings) =>
  new Map(adapterPlaces(counting(settings), config, settings).map((place) => [place.name, takeTensor(place)]));

/** The tensors as they come from a file that is read as `settings` says. */
const open = (tensors: ReturnType<typeof stored>, settings: AdapterSettings) =>
  openAdapterWeights(
    memoryFiles(new Map([['a/adapter_model.safetensors', safetensorsBytes([...tensors.values()])]])),
    'a',
    config,
    settings,
  );

describe("an adapter's tensors under PEFT's names", () => {
  it('have its shapes: A [rank, inputs], B [outputs, rank]', () => {
    const tensors = stored(adapter);
    const shape = (name: string) => tensors.get(`base_model.model.model.layers.1.${name}.weight`)?.shape;
    expect(tensors.size).toBe(2 * 5 * 2);
    expect(shape('self_attn.q_proj.lora_A')).toBeUndefined();
    expect(shape('self_attn.k_proj.lora_A')).toEqual([3, 6]);
    expect(shape('self_attn.k_proj.lora_B')).toEqual([4, 3]);
    expect(shape('self_attn.o_proj.lora_A')).toEqual([3, 8]);
    expect(shape('self_attn.o_proj.lora_B')).toEqual([6, 3]);
    expect(shape('mlp.gate_proj.lora_B')).toEqual([5, 3]);
    expect(shape('mlp.down_proj.lora_A')).toEqual([3, 5]);
  });

  it('are the transposes of the parts that stand side by side here', () => {
    // Layer 0 begins with A of k and v side by side, [6, 3 + 3], and then the B's of k and v, [3, 4] each.
    const tensors = stored(adapter);
    const data = (name: string) => [...(tensors.get(`base_model.model.model.layers.0.self_attn.${name}`)?.data ?? [])];
    const column = (c: number) => Array.from({ length: 6 }, (_, i) => 6 * i + c);
    expect(data('k_proj.lora_A.weight')).toEqual([...column(0), ...column(1), ...column(2)]);
    expect(data('v_proj.lora_A.weight')).toEqual([...column(3), ...column(4), ...column(5)]);
    expect(data('k_proj.lora_B.weight')).toEqual([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11].map((i) => 36 + i));
    expect(data('v_proj.lora_B.weight')).toEqual([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11].map((i) => 48 + i));
  });

  it.each([
    [PROJECTIONS, 1],
    [['q'], 5],
    [['v', 'up'], 2],
  ] as const)('come back as they were: %s, rank %i', async (targets, rank) => {
    const settings = { rank, alpha: 1, targets };
    const back = adapterTensors(config, settings, new Float32Array(adapterParameterCount(config, settings)));
    const read = await open(stored(settings), settings);
    for (const place of adapterPlaces(back, config, settings)) await readInto(place, requireTensor(read, place, 'f'));
    expect(back.flat).toEqual(counting(settings).flat);
  });

  it('are refused when one is missing, of another rank, or has no place', async () => {
    const missing = stored(adapter);
    missing.delete('base_model.model.model.layers.1.mlp.gate_proj.lora_B.weight');
    await expect(open(missing, adapter)).rejects.toThrow(CheckpointError);
    await expect(open(missing, adapter)).rejects.toThrow(/layers\.1\.mlp\.gate_proj\.lora_B.*is missing/);
    const smaller = stored({ ...adapter, rank: 2 });
    await expect(open(smaller, adapter)).rejects.toThrow(/has shape \[2, 6\], expected \[3, 6\]/);
    const more = stored({ ...adapter, targets: PROJECTIONS });
    await expect(open(more, adapter)).rejects.toThrow(/up_proj\.lora_A\.weight" has no place/);
  });
});

describe('adapter_config.json', () => {
  const written = writeAdapterConfig(
    { settings: adapter, base: 'Qwen/Qwen2.5-0.5B' },
    adaptedModules(config, adapter.targets),
  );

  it('is read as it was written', () => {
    expect(readAdapterConfig(written)).toEqual({ settings: adapter, base: 'Qwen/Qwen2.5-0.5B' });
    expect(
      readAdapterConfig(writeAdapterConfig({ settings: adapter, base: undefined }, ['q_proj'])).base,
    ).toBeUndefined();
  });

  it('has the names of LFM2, whose joined projection goes with queries, keys or values', () => {
    const lfm2 = { ...config, queryKeyNorm: true, convolution: { taps: 3, layers: [0] } } as const;
    const of = (targets: AdapterSettings['targets']) =>
      writeAdapterConfig({ settings: adapter, base: undefined }, adaptedModules(lfm2, targets));
    const all = ['q_proj', 'k_proj', 'v_proj', 'out_proj', 'w1', 'w3', 'w2', 'in_proj'];
    expect(of(PROJECTIONS).target_modules).toEqual(all);
    expect(of(['o', 'down']).target_modules).toEqual(['out_proj', 'w2']);
    for (const targets of [PROJECTIONS, ['v', 'gate'], ['o', 'up']] as const)
      expect(readAdapterConfig(of(targets)).settings.targets).toEqual(targets);
    const names = expectedAdapterTensors({ ...lfm2, headDim: 3 }, { ...adapter, targets: ['q', 'o'] });
    const shapes = names.map(({ name, shape }) => [name.replace('base_model.model.model.layers.', ''), shape]);
    expect(shapes).toEqual([
      ['0.conv.in_proj.lora_A.weight', [3, 6]],
      ['0.conv.in_proj.lora_B.weight', [18, 3]],
      ['0.conv.out_proj.lora_A.weight', [3, 6]],
      ['0.conv.out_proj.lora_B.weight', [6, 3]],
      ['1.self_attn.q_proj.lora_A.weight', [3, 6]],
      ['1.self_attn.q_proj.lora_B.weight', [6, 3]],
      ['1.self_attn.out_proj.lora_A.weight', [3, 6]],
      ['1.self_attn.out_proj.lora_B.weight', [6, 3]],
    ]);
  });

  it('has the modules of a file whose base is not known', async () => {
    const named = (...names: string[]) =>
      names.map((name) => ({ name, dtype: 'F32' as const, shape: [1], data: Float32Array.of(1) }));
    const layer = 'base_model.model.model.layers.0';
    const tensors = named(
      ...['A', 'B'].flatMap((half) =>
        ['conv.in_proj', 'feed_forward.w1'].map((of) => `${layer}.${of}.lora_${half}.weight`),
      ),
      'base_model.model.model.layers.1.conv.in_proj.lora_A.weight',
      'something.else',
    );
    const files = memoryFiles(new Map([['a/adapter_model.safetensors', safetensorsBytes(tensors)]]));
    expect(await storedModules(files, 'a/adapter_model.safetensors')).toEqual(['in_proj', 'w1']);
  });

  it('is read as PEFT writes it, with the scale of rank-stabilised adapters', () => {
    const peft = {
      ...written,
      r: 16,
      lora_alpha: 8,
      use_rslora: true,
      target_modules: ['v_proj', 'q_proj'],
      modules_to_save: null,
      rank_pattern: {},
      init_lora_weights: true,
      use_dora: false,
    };
    expect(readAdapterConfig(peft).settings).toEqual({ rank: 16, alpha: 32, targets: ['q', 'v'] });
  });

  it.each([
    ['all-linear', PROJECTIONS],
    ['.*\\.(q|v)_proj', ['q', 'v']],
    ['model\\.layers\\.\\d+\\.mlp\\.(gate_proj|up_proj)', ['gate', 'up']],
    [
      ['self_attn.v_proj', 'mlp.down_proj'],
      ['v', 'down'],
    ],
    [['model.layers.0.self_attn.o_proj', 'layers.1.self_attn.o_proj'], ['o']],
  ])('may name its modules by %j', (target_modules, targets) => {
    expect(readAdapterConfig({ ...written, target_modules }).settings.targets).toEqual(targets);
  });

  it.each([
    [{ peft_type: 'IA3' }, /peft_type/],
    [{ r: 0 }, /r: /],
    [{ target_modules: [] }, /target_modules/],
    [{ target_modules: '(' }, /target_modules: "\(" is not supported, it has a bracket that is not closed/],
    [{ target_modules: '.*nothing' }, /"\.\*nothing" is not supported, expected a pattern that fits projections/],
    [{ target_modules: '.*(q_proj|lm_head)' }, /expected a pattern that fits projections of layers alone/],
    [{ target_modules: '(.*)*q_proj' }, /take too much work/],
    [{ target_modules: ['proj'] }, /"proj" is not supported, expected some of q_proj/],
    [{ exclude_modules: ['q_proj'] }, /exclude_modules/],
    [{ target_modules: ['q_proj', 'lm_head'] }, /"lm_head" is not supported, expected some of q_proj/],
    [{ target_modules: ['in_proj', 'out_proj'] }, /in_proj is adapted only with q_proj, k_proj or v_proj/],
    [{ use_dora: true }, /use_dora = true is not supported/],
    [{ bias: 'all' }, /bias = "all" is not supported/],
    [{ modules_to_save: ['lm_head'] }, /modules_to_save/],
    [{ rank_pattern: { q_proj: 4 } }, /rank_pattern/],
    [{ layers_to_transform: [1] }, /layers_to_transform/],
    [{ init_lora_weights: 'pissa' }, /init_lora_weights = "pissa"/],
  ])('is refused with %j', (change, message) => {
    expect(() => readAdapterConfig({ ...written, ...change }, 'x.json')).toThrow(CheckpointError);
    expect(() => readAdapterConfig({ ...written, ...change }, 'x.json')).toThrow(message);
  });
});
