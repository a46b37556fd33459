import { PassThrough } from 'node:stream';
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

  it('are not what other programs print', () => {
    expect(() => read(Buffer.from('Traceback (most recent call last):\n'), [])).toThrow(
      /wrote something that is no message/,
    );
  });
});
