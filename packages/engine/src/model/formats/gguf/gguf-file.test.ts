import { describe, expect, it } from 'vitest';
import { encodeGguf, type GgufMetadata, type GgufTensor } from './gguf-file.js';
import { ggufName } from './gguf-names.js';

async function encoded(metadata: GgufMetadata, tensors: readonly GgufTensor[]): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of encodeGguf(metadata, tensors)) parts.push(Uint8Array.from(part));
  return Uint8Array.from(Buffer.concat(parts));
}
const tensor = (name: string, shape: number[], ...data: number[]): GgufTensor => ({
  name,
  shape,
  read: async () => Float32Array.from(data),
});

describe('GGUF', () => {
  it('is a header of pairs, then tensors at offsets that are multiples of 32', async () => {
    const tensors = [tensor('a', [2, 3], 1, 2, 3, 4, 5, 6), tensor('b', [1], 7)];
    const bytes = await encoded({ key: { type: 'uint32', value: 9 } }, tensors);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    expect(new TextDecoder().decode(bytes.subarray(0, 4))).toBe('GGUF');
    expect([view.getUint32(4, true), view.getBigUint64(8, true), view.getBigUint64(16, true)]).toEqual([3, 2n, 1n]);
    expect(new TextDecoder().decode(bytes.subarray(32, 35))).toBe('key');
    expect([view.getUint32(35, true), view.getUint32(39, true)]).toEqual([4, 9]);
    // First tensor: its name, two sizes with the last dimension first, float32, offset 0.
    const first = 43 + 8 + 1;
    expect(view.getUint32(first, true)).toBe(2);
    expect([view.getBigUint64(first + 4, true), view.getBigUint64(first + 12, true)]).toEqual([3n, 2n]);
    expect([view.getUint32(first + 20, true), view.getBigUint64(first + 24, true)]).toEqual([0, 0n]);
    const second = first + 32 + 8 + 1;
    expect(view.getBigUint64(second + 16, true)).toBe(32n);
    const data = Math.ceil((second + 24) / 32) * 32;
    expect(bytes.length).toBe(data + 64);
    expect([view.getFloat32(data + 20, true), view.getFloat32(data + 32, true)]).toEqual([6, 7]);
  });

  it("has llama.cpp's names", () => {
    expect(ggufName('model.embed_tokens.weight')).toBe('token_embd.weight');
    expect(ggufName('model.layers.11.self_attn.q_proj.bias')).toBe('blk.11.attn_q.bias');
    expect(() => ggufName('model.layers.0.self_attn.z_norm.weight')).toThrow('z_norm');
  });
});
