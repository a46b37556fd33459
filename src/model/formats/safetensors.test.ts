import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArgumentError, CheckpointError } from '../../core/errors.js';
import { decodeSafetensors, encodeSafetensors, requireTensor, safetensorsMetadata } from './safetensors.js';

const shape = fc.array(fc.nat(4), { maxLength: 3 });
const tensors = fc.uniqueArray(
  fc
    .record({ name: fc.string({ unit: 'grapheme' }).filter((name) => name !== '__metadata__'), shape })
    .chain((entry) => {
      const length = entry.shape.reduce((a, b) => a * b, 1);
      return fc
        .array(fc.float({ noNaN: true }), { minLength: length, maxLength: length })
        .map((values) => ({ ...entry, data: Float32Array.from(values) }));
    }),
  { selector: ({ name }) => name, maxLength: 6 },
);
const metadata = fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 });

/** A file with a header of our making and `dataBytes` bytes of data. */
function fileWith(header: unknown, dataBytes: number): Uint8Array {
  const json = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  bytes[0] = json.length & 0xff;
  bytes[1] = json.length >>> 8;
  bytes.set(json, 8);
  return bytes;
}
const f32 = (start: number, end: number, ...size: number[]) => ({
  dtype: 'F32',
  shape: size,
  data_offsets: [start, end],
});

describe('safetensors', () => {
  it('gives back what was written, in any order and at any alignment', () => {
    fc.assert(
      fc.property(tensors, metadata, fc.nat(3), (entries, notes, offset) => {
        const written = encodeSafetensors(entries, notes);
        expect(encodeSafetensors([...entries].reverse(), notes)).toEqual(written);
        const bytes = new Uint8Array(offset + written.length).subarray(offset);
        bytes.set(written);
        const read = decodeSafetensors(bytes);
        expect(read.size).toBe(entries.length);
        for (const { name, shape, data } of entries) expect(read.get(name)).toEqual({ dtype: 'F32', shape, data });
        expect(safetensorsMetadata(bytes)).toEqual(notes);
      }),
    );
  });

  it('lays out the bytes as the format says', () => {
    const bytes = encodeSafetensors([{ name: 'w', shape: [1, 2], data: Float32Array.of(1, -2) }], { format: 'pt' });
    const json = '{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}';
    const padded = json.padEnd(Math.ceil(json.length / 8) * 8);
    expect(bytes.length).toBe(8 + padded.length + 8);
    expect([...bytes.subarray(0, 8)]).toEqual([padded.length, 0, 0, 0, 0, 0, 0, 0]);
    expect(new TextDecoder().decode(bytes.subarray(8, 8 + padded.length))).toBe(padded);
    expect([...bytes.subarray(8 + padded.length)]).toEqual([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
  });

  it.each(['F16', 'BF16'] as const)('widens every %s number exactly', (dtype) => {
    const exponentBits = dtype === 'F16' ? 5 : 8;
    const fractionBits = 15 - exponentBits;
    const bias = 2 ** (exponentBits - 1) - 1;
    const bytes = fileWith({ all: { dtype, shape: [65536], data_offsets: [0, 131072] } }, 131072);
    const data = new DataView(bytes.buffer, bytes.length - 131072);
    for (let bits = 0; bits < 65536; bits++) data.setUint16(2 * bits, bits, true);
    const values = decodeSafetensors(bytes).get('all')?.data ?? [];
    let wrong = 0;
    for (let bits = 0; bits < 65536; bits++) {
      const exponent = (bits & 0x7fff) >>> fractionBits;
      const fraction = (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits;
      const sign = bits >= 0x8000 ? -1 : 1;
      let expected = sign * (1 + fraction) * 2 ** (exponent - bias);
      if (exponent === 0) expected = sign * fraction * 2 ** (1 - bias);
      if (exponent === 2 ** exponentBits - 1) expected = fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
      if (!Object.is(values[bits], expected)) wrong++;
    }
    expect(wrong).toBe(0);
  });

  it.each<[string, Uint8Array, string]>([
    ['nothing', new Uint8Array(3), 'expected at least 8 bytes'],
    ['a header longer than the file', Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 0, 0x7b), 'said to have 9 bytes'],
    ['an absurd header length', new Uint8Array(16).fill(255), 'said to have 18446744073709551615 bytes'],
    ['no JSON', fileWith('{"a":', 0), 'expected a JSON object as header'],
    ['broken UTF-8', Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0, 0xff), 'expected a JSON object as header'],
    ['an array', fileWith([], 0), 'it is not an object'],
    [
      'a name twice',
      fileWith('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}, "\\u0061" : {}}', 4),
      'the name "a" comes twice',
    ],
    ['no object', fileWith({ a: 3 }, 0), 'tensor "a": expected an object'],
    [
      'an unknown dtype',
      fileWith({ a: { ...f32(0, 4, 1), dtype: 'I32' } }, 4),
      'tensor "a": expected one of the dtypes',
    ],
    ['an inherited dtype', fileWith({ a: { ...f32(0, 4, 1), dtype: 'toString' } }, 4), 'found "toString"'],
    ['a negative size', fileWith({ a: f32(0, 4, -1) }, 4), 'tensor "a": expected a shape of whole numbers'],
    ['an endless size', fileWith({ a: f32(0, 4, 2 ** 40, 2 ** 40) }, 4), 'tensor "a": F32'],
    ['one offset', fileWith({ a: { ...f32(0, 4, 1), data_offsets: [0] } }, 4), 'expected two whole numbers'],
    ['offsets backwards', fileWith({ a: f32(8, 4, 1) }, 8), 'data_offsets give -4'],
    ['a wrong size', fileWith({ a: f32(0, 8, 1) }, 8), 'F32 [1] needs 4 bytes, data_offsets give 8'],
    [
      'an overlap',
      fileWith({ a: f32(0, 8, 2), b: f32(4, 8, 1) }, 8),
      'tensor "b": its data starts at byte 4 and overlaps "a"',
    ],
    ['a gap', fileWith({ a: f32(0, 4, 1), b: f32(8, 12, 1) }, 12), 'leaves a gap after "a", expected 4'],
    ['missing data', fileWith({ a: f32(0, 8, 2) }, 4), 'tensor "a": its data ends at byte 8, the file at 4'],
    ['data left over', fileWith({ a: f32(0, 4, 1) }, 8), 'expected the data to end at byte 4, found 8'],
    ['metadata that is no text', fileWith({ __metadata__: { step: 3 } }, 0), '__metadata__ "step": expected a string'],
  ])('refuses %s', (_, bytes, message) => {
    expect(() => decodeSafetensors(bytes, 'model.safetensors')).toThrow(CheckpointError);
    expect(() => decodeSafetensors(bytes, 'model.safetensors')).toThrow(message);
    expect(() => decodeSafetensors(bytes, 'model.safetensors')).toThrow('model.safetensors: ');
  });

  it('answers every damaged file with tensors or a CheckpointError', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(tensors, damage, fc.nat(), (entries, changes, cut) => {
        const intact = encodeSafetensors(entries);
        const bytes = intact.slice(0, intact.length - (cut % 3 === 0 ? cut % intact.length : 0));
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        try {
          for (const { shape, data } of decodeSafetensors(bytes).values()) {
            expect(data.length).toBe(shape.reduce((a, b) => a * b, 1));
          }
        } catch (error) {
          expect(error).toBeInstanceOf(CheckpointError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('refuses every truncation', () => {
    const bytes = encodeSafetensors([
      { name: 'a', shape: [2], data: Float32Array.of(1, 2) },
      { name: 'b', shape: [], data: Float32Array.of(3) },
    ]);
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeSafetensors(bytes.subarray(0, length))).toThrow(CheckpointError);
    }
  });

  it('refuses to write what could not be read', () => {
    const a = { name: 'a', shape: [1], data: Float32Array.of(1) };
    expect(() => encodeSafetensors([a, a])).toThrow(ArgumentError);
    expect(() => encodeSafetensors([{ ...a, name: '__metadata__' }])).toThrow(ArgumentError);
    expect(() => encodeSafetensors([{ ...a, shape: [2] }])).toThrow('shape [2] does not fit 1 values');
  });

  it('hands out a tensor only with the expected shape', () => {
    const read = decodeSafetensors(encodeSafetensors([{ name: 'a', shape: [2, 1], data: Float32Array.of(1, 2) }]));
    const get = (name: string, ...shape: number[]) => requireTensor(read, { name, shape }, 'f').data;
    expect(get('a', 2, 1)).toEqual(Float32Array.of(1, 2));
    expect(() => get('b', 1)).toThrow(new CheckpointError('f: tensor "b" [1] is missing'));
    expect(() => get('a', 2)).toThrow('f: tensor "a" has shape [2, 1], expected [2]');
    expect(() => get('a', 1, 2)).toThrow('f: tensor "a" has shape [2, 1], expected [1, 2]');
  });
});
