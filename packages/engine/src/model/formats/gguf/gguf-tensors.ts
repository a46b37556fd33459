/** The tensors of a GGUF file under Hugging Face's names, in its order of rows, and without blocks. */
import { CheckpointError } from '../../../errors.js';
import { excerpt, type Files } from '../../../host.js';
import { BLOCK_FORMATS, type BlockFormat } from '../../../tensor/blocks.js';
import { requireTensor, type StoredTensor } from '../safetensors.js';
import { bytesOf } from '../safetensors-header.js';
import { rowLength } from '../tensor.js';
import { expectedTensors } from '../tensor-names.js';
import { readOrRefuse } from '../validated-json.js';
import { unpackBlocks } from './gguf-blocks.js';
import type { GgufDecoder } from './gguf-config.js';
import type { GgufEntry, GgufHeader } from './gguf-header.js';
import { ggufName, isReordered, ROPE_FACTORS, reordered } from './gguf-names.js';

/** The bytes of float32 in a piece; as large as a piece of a safetensors file. */
const PIECE_BYTES = 2 ** 22;

/**
 * The tensors that the decoder needs, in the order of `expectedTensors`. Numbers in blocks are read as float32.
 * @throws CheckpointError when one is missing, has another shape, or has no place in the decoder
 */
export function ggufTensors(
  files: Files,
  file: string,
  { tensors: entries }: GgufHeader,
  { architecture, config }: GgufDecoder,
): ReadonlyMap<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  const placed = new Set<string>([ROPE_FACTORS]);
  for (const { name, shape } of expectedTensors(config)) {
    const stored = ggufName(name);
    const entry = requireTensor(entries, { name: stored, shape }, file);
    placed.add(stored);
    const headRows = isReordered(architecture, name) ? config.headDim : undefined;
    tensors.set(name, storedTensor(files, file, entry, { name, headRows }));
  }
  const stray = [...entries.keys()].find((name) => !placed.has(name));
  if (stray === undefined) return tensors;
  throw new CheckpointError(`${file}: tensor "${excerpt(stray)}" has no place in this ${architecture} model`);
}

interface Reading {
  /** Its name for the reader. Default: its name in the file. */
  readonly name?: string;
  /** The rows of a head, if llama.cpp's order of a head's rows must be undone. */
  readonly headRows?: number | undefined;
}

export function storedTensor(
  files: Files,
  file: string,
  entry: GgufEntry,
  { name = entry.name, headRows }: Reading = {},
): StoredTensor {
  const { shape, format, start, bytes } = entry;
  const columns = rowLength(shape);
  const rows = shape[0] ?? 1;
  const rowBytes = bytes / rows;
  const { dtype } = format;
  const readBytes = bytesOf[dtype] * columns;

  /** Whole rows as the file has them, in the order of the reader. */
  async function* stored(pieceBytes: number) {
    const unit = headRows ?? 1;
    const most = Math.max(1, Math.floor(pieceBytes / (readBytes * unit))) * unit;
    for (let row = 0; row < rows; row += most) {
      const length = Math.min(most, rows - row) * rowBytes;
      const read = await readOrRefuse(file, () => files.readBytes(file, start + row * rowBytes, length));
      if (read.length < length)
        throw new CheckpointError(
          `${file}: tensor "${excerpt(entry.name)}": expected ${length} bytes, found ${read.length} (truncated?)`,
        );
      yield { row, bytes: headRows === undefined ? read : reordered(read, 'halves', headRows, rowBytes) };
    }
  }

  async function* pieces(pieceBytes = PIECE_BYTES) {
    for await (const { row, bytes } of stored(pieceBytes))
      yield { name, dtype, first: row * columns, bytes: unpackBlocks(format, bytes) } as const;
  }

  async function* inBlocks(format: BlockFormat) {
    for await (const { row, bytes } of stored(PIECE_BYTES)) yield { name, format, first: row, bytes };
  }
  const kept = BLOCK_FORMATS.find((each) => each === format.name);
  const isKept = kept !== undefined && shape.length === 2;
  return { name, shape, dtype, pieces, ...(isKept && { blocks: { format: kept, pieces: () => inBlocks(kept) } }) };
}
