import { PassThrough, Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BackendError } from '../errors.js';
import { type Frame, type FrameHeader, FrameReader, type NumberArray, writeFrame } from './frames.js';

const bytesOf = (header: FrameHeader, arrays: Readonly<Record<string, NumberArray>>): Buffer => {
  const stream = new PassThrough({ highWaterMark: 2 ** 20 });
  writeFrame(stream, header, arrays);
  return stream.read() as Buffer;
};

/** Splits bytes at some places and reads them part by part. */
function read(bytes: Buffer, cuts: readonly number[]): Frame[] {
  const reader = new FrameReader();
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).flatMap((end, i) => reader.take(bytes.subarray(places[i], end)));
}

const arrays = fc.dictionary(
  fc.stringMatching(/^[a-z]{1,6}$/),
  fc.oneof(
    fc.float32Array({ maxLength: 9 }),
    fc.int32Array({ maxLength: 9 }),
    fc.uint8Array({ maxLength: 9 }),
    fc.float64Array({ maxLength: 9 }),
  ) as fc.Arbitrary<NumberArray>,
  { maxKeys: 4, noNullPrototype: true },
);
const cuts = fc.array(fc.nat(500), { maxLength: 6 });

describe('frames', () => {
  it('come out as they went in, however the pipe cuts them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(arrays, fc.string()), { maxLength: 3 }), cuts, (sent, places) => {
        const bytes = Buffer.concat(sent.map(([some, text]) => bytesOf({ type: 'call', text }, some)));
        const frames = read(bytes, places);
        expect(frames.map(({ header }) => header)).toEqual(sent.map(([, text]) => ({ type: 'call', text })));
        expect(frames.map((frame) => frame.arrays)).toEqual(sent.map(([some]) => some));
      }),
    );
  });

  it('that are damaged end in one error, or in frames', () => {
    fc.assert(
      fc.property(arrays, fc.nat(), fc.integer({ min: 1, max: 255 }), cuts, (some, place, change, places) => {
        const bytes = bytesOf({ type: 'answer', id: 1 }, some);
        bytes[place % bytes.length] = (bytes[place % bytes.length] as number) ^ change;
        try {
          for (const { header } of read(bytes, places)) expect(typeof header.type).toBe('string');
        } catch (error) {
          expect(error).toBeInstanceOf(BackendError);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('carry arrays of 4 GiB and more', () => {
    const heads: Buffer[] = [];
    let size = 0;
    const sink = new Writable({
      writev(chunks, done) {
        heads.push(chunks[0]?.chunk as Buffer);
        for (const { chunk } of chunks) size += chunk.length;
        done();
      },
    });
    writeFrame(sink, { type: 'call' }, { weights: new Float32Array(2 ** 30 + 1), mask: new Uint8Array(1) });
    expect(heads.map((head) => head.readBigUInt64LE(8))).toEqual([2n ** 32n + 16n]);
    expect(heads.map((head) => 16 + head.readUInt32LE(4) + 2 ** 32 + 16)).toEqual([size]);
  });

  it('say which array this process cannot hold, and the next frame comes whole', () => {
    const length = 2 ** 33; // no array has so many numbers
    const text = Buffer.from(JSON.stringify({ type: 'answer', arrays: [{ name: 'weights', dtype: 'f32', length }] }));
    const head = Buffer.alloc(16);
    head.write('drms');
    head.writeUInt32LE(text.length, 4);
    head.writeBigUInt64LE(BigInt(4 * length), 8);
    const reader = new FrameReader();
    expect(reader.take(Buffer.concat([head, text]))).toEqual([]);
    const some = Buffer.alloc(2 ** 26);
    const frames: Frame[] = [];
    for (let sent = 0; sent < 4 * length; sent += some.length) frames.push(...reader.take(some));
    frames.push(...reader.take(bytesOf({ type: 'answer' }, { a: Int32Array.of(1) })));
    expect(frames).toEqual([
      {
        header: { type: 'answer' },
        arrays: {},
        missing: 'the array weights has 34.4 GB, more than this process can hold',
      },
      { header: { type: 'answer' }, arrays: { a: Int32Array.of(1) } },
    ]);
  });

  it('are not what other programs print', () => {
    expect(() => read(Buffer.from('Traceback (most recent call last):\n'), [])).toThrow(
      /wrote something that is no message/,
    );
  });
});
