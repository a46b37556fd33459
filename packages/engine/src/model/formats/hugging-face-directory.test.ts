import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { goldenFiles, goldenModels, goldenPath } from '../../../../../test/goldens.js';
import { memoryFiles, safetensorsBytes } from '../../../../../test/support/memory-files.js';
import { CheckpointError } from '../../base/core/errors.js';
import { user } from '../../base/core/message.js';
import { createTokenizer } from '../tokenizers/create-tokenizer.js';
import { openModelDirectory, writeModelDirectory } from './hugging-face-directory.js';
import { readTensor, type StoredTensor } from './safetensors.js';
import type { NamedTensor } from './tensor.js';
import { expectedTensors } from './tensor-names.js';
import { readTokenizer, writeTokenizer } from './tokenizer-files.js';

const config = {
  vocabSize: 6,
  width: 4,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 2,
  feedForward: 3,
  context: 8,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};
const symbols = createTokenizer({
  type: 'symbols',
  symbols: ['<end>', '<ask>', '1', '2', '+'],
  stop: '<end>',
  endOfUser: '<ask>',
  endOfAssistant: '<end>',
});
const tensors: NamedTensor[] = expectedTensors(config).map(({ name, shape }, at) => ({
  name,
  shape,
  data: new Float32Array(shape.reduce((a, b) => a * b, 1)).map((_, i) => at + i / 100),
}));

async function written(): Promise<Map<string, Uint8Array | string>> {
  const content = new Map<string, Uint8Array | string>();
  await writeModelDirectory(memoryFiles(content), 'm', { config, tensors, tokenizer: symbols });
  return content;
}

describe('a model directory of ours', () => {
  it('is read back as it was written', async () => {
    const content = await written();
    const read = await openModelDirectory(memoryFiles(content), 'm');
    expect(read.model).toEqual({ architecture: 'llama', config, stopTokens: [0], dtype: 'float32' });
    expect(read.tokenizer.toJSON()).toEqual(symbols.toJSON());
    expect(read.tensors.size).toBe(tensors.length);
    for (const { name, data } of tensors) {
      const tensor = read.tensors.get(name);
      expect(tensor && (await readTensor(tensor))).toEqual(data);
    }
    expect(await written()).toEqual(content);
  });

  it('may be split into shards', async () => {
    const content = await written();
    content.delete('m/model.safetensors');
    const half = tensors.length / 2;
    const shards = { 'a-1.safetensors': tensors.slice(0, half), 'a-2.safetensors': tensors.slice(half) };
    const weight_map: Record<string, string> = {};
    for (const [shard, part] of Object.entries(shards)) {
      content.set(`m/${shard}`, safetensorsBytes(part));
      for (const { name } of part) weight_map[name] = shard;
    }
    const index = 'm/model.safetensors.index.json';
    content.set(index, JSON.stringify({ metadata: {}, weight_map }));
    const read = () => openModelDirectory(memoryFiles(content), 'm');
    expect([...(await read()).tensors.keys()].sort()).toEqual(tensors.map(({ name }) => name).sort());

    const norm = 'model.norm.weight';
    content.set(index, JSON.stringify({ weight_map: { ...weight_map, [norm]: '../a-1.safetensors' } }));
    await expect(read()).rejects.toThrow('expected the name of a safetensors file, found "../a-1.safetensors"');
    content.set(index, JSON.stringify({ weight_map: { ...weight_map, [norm]: undefined } }));
    await expect(read()).rejects.toThrow(`${index}: tensor "${norm}" is missing from weight_map`);
    content.set(index, JSON.stringify({ weight_map: { ...weight_map, [norm]: 'a-2.safetensors' } }));
    await expect(read()).rejects.toThrow(`m/a-2.safetensors: tensor "${norm}" [4] is missing`);
    content.set(index, JSON.stringify({ weight_map }));
    const [twice] = tensors as [NamedTensor];
    content.set('m/a-2.safetensors', safetensorsBytes([...tensors.slice(half), twice]));
    await expect(read()).rejects.toThrow(`m/a-2.safetensors: tensor "${twice.name}" is here too`);
    content.delete('m/a-2.safetensors');
    await expect(read()).rejects.toThrow('m/a-2.safetensors: named in model.safetensors.index.json, but missing');
    content.set(index, '{');
    await expect(read()).rejects.toThrow(`${index}: not valid JSON`);
    content.delete(index);
    await expect(read()).rejects.toThrow(
      'm: expected model.safetensors or model.safetensors.index.json, found neither',
    );
  });

  it('ignores what older versions left behind, and refuses every other tensor it has no place for', async () => {
    const content = await written();
    const read = () => openModelDirectory(memoryFiles(content), 'm');
    const extra = (name: string) =>
      content.set(
        'm/model.safetensors',
        safetensorsBytes([...tensors, { name, shape: [1], data: Float32Array.of(1) }]),
      );
    extra('model.layers.0.self_attn.rotary_emb.inv_freq');
    expect((await read()).tensors.size).toBe(tensors.length);
    extra('model.layers.0.self_attn.q_proj.bias');
    await expect(read()).rejects.toThrow(
      'tensor "model.layers.0.self_attn.q_proj.bias" has no place in this llama model',
    );
  });

  it.each(['in one file', 'in shards'])('takes a tied output only as its embedding, %s', async (place) => {
    const content = await written();
    const embedding = 'model.embed_tokens.weight';
    const [first] = tensors.filter(({ name }) => name === embedding) as [NamedTensor];
    const others = tensors.filter(({ name }) => name !== embedding);
    const read = async (stored: readonly NamedTensor[]) => {
      if (place === 'in one file') content.set('m/model.safetensors', safetensorsBytes(stored));
      else {
        content.delete('m/model.safetensors');
        const weight_map = Object.fromEntries(stored.map(({ name }, i) => [name, `${i}.safetensors`]));
        for (const [i, tensor] of stored.entries()) content.set(`m/${i}.safetensors`, safetensorsBytes([tensor]));
        content.set('m/model.safetensors.index.json', JSON.stringify({ weight_map }));
      }
      const { tensors: opened } = await openModelDirectory(memoryFiles(content), 'm');
      expect([...opened.keys()].sort()).toEqual(tensors.map(({ name }) => name).sort());
      return readTensor(opened.get(embedding) as StoredTensor);
    };
    const head = { ...first, name: 'lm_head.weight' };
    expect(await read([...tensors, head])).toEqual(first.data);
    expect(await read([...others, head])).toEqual(first.data);
    const another = { ...head, data: first.data.map((value, i) => (i === first.data.length - 1 ? value + 1 : value)) };
    await expect(read([...tensors, another])).rejects.toThrow(
      'tensor "lm_head.weight" is another than "model.embed_tokens.weight", but config.json ties them',
    );
    await expect(read(others)).rejects.toThrow(`"${embedding}"`);
  });

  it.each<[string, (content: Map<string, Uint8Array | string>) => void, string]>([
    ['no config', (c) => c.delete('m/config.json'), 'm/config.json: cannot be read: ENOENT'],
    ['a broken config', (c) => c.set('m/config.json', '{'), 'm/config.json: not valid JSON'],
    ['no tokenizer', (c) => c.delete('m/drmas_tokenizer.json'), 'm/tokenizer.json: cannot be read'],
    [
      'damaged weights',
      (c) => c.set('m/model.safetensors', Buffer.from(c.get('m/model.safetensors') ?? '').subarray(0, -4)),
      'm/model.safetensors: tensor "',
    ],
    [
      'another width',
      (c) => c.set('m/config.json', String(c.get('m/config.json')).replace('"hidden_size": 4', '"hidden_size": 5')),
      'm/model.safetensors: tensor "model.embed_tokens.weight" has shape [6, 4], expected [6, 5]',
    ],
    [
      'a vocabulary smaller than its tokenizer',
      (c) => c.set('m/config.json', String(c.get('m/config.json')).replace('"vocab_size": 6', '"vocab_size": 4')),
      'm: the tokenizer has 5 tokens, but vocab_size in config.json is 4',
    ],
  ])('is refused with %s', async (_, damage, message) => {
    const content = await written();
    damage(content);
    const read = openModelDirectory(memoryFiles(content), 'm');
    await expect(read).rejects.toThrow(CheckpointError);
    await expect(read).rejects.toThrow(message);
  });

  it('is refused where it cannot be said whether a file is there', async () => {
    const files = memoryFiles(await written());
    for (const file of ['m/model.safetensors', 'm/drmas_tokenizer.json']) {
      const exists = async (path: string) => {
        if (path === file) throw new Error('EACCES: permission denied');
        return files.exists(path);
      };
      const read = openModelDirectory({ ...files, exists }, 'm');
      await expect(read).rejects.toThrow(CheckpointError);
      await expect(read).rejects.toThrow(`${file}: cannot be read: EACCES`);
    }
  });
});

describe('a model directory of Hugging Face', () => {
  const load = (name: string) => {
    const content = new Map<string, Uint8Array>();
    for (const file of goldenFiles(`models/${name}`))
      content.set(`m/${file}`, readFileSync(goldenPath(`models/${name}/${file}`)));
    const golden = JSON.parse(Buffer.from(content.get('m/golden_model.json') ?? '').toString());
    return { files: memoryFiles(content), content, golden };
  };

  it.each(goldenModels)('%s has the names and shapes of the original', async (name) => {
    const { files, golden } = load(name);
    const read = await openModelDirectory(files, 'm');
    const shapes = Object.fromEntries([...read.tensors].map(([tensor, { shape }]) => [tensor, shape]));
    expect(shapes).toEqual(golden.parameters);
    expect(read.model.config.untiedOutput).toBe(golden.tied ? undefined : true);
    expect(read.tokenizer.vocabSize).toBe(read.model.config.vocabSize);
    expect(read.tokenizer.stopTokens).toEqual(read.model.stopTokens);
  });

  it('reads the description and the exact values', async () => {
    const { files, content } = load('llama-mini');
    const { model, tensors, tokenizer } = await openModelDirectory(files, 'm');
    expect(model).toMatchObject({ architecture: 'llama', stopTokens: [394, 391] });
    expect(model.config).toMatchObject({ width: 32, heads: 4, kvHeads: 1, headDim: 8, context: 512, ropeBase: 500000 });
    expect(model.config.ropeScaling).toMatchObject({ type: 'llama3', factor: 4, originalContext: 64 });
    const shard = Buffer.from(content.get('m/model-00003-of-00003.safetensors') ?? '');
    const head = tensors.get('lm_head.weight');
    // The shard ends with the head's rows.
    const { buffer, byteLength } = head === undefined ? new Float32Array() : await readTensor(head);
    expect(byteLength).toBeGreaterThan(0);
    expect(shard.includes(Buffer.from(buffer))).toBe(true);
    expect(tokenizer.chat([user('Hi')]).slice(0, 2)).toEqual([390, 392]);
  });

  it('keeps its tokenizer when written again', async () => {
    const { files, content, golden } = load('qwen3-mini-bf16');
    const tokenizer = await readTokenizer(files, 'm');
    content.set('copy/config.json', content.get('m/config.json') ?? new Uint8Array());
    await writeTokenizer(files, 'copy', tokenizer);
    expect((await readTokenizer(files, 'copy')).toJSON()).toEqual(tokenizer.toJSON());
    content.set('copy/chat_template.jinja', Buffer.from('{{ messages[0].content }}'));
    const other = await readTokenizer(files, 'copy');
    expect(other.chat([user('2+2')])).toEqual(tokenizer.encode('2+2'));
    await writeTokenizer(files, 'again', other);
    expect(content.get('again/chat_template.jinja')).toBe('{{ messages[0].content }}');
    expect(golden.tied).toBe(true);
  });

  it('may name its special tokens in special_tokens_map.json alone', async () => {
    const { files, content } = load('qwen3-mini-bf16');
    const config = { chat_template: '{{ bos_token }}{{ messages[0].content }}{{ eos_token }}', eos_token: null };
    const map = { bos_token: '<|im_start|>', eos_token: { content: '<|im_end|>' } };
    content.set('m/tokenizer_config.json', Buffer.from(JSON.stringify(config)));
    content.set('m/special_tokens_map.json', Buffer.from(JSON.stringify(map)));
    const tokenizer = await readTokenizer(files, 'm');
    expect(tokenizer.chat([user('2+2')])).toEqual(tokenizer.encode('<|im_start|>2+2<|im_end|>'));
  });

  it('may list further tokens in added_tokens.json, unless tokenizer_config.json does', async () => {
    const { files, content } = load('qwen3-mini-bf16');
    const before = (await readTokenizer(files, 'm')).vocabSize;
    content.set('m/tokenizer_config.json', Buffer.from('{}'));
    content.set('m/added_tokens.json', Buffer.from(JSON.stringify({ '<NEW>': before })));
    const tokenizer = await readTokenizer(files, 'm');
    expect(tokenizer.encode('<NEW>')).toEqual([before]);
    expect(createTokenizer(JSON.parse(JSON.stringify(tokenizer))).encode('<NEW>')).toEqual([before]);
    const config = { added_tokens_decoder: { 0: { content: '<OTHER>' } } };
    content.set('m/tokenizer_config.json', Buffer.from(JSON.stringify(config)));
    const other = await readTokenizer(files, 'm');
    expect(other.encode('<OTHER>')).toEqual([before]);
    expect(other.encode('<NEW>').length).toBeGreaterThan(1);
  });

  it('may have numbers in its tokenizer_config.json that only Python writes', async () => {
    const { files, content } = load('qwen3-mini-bf16');
    const text = '{"model_max_length": Infinity, "a": [-Infinity, NaN], "chat_template": "NaN, Infinity: \\"NaN"}';
    content.set('m/tokenizer_config.json', Buffer.from(text));
    const tokenizer = await readTokenizer(files, 'm');
    expect(tokenizer.decode(tokenizer.chat([user('2')]))).toBe('NaN, Infinity: "NaN');
    content.set('m/tokenizer_config.json', Buffer.from('{"a": +Infinity}'));
    await expect(readTokenizer(files, 'm')).rejects.toThrow('m/tokenizer_config.json: not valid JSON');
    const config = String(content.get('m/config.json')).replace(/"rms_norm_eps": [^,]+/, '"rms_norm_eps": NaN');
    content.set('m/config.json', Buffer.from(config));
    await expect(openModelDirectory(files, 'm')).rejects.toThrow(/m\/config.json: rms_norm_eps: .*expected number/);
  });

  it('may have a template for tools beside its own', async () => {
    const { files, content } = load('qwen3-mini-bf16');
    content.set('m/chat_template.jinja', Buffer.from('PLAIN{{ messages[0].content }}'));
    content.set('m/additional_chat_templates/tool_use.jinja', Buffer.from('<tool_call>{{ tools[0].function.name }}'));
    const tokenizer = await readTokenizer(files, 'm');
    const tools = [{ name: 'f', parameters: {} }];
    expect(tokenizer.decode(tokenizer.chat([user('2+2')]))).toBe('PLAIN2+2');
    expect(tokenizer.decode(tokenizer.chat([user('2+2')], undefined, tools))).toBe('<tool_call>f');
    await writeTokenizer(files, 'copy', tokenizer);
    content.set('copy/config.json', content.get('m/config.json') ?? new Uint8Array());
    const again = await readTokenizer(files, 'copy');
    expect(again.decode(again.chat([user('2+2')], undefined, tools))).toBe('<tool_call>f');
  });
});
