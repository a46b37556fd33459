/**
 * Writes a decoder as a GGUF file of float32 tensors for llama.cpp
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): a header of typed key/value pairs, the tensors' names,
 * sizes and offsets, then their data, each aligned to 32 bytes.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DecoderConfig } from '../../src/contract/architecture.js';
import { openModelDirectory } from '../../src/model/formats/hugging-face-directory.js';
import { readTensor } from '../../src/model/formats/safetensors.js';
import type { NamedTensor } from '../../src/model/formats/tensor.js';
import { projections } from '../../src/model/formats/tensor-names.js';
import { nodeFiles } from '../../src/platform/node-files.js';

const VERSION = 3;
const ALIGNMENT = 32;
const TYPE = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 } as const;
const F32 = 0;

type Value =
  | { readonly type: 'uint32' | 'float32'; readonly value: number }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s' | 'float32s'; readonly value: readonly number[] };

/** A growing buffer of little-endian values. */
class Writer {
  #bytes = new Uint8Array(1 << 16);
  #length = 0;

  get length(): number {
    return this.#length;
  }
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
  raw(data: Uint8Array): void {
    this.#room(data.length);
    this.#bytes.set(data, this.#length);
    this.#length += data.length;
  }
  uint32(value: number): void {
    this.#number(4, (view, at) => view.setUint32(at, value, true));
  }
  int32(value: number): void {
    this.#number(4, (view, at) => view.setInt32(at, value, true));
  }
  uint64(value: number): void {
    this.#number(8, (view, at) => view.setBigUint64(at, BigInt(value), true));
  }
  float32(value: number): void {
    this.#number(4, (view, at) => view.setFloat32(at, value, true));
  }
  string(value: string): void {
    const encoded = new TextEncoder().encode(value);
    this.uint64(encoded.length);
    this.raw(encoded);
  }
  align(): void {
    const rest = this.#length % ALIGNMENT;
    if (rest > 0) this.raw(new Uint8Array(ALIGNMENT - rest));
  }
  #number(size: number, write: (view: DataView, at: number) => void): void {
    this.#room(size);
    write(new DataView(this.#bytes.buffer), this.#length);
    this.#length += size;
  }
  #room(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#length + more));
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}

function writeValue(writer: Writer, value: Value): void {
  switch (value.type) {
    case 'uint32':
    case 'float32':
      writer.uint32(TYPE[value.type]);
      writer[value.type](value.value);
      return;
    case 'string':
      writer.uint32(TYPE.string);
      writer.string(value.value);
      return;
    default: {
      const element = value.type.slice(0, -1) as 'string' | 'int32' | 'float32';
      writer.uint32(TYPE.array);
      writer.uint32(TYPE[element]);
      writer.uint64(value.value.length);
      for (const one of value.value) {
        if (typeof one === 'string') writer.string(one);
        else writer[element as 'int32' | 'float32'](one);
      }
    }
  }
}

export function encodeGguf(metadata: Readonly<Record<string, Value>>, tensors: readonly NamedTensor[]): Uint8Array {
  const writer = new Writer();
  writer.raw(new TextEncoder().encode('GGUF'));
  writer.uint32(VERSION);
  writer.uint64(tensors.length);
  writer.uint64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    writer.string(key);
    writeValue(writer, value);
  }
  let offset = 0;
  for (const { name, shape, data } of tensors) {
    writer.string(name);
    writer.uint32(shape.length);
    for (const size of [...shape].reverse()) writer.uint64(size); // the fastest-moving dimension first
    writer.uint32(F32);
    writer.uint64(offset);
    offset += Math.ceil(data.byteLength / ALIGNMENT) * ALIGNMENT;
  }
  writer.align();
  for (const { data } of tensors) {
    writer.raw(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    writer.align();
  }
  return writer.bytes;
}

/**
 * The weights under llama.cpp's names. Its Qwen2 rotates halves as this engine does and adds biases, which are zero
 * here.
 */
export function ggufOf(config: DecoderConfig, tensors: readonly NamedTensor[]): Uint8Array {
  const { width, heads, kvHeads, headDim, layers, feedForward, context, vocabSize, normEpsilon, ropeBase } = config;
  const renamed: NamedTensor[] = [];
  for (const { name, shape, data } of tensors) renamed.push({ name: ggufName(name), shape, data });
  for (let layer = 0; layer < layers; layer++) {
    for (const { name, outputs } of projections(config, layer).qkv)
      renamed.push({ name: ggufName(`${name}.bias`), shape: [outputs], data: new Float32Array(outputs) });
  }
  const count = (value: number): Value => ({ type: 'uint32', value });
  const metadata: Record<string, Value> = {
    'general.architecture': { type: 'string', value: 'qwen2' },
    'general.file_type': count(F32),
    'qwen2.block_count': count(layers),
    'qwen2.context_length': count(context),
    'qwen2.embedding_length': count(width),
    'qwen2.feed_forward_length': count(feedForward),
    'qwen2.attention.head_count': count(heads),
    'qwen2.attention.head_count_kv': count(kvHeads),
    'qwen2.attention.key_length': count(headDim),
    'qwen2.attention.value_length': count(headDim),
    'qwen2.attention.layer_norm_rms_epsilon': { type: 'float32', value: normEpsilon },
    'qwen2.rope.freq_base': { type: 'float32', value: ropeBase },
    'qwen2.vocab_size': count(vocabSize),
    // The benchmark exchanges token ids; their texts have no meaning, but the format requires some.
    'tokenizer.ggml.model': { type: 'string', value: 'gpt2' },
    'tokenizer.ggml.pre': { type: 'string', value: 'qwen2' },
    'tokenizer.ggml.tokens': { type: 'strings', value: Array.from({ length: vocabSize }, (_, id) => `<${id}>`) },
    'tokenizer.ggml.merges': { type: 'strings', value: ['< 1'] },
    'tokenizer.ggml.bos_token_id': count(2),
    'tokenizer.ggml.eos_token_id': count(1),
  };
  return encodeGguf(metadata, renamed);
}

/** Writes a model directory of this package as one file of llama.cpp's format, beside it. */
export async function ggufBeside(directory: string): Promise<string> {
  const stored = await openModelDirectory(nodeFiles, directory);
  const tensors: NamedTensor[] = [];
  for (const tensor of stored.tensors.values()) tensors.push({ ...tensor, data: await readTensor(tensor) });
  const path = join(directory, 'model.gguf');
  await writeFile(path, ggufOf(stored.model.config, tensors));
  return path;
}

const parts: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

/** llama.cpp's name of a tensor of the Llama and Qwen2 families. */
export function ggufName(name: string): string {
  const [, layer, module = '', kind = ''] = /^(?:model\.layers\.(\d+)\.)?(.+)\.(weight|bias)$/.exec(name) ?? [];
  const part = parts[module];
  if (part === undefined) throw new Error(`tensor "${name}" has no name in a GGUF file`);
  return layer === undefined ? `${part}.${kind}` : `blk.${layer}.${part}.${kind}`;
}
