import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryFiles, safetensorsBytes } from '../../../../../test/support/memory-files.js';
import { ArgumentError, CheckpointError } from '../../base/core/errors.js';
import { openSafetensors, readTensor, requireTensor } from './safetensors.js';

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

const open = (bytes: Uint8Array) => openSafetensors(memoryFiles(new Map([['f', bytes]])), 'f');

describe('safetensors', () => {
  it('gives back what was written, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, metadata, async (entries, notes) => {
        const written = safetensorsBytes(entries, notes);
        expect(safetensorsBytes([...entries].reverse(), notes)).toEqual(written);
        const read = await open(written);
        expect(read.tensors.size).toBe(entries.length);
        for (const { name, shape, data } of entries) {
          const tensor = read.tensors.get(name);
          expect(tensor).toMatchObject({ name, dtype: 'F32', shape });
          expect(tensor && (await readTensor(tensor))).toEqual(data);
        }
        expect(read.metadata).toEqual(notes);
      }),
    );
  });

  it('comes in pieces of whole rows that cover each tensor once, whatever their size', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, fc.integer({ min: 1, max: 40 }), async (entries, pieceBytes) => {
        const { tensors: stored } = await open(safetensorsBytes(entries));
        for (const { name, shape, data } of entries) {
          const row = shape.slice(1).reduce((a, b) => a * b, 1);
          const bytes: number[] = [];
          for await (const piece of stored.get(name)?.pieces(pieceBytes) ?? []) {
            expect(piece).toMatchObject({ name, dtype: 'F32', first: bytes.length / 4 });
            expect(piece.bytes.length % (4 * row)).toBe(0);
            expect(piece.bytes.length).toBeLessThanOrEqual(Math.max(pieceBytes, 4 * row));
            bytes.push(...piece.bytes);
          }
          expect(bytes).toEqual([...new Uint8Array(data.buffer)]);
        }
      }),
    );
  });

  it('is read only where it is asked for', async () => {
    const bytes = safetensorsBytes([
      { name: 'a', shape: [2], data: Float32Array.of(1, 2) },
      { name: 'b', shape: [3], data: Float32Array.of(3, 4, 5) },
    ]);
    const files = memoryFiles(new Map([['f', bytes]]));
    const reads: [number, number][] = [];
    const readBytes: typeof files.readBytes = (path, from, length) => {
      reads.push([from, length]);
      return files.readBytes(path, from, length);
    };
    const { tensors: stored } = await openSafetensors({ ...files, readBytes }, 'f');
    const header = bytes.length - 20 - 8;
    expect(reads).toEqual([
      [0, 8],
      [8, header],
    ]);
    const b = stored.get('b');
    expect(b && (await readTensor(b))).toEqual(Float32Array.of(3, 4, 5));
    expect(reads[2]).toEqual([8 + header + 8, 12]);
  });

  it('says which tensor a file lost after it was opened', async () => {
    const content = new Map([['f', safetensorsBytes([{ name: 'a', shape: [2], data: Float32Array.of(1, 2) }])]]);
    const { tensors: stored } = await openSafetensors(memoryFiles(content), 'f');
    const a = requireTensor(stored, { name: 'a', shape: [2] }, 'f');
    content.set('f', (content.get('f') ?? new Uint8Array()).slice(0, -1));
    await expect(readTensor(a)).rejects.toThrow(
      new CheckpointError('f: tensor "a": expected 8 bytes, found 7 (truncated?)'),
    );
    content.delete('f');
    await expect(readTensor(a)).rejects.toThrow(new CheckpointError('f: cannot be read: ENOENT: f'));
  });

  it('lays out the bytes as the format says', () => {
    const bytes = safetensorsBytes([{ name: 'w', shape: [1, 2], data: Float32Array.of(1, -2) }], { format: 'pt' });
    const json = '{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}';
    const padded = json.padEnd(Math.ceil(json.length / 8) * 8);
    expect(bytes.length).toBe(8 + padded.length + 8);
    expect([...bytes.subarray(0, 8)]).toEqual([padded.length, 0, 0, 0, 0, 0, 0, 0]);
    expect(new TextDecoder().decode(bytes.subarray(8, 8 + padded.length))).toBe(padded);
    expect([...bytes.subarray(8 + padded.length)]).toEqual([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
  });

  it('may have null as metadata, as the reference reads it', async () => {
    const bytes = fileWith({ __metadata__: null, a: f32(0, 4, 1) }, 4);
    const { tensors, metadata } = await open(bytes);
    expect([[...tensors.keys()], metadata]).toEqual([['a'], {}]);
  });

  it.each(['F16', 'BF16'] as const)('widens every %s number exactly', async (dtype) => {
    const exponentBits = dtype === 'F16' ? 5 : 8;
    const fractionBits = 15 - exponentBits;
    const bias = 2 ** (exponentBits - 1) - 1;
    const bytes = fileWith({ all: { dtype, shape: [65536], data_offsets: [0, 131072] } }, 131072);
    const data = new DataView(bytes.buffer, bytes.length - 131072);
    for (let bits = 0; bits < 65536; bits++) data.setUint16(2 * bits, bits, true);
    const values = await readTensor(requireTensor((await open(bytes)).tensors, { name: 'all', shape: [65536] }, 'f'));
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
  ])('refuses %s', async (_, bytes, message) => {
    await expect(open(bytes)).rejects.toThrow(CheckpointError);
    await expect(open(bytes)).rejects.toThrow(message);
    await expect(open(bytes)).rejects.toThrow(/^f: /);
  });

  it('refuses a header of more than 100 MB before reading it', async () => {
    const first = new Uint8Array(8);
    new DataView(first.buffer).setUint32(0, 100_000_001, true);
    const files = { ...memoryFiles(new Map([['f', first]])), size: async () => 2 ** 33 };
    await expect(openSafetensors(files, 'f')).rejects.toThrow(
      'f: the header is said to have 100000001 bytes, expected',
    );
  });

  it('answers every damaged file with tensors or a CheckpointError', async () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(tensors, damage, fc.nat(), async (entries, changes, cut) => {
        const intact = safetensorsBytes(entries);
        const bytes = intact.slice(0, intact.length - (cut % 3 === 0 ? cut % intact.length : 0));
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        try {
          for (const tensor of (await open(bytes)).tensors.values()) {
            expect((await readTensor(tensor)).length).toBe(tensor.shape.reduce((a, b) => a * b, 1));
          }
        } catch (error) {
          expect(error).toBeInstanceOf(CheckpointError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('refuses every truncation', async () => {
    const bytes = safetensorsBytes([
      { name: 'a', shape: [2], data: Float32Array.of(1, 2) },
      { name: 'b', shape: [], data: Float32Array.of(3) },
    ]);
    for (let length = 0; length < bytes.length; length++) {
      await expect(open(bytes.subarray(0, length))).rejects.toThrow(CheckpointError);
    }
  });

  it('refuses to write what could not be read', () => {
    const a = { name: 'a', shape: [1], data: Float32Array.of(1) };
    expect(() => safetensorsBytes([a, a])).toThrow(ArgumentError);
    expect(() => safetensorsBytes([{ ...a, name: '__metadata__' }])).toThrow(ArgumentError);
    expect(() => safetensorsBytes([{ ...a, shape: [2] }])).toThrow('shape [2] does not fit 1 values');
  });

  it('hands out a tensor only with the expected shape', async () => {
    const bytes = safetensorsBytes([{ name: 'a', shape: [2, 1], data: Float32Array.of(1, 2) }]);
    const { tensors: stored } = await open(bytes);
    const get = (name: string, ...shape: number[]) => requireTensor(stored, { name, shape }, 'f');
    expect(await readTensor(get('a', 2, 1))).toEqual(Float32Array.of(1, 2));
    expect(() => get('b', 1)).toThrow(new CheckpointError('f: tensor "b" [1] is missing'));
    expect(() => get('a', 2)).toThrow('f: tensor "a" has shape [2, 1], expected [2]');
    expect(() => get('a', 1, 2)).toThrow('f: tensor "a" has shape [2, 1], expected [1, 2]');
  });
});
