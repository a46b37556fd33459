/**
 * Records of TensorBoard's event files: the protobuf messages Event and Summary (tensorflow/core/util/event.proto,
 * framework/summary.proto) in the frame of a TFRecord (lib/io/record_writer.h).
 */
import { maskedCrc32c } from './crc32c.js';

export interface ScalarEvent {
  /** Seconds since 1970. */
  readonly wallTime: number;
  readonly step: number;
  readonly scalars: readonly { readonly name: string; readonly value: number }[];
}

/** The first record of every file, with the version of the format. */
export const versionRecord = (wallTime: number) => framed([...double(1, wallTime), ...text(3, 'brain.Event:2')]);

/** A record after which TensorBoard ignores the values of earlier files from this step on. */
export const restartRecord = (wallTime: number, step: number) =>
  framed([...double(1, wallTime), ...integer(2, step), ...message(7, integer(1, 1))]);

export const scalarRecord = ({ wallTime, step, scalars }: ScalarEvent) =>
  framed([
    ...double(1, wallTime),
    ...integer(2, step),
    ...message(
      5,
      scalars.flatMap(({ name, value }) => message(1, [...text(1, name), ...float(2, value)])),
    ),
  ]);

/** Length (64 bits), its checksum, the data, its checksum; all of them little-endian. */
function framed(data: readonly number[]): Uint8Array {
  const record = new Uint8Array(data.length + 16);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(record.subarray(12, 12 + data.length)), true);
  return record;
}

// Fields of protobuf: the number of the field and the kind of its value, then the value.

const tag = (field: number, kind: number) => varint(field * 8 + kind);

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}

const integer = (field: number, value: number) => [...tag(field, 0), ...varint(value)];
const double = (field: number, value: number) => [...tag(field, 1), ...new Uint8Array(Float64Array.of(value).buffer)];
const float = (field: number, value: number) => [...tag(field, 5), ...new Uint8Array(Float32Array.of(value).buffer)];
const message = (field: number, content: readonly number[]) => [
  ...tag(field, 2),
  ...varint(content.length),
  ...content,
];
const text = (field: number, value: string) => message(field, [...new TextEncoder().encode(value)]);
