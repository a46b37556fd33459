import { appendFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RunError } from '@drmas/engine/errors';
import type { RunEvent } from '@drmas/engine/events';
import { defineTracker, type TrackedRun } from '@drmas/engine/host';
import { measurementsOf } from './measurements.js';

/** The middle of the file's name, by which TensorBoard and importers recognise it. */
const KIND = '.tfevents.';

export const tensorboard = defineTracker({
  name: 'tensorboard',
  address: 'none',
  description: 'event files in the directory of the run, for TensorBoard and for programs that import its files',
  open: async (run) => {
    const { file, earlier } = await begin(run).catch((error: unknown) => {
      throw new RunError(`cannot write TensorBoard's event file in ${run.path}: ${messageOf(error)}`);
    });
    let replaced = false;
    return {
      name: 'the tracker tensorboard',
      event: async (event) => {
        if (!replaced) for (const path of earlier) await rm(path, { force: true });
        replaced = true;
        const record = recordOf(event);
        if (record !== undefined) await appendFile(file, record);
      },
      // A run that could not begin leaves the earlier files.
      close: async () => {
        if (!replaced) await rm(file, { force: true });
      },
    };
  },
});

/**
 * Writes a file with the events of the log so far, which replaces earlier files. So steps that a resumed run plays
 * again are in the file only once. A running TensorBoard drops the values that it had read.
 */
async function begin({ path, events }: TrackedRun): Promise<{ readonly file: string; readonly earlier: string[] }> {
  const earlier = (await readdir(path)).filter((name) => name.includes(KIND)).sort();
  const second = Math.floor(Date.now() / 1000);
  const last = Number(/tfevents\.(\d+)/.exec(earlier.at(-1) ?? '')?.[1] ?? 0);
  const file = join(path, `events.out${KIND}${Math.max(second, last + 1)}.drmas`); // later by name too
  const records = events.flatMap((event) => recordOf(event) ?? []);
  await writeFile(file, Buffer.concat([versionRecord(second), restartRecord(second, 0), ...records]));
  return { file, earlier: earlier.map((name) => join(path, name)) };
}

function recordOf(event: RunEvent): Uint8Array | undefined {
  const scalars = measurementsOf(event);
  const [first] = scalars;
  if (first === undefined) return undefined;
  return scalarRecord({ wallTime: Date.parse(event.time) / 1000, step: first.step, scalars });
}

// Records of TensorBoard's event files: the protobuf messages Event and Summary (tensorflow/core/util/event.proto,
// framework/summary.proto) in the frame of a TFRecord (lib/io/record_writer.h).

interface ScalarEvent {
  /** Seconds since 1970. */
  readonly wallTime: number;
  readonly step: number;
  readonly scalars: readonly { readonly name: string; readonly value: number }[];
}

/** The first record of every file, with the version of the format. */
const versionRecord = (wallTime: number) => framed([...double(1, wallTime), ...text(3, 'brain.Event:2')]);

/** A record after which TensorBoard ignores the values of earlier files from this step on. */
const restartRecord = (wallTime: number, step: number) =>
  framed([...double(1, wallTime), ...integer(2, step), ...message(7, integer(1, 1))]);

const scalarRecord = ({ wallTime, step, scalars }: ScalarEvent) =>
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

/** CRC-32C (Castagnoli), the checksum of TensorFlow's records. */

/** The polynomial 0x1EDC6F41 with its bits reversed (RFC 3720, section 12.1). */
const POLYNOMIAL = 0x82f63b78;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value;
});

export function crc32c(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ (TABLE[(sum ^ byte) & 0xff] as number);
  return (sum ^ 0xffffffff) >>> 0;
}

/**
 * The masked checksum of a record: rotated and shifted, so that data that contains checksums has a good checksum too.
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const sum = crc32c(bytes);
  return (((sum >>> 15) | (sum << 17)) + 0xa282ead8) >>> 0;
}
