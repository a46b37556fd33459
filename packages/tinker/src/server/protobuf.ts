/**
 * The messages that newer clients of the Tinker protocol send and receive as protobuf instead of JSON, by the numbers
 * of their fields: ForwardBackwardRequest in, ForwardBackwardOutput and SampleResponse out.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { DialectError, messageOf } from '@drmas/engine/errors';
import { MOST_CHUNKS, MOST_DATUMS, type PassInput } from './bodies.js';
import type { SampleOutput } from './samplers.js';
import type { PassOutput } from './served-model.js';
import { refused } from './token-pass.js';

const [FLOAT32, INT64] = [1, 2];

/** The most names of a datum's inputs, or of a loss's settings, and the most dimensions of a tensor. */
const MOST_NAMES = 16;
const MOST_DIMENSIONS = 8;

/** @throws DialectError if a list in a message is full: a few bytes for each element would fill the memory. */
function requireRoom(length: number, most: number, what: string): void {
  if (length >= most) throw refused(`expected at most ${most} ${what}`);
}

export interface PassRequest {
  readonly model_id: string;
  readonly seq_id: number;
  readonly forward_only: boolean;
  readonly forward_backward_input: PassInput;
}

type PassDatum = PassInput['data'][number];

/** Reads the fields of a message. `fields` has a reader for each known number; other fields are skipped. */
function readFields(reader: BinaryReader, fields: Readonly<Record<number, (wireType: WireType) => void>>): void {
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const read = fields[number];
    if (read === undefined) reader.skip(wireType, number);
    else read(wireType);
  }
}

/** @throws DialectError for bytes that are not a ForwardBackwardRequest */
export function readPassRequest(bytes: Uint8Array): PassRequest {
  const reader = new BinaryReader(bytes);
  const data: PassDatum[] = [];
  const config = new Map<string, number>(); // clients choose its names
  let model_id = '';
  let seq_id = 0;
  let loss_fn = '';
  let forward_only = false;
  try {
    readFields(reader, {
      1: () => {
        model_id = reader.string();
      },
      2: () => {
        seq_id = reader.int32();
      },
      3: () => {
        requireRoom(data.length, MOST_DATUMS, 'datums');
        data.push(readDatum(reader.bytes()));
      },
      4: () => {
        loss_fn = reader.string();
      },
      5: () => {
        const [name, value] = readEntry(reader.bytes(), (entry) => entry.double());
        requireRoom(config.size, MOST_NAMES, 'settings of a loss');
        config.set(name, value);
      },
      6: () => {
        forward_only = reader.bool();
      },
    });
  } catch (error) {
    if (error instanceof DialectError) throw error;
    throw refused(`the body is not a ForwardBackwardRequest in protobuf: ${messageOf(error)}`);
  }
  if (data.length === 0) throw refused('expected at least one datum');
  const forward_backward_input = { data, loss_fn, loss_fn_config: Object.fromEntries(config) };
  return { model_id, seq_id, forward_only, forward_backward_input };
}

function readDatum(bytes: Uint8Array): PassDatum {
  const reader = new BinaryReader(bytes);
  const tokens: number[] = []; // of all chunks
  let chunks = 0;
  const inputs = new Map<string, { data: ArrayLike<number>; shape: number[] }>();
  readFields(reader, {
    1: () => {
      requireRoom(chunks++, MOST_CHUNKS, 'chunks of a datum');
      readChunk(reader.bytes(), tokens);
    },
    2: () => {
      const [name, tensor] = readEntry(reader.bytes(), (entry) => readTensor(entry.bytes()));
      requireRoom(inputs.size, MOST_NAMES, 'inputs of a datum');
      inputs.set(name, tensor);
    },
  });
  return { model_input: { chunks: chunks === 0 ? [] : [{ tokens }] }, loss_fn_inputs: Object.fromEntries(inputs) };
}

/** An entry of a map: its key in field 1, its value in field 2. */
function readEntry<T>(bytes: Uint8Array, value: (reader: BinaryReader) => T): [string, T] {
  const reader = new BinaryReader(bytes);
  let key = '';
  let last: { readonly value: T } | undefined;
  readFields(reader, {
    1: () => {
      key = reader.string();
    },
    2: () => {
      last = { value: value(reader) };
    },
  });
  if (last === undefined) throw refused(`'${key}' has no value`);
  return [key, (last as { readonly value: T }).value];
}

function readChunk(bytes: Uint8Array, tokens: number[]): void {
  const reader = new BinaryReader(bytes);
  let isText = false;
  readFields(reader, {
    1: () => {
      isText = true;
      const text = new BinaryReader(reader.bytes());
      readFields(text, {
        1: () => {
          for (const token of new Int32Array(aligned(text.bytes(), 4))) tokens.push(token);
        },
      });
    },
  });
  if (!isText) throw refused('expected chunks of encoded text: this server reads only text');
}

function readTensor(bytes: Uint8Array): { data: ArrayLike<number>; shape: number[] } {
  const reader = new BinaryReader(bytes);
  const shape: number[] = [];
  const addDimension = (numbers: BinaryReader) => {
    requireRoom(shape.length, MOST_DIMENSIONS, 'dimensions of a tensor');
    shape.push(Number(numbers.int64()));
  };
  let dense = new Uint8Array();
  let dtype = 0;
  readFields(reader, {
    1: () => {
      dense = reader.bytes().slice();
    },
    2: () => {
      throw refused('expected dense tensors');
    },
    3: () => {
      dtype = reader.int32();
    },
    4: (wireType) => {
      // A list of numbers comes packed or one by one.
      const numbers = wireType === WireType.LengthDelimited ? new BinaryReader(reader.bytes()) : undefined;
      if (numbers === undefined) addDimension(reader);
      else while (numbers.pos < numbers.len) addDimension(numbers);
    },
  });
  if (dtype === FLOAT32) return { data: new Float32Array(aligned(dense, 4)), shape };
  if (dtype === INT64) return { data: Array.from(new BigInt64Array(aligned(dense, 8)), Number), shape };
  throw refused('expected tensors of float32 or int64');
}

/** A copy of the bytes in a new buffer, so that numbers in them are aligned. */
function aligned(bytes: Uint8Array, size: number): ArrayBuffer {
  if (bytes.length % size !== 0) throw refused(`expected a multiple of ${size} bytes, got ${bytes.length}`);
  return Uint8Array.from(bytes).buffer;
}

/** A field with a message or bytes. */
function field(writer: BinaryWriter, number: number, bytes: Uint8Array): BinaryWriter {
  return writer.tag(number, WireType.LengthDelimited).bytes(bytes);
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array | Int32Array | BigInt64Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** A ForwardBackwardOutput: one record with its rows one after the other. */
export function writePassOutput({ logprobs, loss }: PassOutput): Uint8Array<ArrayBuffer> {
  const offsets = new BigInt64Array(logprobs.length + 1);
  logprobs.forEach((row, i) => {
    offsets[i + 1] = (offsets[i] as bigint) + BigInt(row.byteLength);
  });
  const flat = new Float32Array(Number(offsets.at(-1)) / 4);
  logprobs.forEach((row, i) => {
    flat.set(row, Number(offsets[i]) / 4);
  });
  const tensor = field(field(new BinaryWriter(), 1, bytesOf(flat)), 2, bytesOf(offsets));
  tensor.tag(3, WireType.Varint).int32(FLOAT32);
  const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string('logprobs');
  const record = field(new BinaryWriter(), 2, field(entry, 2, tensor.finish()).finish());
  record.tag(3, WireType.Varint).int64(logprobs.length);
  const metric = new BinaryWriter().tag(1, WireType.LengthDelimited).string('loss:sum');
  metric.tag(2, WireType.Bit64).double(loss);
  const output = new BinaryWriter().tag(1, WireType.LengthDelimited).string('ArrayRecord');
  return field(field(output, 2, record.finish()), 3, metric.finish()).finish();
}

/** A SampleResponse. */
export function writeSampleOutput({ sequences, promptLogprobs }: SampleOutput): Uint8Array<ArrayBuffer> {
  const response = new BinaryWriter();
  for (const { tokens, logprobs, finishReason } of sequences) {
    const sequence = new BinaryWriter().tag(1, WireType.Varint).int32(finishReason === 'stop' ? 0 : 1);
    field(sequence, 2, bytesOf(Int32Array.from(tokens)));
    field(response, 1, field(sequence, 3, bytesOf(Float32Array.from(logprobs))).finish());
  }
  if (promptLogprobs !== undefined)
    field(response, 2, bytesOf(Float32Array.from(promptLogprobs, (logprob) => logprob ?? Number.NaN)));
  return response.finish();
}
