/** Reading tar archives, plain or gzipped: what servers pack adapters into. */
import { gunzipSync } from 'node:zlib';
import { BackendError, messageOf } from '../../core/errors.js';

const BLOCK = 512;

/** An archive that grows beyond this when it is unpacked is none of an adapter. */
const LARGEST_BYTES = 2e9;

/**
 * The regular files of an archive by their names, without the directories before them.
 * @throws BackendError when it is none
 */
export function readArchive(bytes: Uint8Array): Map<string, Uint8Array> {
  const data = bytes[0] === 0x1f && bytes[1] === 0x8b ? unzipped(bytes) : bytes;
  const files = new Map<string, Uint8Array>();
  for (let at = 0; at + BLOCK <= data.length; ) {
    const header = data.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break; // the end
    const size = Number.parseInt(text(header, 124, 12), 8);
    if (text(header, 257, 5) !== 'ustar' || !Number.isSafeInteger(size) || at + BLOCK + size > data.length)
      throw new BackendError('the server sent something else than a whole tar archive');
    const kind = text(header, 156, 1);
    const name = text(header, 0, 100).split('/').at(-1) ?? '';
    if ((kind === '0' || kind === '') && name !== '') files.set(name, data.slice(at + BLOCK, at + BLOCK + size));
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
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
