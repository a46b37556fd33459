import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ggufModels, goldenModelFiles } from '../../../../../../test/goldens.js';
import { memoryFiles } from '../../../../../../test/support/memory-files.js';
import { CheckpointError, TokenizerError } from '../../../base/core/errors.js';
import type { Files } from '../../../base/core/files.js';
import { assistant, user } from '../../../base/core/message.js';
import type { DecoderConfig } from '../../../contract/architecture.js';
import { ropeFrequencies } from '../../decoder/weights/rotary-table.js';
import { createTokenizer } from '../../tokenizers/create-tokenizer.js';
import { openModelDirectory } from '../hugging-face-directory.js';
import { readTensor, type StoredTensor } from '../safetensors.js';
import { openStoredModel } from '../stored-model.js';
import { expectedTensors } from '../tensor-names.js';
import { decoderMetadata, decoderTensors } from './gguf-decoder.js';
import { encodeGguf, type GgufMetadata, type GgufTensor } from './gguf-file.js';
import { ggufOf } from './gguf-model.js';

const wholeFile = async (parts: AsyncIterable<Uint8Array>): Promise<Uint8Array> => {
  const all: Uint8Array[] = [];
  for await (const part of parts) all.push(Uint8Array.from(part));
  return Uint8Array.from(Buffer.concat(all));
};
const open = (file: Uint8Array, name = 'm.gguf') => openStoredModel(memoryFiles(new Map([[name, file]])), name);

describe('a model that was exported to GGUF', () => {
  it.each(ggufModels)('is read back with the same tensors, positions and tokenizer: %s', async (name) => {
    const original = await openModelDirectory(memoryFiles(goldenModelFiles(name)), 'm');
    const { config } = original.model;
    const parts = ggufOf({ config, tokenizer: original.tokenizer, name }, original.tensors.values());
    const read = await open(await wholeFile(parts));
    const { ropeScaling: _, ...sizes } = config;
    expect(read.model).toMatchObject({ architecture: original.model.architecture, config: sizes });
    expect(ropeFrequencies(read.model.config)).toEqual(ropeFrequencies(config));
    expect([...read.tensors.keys()].sort()).toEqual([...original.tensors.keys()].sort());
    for (const [key, tensor] of original.tensors)
      expect(await readTensor(read.tensors.get(key) as StoredTensor), key).toEqual(await readTensor(tensor));
    expect(read.tokenizer.stopTokens).toEqual(expect.arrayContaining([...original.tokenizer.stopTokens]));
    expect(read.tokenizer.stopTokens[0]).toBe(original.tokenizer.stopTokens[0]);
    const chat = [user('Hello 123, what is it?'), assistant('It.'), user('  Why?\n')];
    expect(read.tokenizer.chat(chat)).toEqual(original.tokenizer.chat(chat));
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        expect(read.tokenizer.encode(text)).toEqual(original.tokenizer.encode(text));
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    { type: 'bytes' },
    {
      type: 'symbols',
      symbols: ['<end>', '<ask>', '0', '1', '+', '\n'],
      stop: '<end>',
      endOfUser: '<ask>',
      endOfAssistant: '<end>',
    },
  ])('keeps the ids of a tokenizer of drmas: $type', async (spec) => {
    const tokenizer = createTokenizer(spec);
    const config = { ...small, vocabSize: tokenizer.vocabSize };
    const read = await open(await wholeFile(ggufOf({ config, tokenizer, name: 'x' }, zeros(config))));
    for (const text of ['1+0\n', '0', '11']) expect(read.tokenizer.encode(text)).toEqual(tokenizer.encode(text));
    const chat = [user('1+1'), assistant('10'), user('0')];
    expect(read.tokenizer.chat(chat)).toEqual(tokenizer.chat(chat));
  });
});

const small: DecoderConfig = {
  vocabSize: 6,
  width: 8,
  layers: 1,
  heads: 2,
  kvHeads: 1,
  headDim: 4,
  feedForward: 12,
  context: 16,
  ropeBase: 10_000,
  normEpsilon: 1e-6,
};

function* zeros(config: DecoderConfig): Generator<StoredTensor> {
  for (const { name, shape } of expectedTensors(config)) {
    const bytes = new Uint8Array(4 * shape.reduce((a, b) => a * b, 1));
    yield {
      ...({ name, shape, dtype: 'F32' } as const),
      async *pieces() {
        yield { name, dtype: 'F32', first: 0, bytes };
      },
    };
  }
}

const vocabulary: GgufMetadata = {
  'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
  'tokenizer.ggml.pre': { type: 'string', value: 'smollm' },
  'tokenizer.ggml.tokens': { type: 'strings', value: ['a', 'b', 'ab', '<|im_end|>', '1', '2'] },
  'tokenizer.ggml.token_type': { type: 'int32s', value: [1, 1, 1, 3, 1, 1] },
  'tokenizer.ggml.merges': { type: 'strings', value: ['a b'] },
};
type Changes = Readonly<Record<string, GgufMetadata[string] | undefined>>;

/** A file of a tiny Llama model with other metadata, without those that are undefined. */
function fileWith(changes: Changes = {}, tensors: readonly GgufTensor[] = decoderTensors(small, zeros(small))) {
  const all = Object.entries({ ...decoderMetadata(small), ...vocabulary, ...changes });
  const metadata = Object.fromEntries(all.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  return wholeFile(encodeGguf(metadata, tensors));
}
const text = (value: string) => ({ type: 'string', value }) as const;
const count = (value: number) => ({ type: 'uint32', value }) as const;
const real = (value: number) => ({ type: 'float32', value }) as const;

describe('a GGUF file', () => {
  it('has defaults for what old files leave out', async () => {
    const absent = ['llama.attention.key_length', 'llama.attention.value_length', 'llama.rope.dimension_count'];
    const more = ['llama.rope.freq_base', 'llama.vocab_size', 'tokenizer.ggml.token_type'];
    const file = await fileWith(Object.fromEntries([...absent, ...more].map((key) => [key, undefined])));
    expect((await open(file)).model.config).toEqual(small);
  });

  it.each<[string, Changes]>([
    ['with its kind', { 'llama.rope.scaling.type': text('linear'), 'llama.rope.scaling.factor': real(4) }],
    ['alone', { 'llama.rope.scaling.factor': real(4) }],
    ['under its old name', { 'llama.rope.scale_linear': real(4) }],
    ['under both names', { 'llama.rope.scaling.factor': real(4), 'llama.rope.scale_linear': real(2) }],
  ])('stretches positions by a factor %s', async (_, changes) => {
    const { config } = (await open(await fileWith(changes))).model;
    expect(config).toEqual({ ...small, ropeScaling: { type: 'linear', factor: 4 } });
  });

  it('is refused if a factor and a tensor stretch positions, unless the tensor changes none', async () => {
    const scaling = { type: 'llama3', factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4 } as const;
    const config = { ...small, ropeScaling: { ...scaling, originalContext: 64 } };
    const changes = { 'llama.rope.scaling.factor': real(4) };
    await expect(open(await fileWith(changes, decoderTensors(config, zeros(small))))).rejects.toThrow(
      /stretches positions twice, by llama.rope.scaling.factor and by the tensor "rope_freqs.weight"/,
    );
    const ones = { ...config, ropeScaling: { ...config.ropeScaling, factor: 1 } };
    const { model } = await open(await fileWith(changes, decoderTensors(ones, zeros(small))));
    expect(model.config.ropeScaling).toEqual({ type: 'linear', factor: 4 });
  });

  it('stretches nothing by a factor of 0, or of another kind than none says', async () => {
    for (const changes of [
      { 'llama.rope.scale_linear': real(0) },
      { 'llama.rope.scaling.type': text('none'), 'llama.rope.scaling.factor': real(4) },
    ])
      expect((await open(await fileWith(changes))).model.config).toEqual(small);
  });

  it('has the whole text of a token that begins with a byte order mark', async () => {
    const tokens = { type: 'strings', value: ['a', 'b', 'ab', '<|im_end|>', '\ufeff', '\ufeffx'] } as const;
    const types = { type: 'int32s', value: [1, 1, 1, 3, 4, 4] } as const;
    const file = await fileWith({ 'tokenizer.ggml.tokens': tokens, 'tokenizer.ggml.token_type': types });
    expect((await open(file)).tokenizer.encode('a\ufeffxb\ufeff')).toEqual([0, 5, 1, 4]);
  });

  it('ends responses with the tokens that llama.cpp ends them with, and reads single digits', async () => {
    const { tokenizer } = await open(await fileWith());
    expect(tokenizer.stopTokens).toEqual([3]);
    expect(tokenizer.encode('ab12')).toEqual([2, 4, 5]);
  });

  it.each([
    ['smaug-bpe', 'llama-bpe'], // all files of SmolLM3
    ['falcon3', 'llama-bpe'],
    ['mellum', 'gpt-2'],
  ])('splits texts named %s as %s', async (name, known) => {
    const tokenizers = [name, known].map(async (pre) => {
      const { tokenizer } = await open(await fileWith({ 'tokenizer.ggml.pre': text(pre) }));
      return { ...(tokenizer.toJSON() as object) };
    });
    const [one, other] = await Promise.all(tokenizers);
    expect(one).toEqual(other);
  });

  it('may have tokens of type unused twice', async () => {
    const tokens = { type: 'strings', value: ['a', 'b', 'ab', '<|im_end|>', '[PAD]', '[PAD]'] } as const;
    const types = { type: 'int32s', value: [1, 1, 1, 3, 5, 5] } as const;
    const file = await fileWith({ 'tokenizer.ggml.tokens': tokens, 'tokenizer.ggml.token_type': types });
    const { tokenizer } = await open(file);
    expect(tokenizer.encode('aab<|im_end|>')).toEqual([0, 2, 3]);
    expect(tokenizer.decode([0, 4, 5, 2])).toBe('aab');
  });

  it("gives special tokens their ids in the vocabulary, where Python's tokenizers looks for them", async () => {
    const { tokenizer } = await open(await fileWith());
    expect(tokenizer.toJSON()).toMatchObject({ tokenizer: { model: { vocab: { a: 0, '<|im_end|>': 3, '2': 5 } } } });
  });

  it('is known by its first bytes if it has no extension', async () => {
    expect((await open(await fileWith(), 'sha256-1234')).model.architecture).toBe('llama');
  });

  it.each<[string, Changes, string]>([
    [
      'another architecture',
      { 'general.architecture': text('gemma3') },
      'text models of Gemma 3 are read, and not as GGUF files, expected one of llama, qwen2, qwen3, smollm3',
    ],
    ['a mixture of experts', { 'llama.expert_count': count(8) }, 'mixtures of experts are not read'],
    ['a part of a model', { 'split.count': count(3) }, 'split into 3 files'],
    ['another stretching', { 'llama.rope.scaling.type': text('yarn') }, '"yarn" is not supported'],
    ['heads rotated in part', { 'llama.rope.dimension_count': count(2) }, 'llama.rope.dimension_count: expected 4'],
    ['no layers', { 'llama.block_count': undefined }, 'llama.block_count: expected a whole number'],
    ['too many layers', { 'llama.block_count': count(20_000) }, 'from 1 to 10000, found 20000'],
    ['heads that do not divide', { 'llama.attention.head_count_kv': count(3) }, 'cannot share 3'],
    ['a missing tensor', { 'llama.block_count': count(2) }, '"blk.1.'],
    ['an odd alignment', { 'general.alignment': text('x') }, 'general.alignment'],
  ])('is refused for %s', async (_, changes, message) => {
    const opened = open(await fileWith(changes));
    await expect(opened).rejects.toThrow(CheckpointError);
    await expect(opened).rejects.toThrow(message);
  });

  it.each<[string, Changes, string]>([
    ['SentencePiece', { 'tokenizer.ggml.model': text('llama') }, 'tokenizer.ggml.model "llama" is not supported'],
    [
      'another way to split',
      { 'tokenizer.ggml.pre': text('tekken') },
      '"tekken" is not supported, expected one of gpt-2',
    ],
    ['no merges', { 'tokenizer.ggml.merges': undefined }, 'tokenizer.ggml.merges: expected a list of strings'],
    ['a token twice', { 'tokenizer.ggml.tokens': { type: 'strings', value: ['a', 'b', 'a'] } }, '"a" comes twice'],
  ])('is refused for its tokenizer: %s', async (_, changes, message) => {
    const opened = open(await fileWith(changes));
    await expect(opened).rejects.toThrow(TokenizerError);
    await expect(opened).rejects.toThrow(message);
  });

  it('is refused for tensors that the model has no place for', async () => {
    const stray = { name: 'blk.0.attn_sinks.weight', shape: [2], read: async () => new Float32Array(2) };
    const opened = open(await fileWith({}, [...decoderTensors(small, zeros(small)), stray]));
    await expect(opened).rejects.toThrow('"blk.0.attn_sinks.weight" has no place in this llama model');
  });

  it('is refused for numbers in a format that is not read', async () => {
    const file = await fileWith();
    const name = Buffer.from('token_embd.weight');
    const at = Buffer.from(file).indexOf(name) + name.length + 4 + 16;
    new DataView(file.buffer).setUint32(at, 10, true);
    await expect(open(file)).rejects.toThrow(
      'its numbers are in the format Q2_K, which is not read; expected one of F32',
    );
  });

  it.each<[string, (view: DataView) => void, string]>([
    ['big-endian', (view) => view.setUint32(4, 3, false), 'big-endian'],
    ['of version 1', (view) => view.setUint32(4, 1, true), 'version 1 of GGUF is not read'],
    ['of another kind', (view) => view.setUint32(0, 0), 'expected a GGUF file, which begins with "GGUF"'],
  ])('is refused when it is %s', async (_, change, message) => {
    const file = await fileWith();
    change(new DataView(file.buffer));
    await expect(open(file)).rejects.toThrow(message);
  });

  it('is refused wherever it is cut off', async () => {
    const file = await fileWith();
    await fc.assert(
      fc.asyncProperty(fc.nat(file.length - 33), async (length) => {
        const opened = open(file.slice(0, length));
        await expect(opened).rejects.toThrow(CheckpointError);
        if (length > 4) await expect(opened).rejects.toThrow('truncated?');
      }),
      { numRuns: 300 },
    );
  });

  it('is refused if it becomes shorter while its header is read', async () => {
    const content = new Map([['m.gguf', Uint8Array.from(Buffer.from('GGUF\x03\0\0\0'))]]);
    const files = memoryFiles(content);
    let reads = 0;
    const shrunk: Files = {
      ...files,
      size: async () => 1e7,
      readBytes: async (...range) => {
        if (++reads > 5) throw new Error('read again and again');
        return files.readBytes(...range);
      },
    };
    const opened = openStoredModel(shrunk, 'm.gguf');
    await expect(opened).rejects.toThrow(CheckpointError);
    await expect(opened).rejects.toThrow(`m.gguf: expected ${2 ** 20} bytes, found 8 (truncated?)`);
  });

  it('is refused for a weight that is no number', async () => {
    const tensors = decoderTensors(small, zeros(small)).map((tensor) => ({
      ...tensor,
      read: async () => (await tensor.read()).fill(tensor.name === 'output_norm.weight' ? Number.NaN : 0),
    }));
    const { tensors: read } = await open(await fileWith({}, tensors));
    await expect(readTensor(read.get('model.norm.weight') as StoredTensor)).rejects.toThrow('expected finite numbers');
  });
});
