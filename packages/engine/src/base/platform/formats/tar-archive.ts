/** Tar archives, plain or gzipped: the format in which servers send adapters. */
import { gunzipSync } from 'node:zlib';
import { BackendError, messageOf } from '../../core/errors.js';

const BLOCK = 512;

const LARGEST_BYTES = 2e9;

/**
 * The regular files of an archive by name, without their directories.
 * @throws BackendError if the bytes are not an archive
 */
export function readArchive(bytes: Uint8Array): Map<string, Uint8Array> {
  const data = bytes[0] === 0x1f && bytes[1] === 0x8b ? unzipped(bytes) : bytes;
  const files = new Map<string, Uint8Array>();
  for (let at = 0; at + BLOCK <= data.length; ) {
    const header = data.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break; // the end
    const size = Number.parseInt(text(header, 124, 12), 8);
    if (text(header, 257, 5) !== 'ustar' || !Number.isSafeInteger(size) || size < 0 || at + BLOCK + size > data.length)
      throw new BackendError('the server did not send a complete tar archive');
    const kind = text(header, 156, 1);
    const name = text(header, 0, 100).split('/').at(-1) ?? '';
    if ((kind === '0' || kind === '') && name !== '') files.set(name, data.slice(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

/** An archive of files by their names, of at most 100 ASCII characters each. */
export function writeArchive(files: ReadonlyMap<string, Uint8Array>): Uint8Array<ArrayBuffer> {
  const blocks = Array.from(files.values(), ({ length }) => 1 + Math.ceil(length / BLOCK));
  const archive = new Uint8Array(BLOCK * (2 + blocks.reduce((sum, count) => sum + count, 0)));
  let at = 0;
  for (const [name, content] of files) {
    const field = (from: number, value: string) => archive.set(Buffer.from(value, 'latin1'), at + from);
    const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
    field(0, name);
    field(100, octal(0o644, 8));
    field(108, octal(0, 8));
    field(116, octal(0, 8));
    field(124, octal(content.length, 12));
    field(136, octal(0, 12));
    field(148, ' '.repeat(8)); // the checksum is taken with blanks in its own place
    field(156, '0');
    field(257, 'ustar\x0000');
    const sum = archive.subarray(at, at + BLOCK).reduce((total, byte) => total + byte, 0);
    field(148, `${octal(sum, 7)} `);
    archive.set(content, at + BLOCK);
    at += BLOCK * (1 + Math.ceil(content.length / BLOCK));
  }
  return archive;
}

function unzipped(bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: LARGEST_BYTES });
  } catch (error) {
    throw new BackendError(`the server sent an archive that cannot be unpacked: ${messageOf(error)}`);
  }
}

/** A field of a header: up to its first zero byte, without spaces around it. */
const text = (header: Uint8Array, from: number, length: number): string =>
  Buffer.from(header.subarray(from, from + length))
    .toString('latin1')
    .split('\0', 1)
    .join('')
    .trim();
