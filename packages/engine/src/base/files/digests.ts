/** Digests of files. They show which file was changed since it was written. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { CheckpointError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import { laterVersion } from '../core/validation/parse-stored.js';
import { codeOf } from '../platform/node-files.js';
import { writeDirectory } from './write-directory.js';

/** The SHA-256 of a value's JSON with sorted keys, in 64 hexadecimal digits: equal values have equal hashes. */
export function contentHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** The size of a file and its SHA-256 in hexadecimal digits. */
export interface FileDigest {
  readonly bytes: number;
  readonly sha256: string;
}

/** The file in a sealed directory that holds the digests of all other files, and a digest of itself. */
export const SEAL = 'digests.json';

const sealSchema = z.object({
  version: z.literal(1),
  files: z
    .record(z.string(), z.object({ bytes: z.int().min(0), sha256: z.string() }))
    .refine((files) => Object.keys(files).every(isBelow)),
  digest: z.string(),
});

/** Whether a path with slashes stays below its directory, on each system. Others may have written it. */
const isBelow = (path: string): boolean =>
  !/^\/|[\\:\0]/.test(path) && path.split('/').every((part) => !['', '.', '..'].includes(part));

/** Bytes that are read at once. */
const PIECE = 1 << 22;

export async function* piecesOf(files: Files, path: string, end: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < end; at += PIECE) {
    const piece = await files.readBytes(path, at, Math.min(PIECE, end - at));
    yield piece;
    if (piece.length < Math.min(PIECE, end - at)) return;
  }
}

export async function digestOf(files: Files, path: string): Promise<FileDigest> {
  const bytes = await files.size(path);
  const hash = createHash('sha256');
  for await (const piece of piecesOf(files, path, bytes)) hash.update(piece);
  return { bytes, sha256: hash.digest('hex') };
}

/** The damage of a file, as the end of a sentence that begins with its path; undefined if the file is whole. */
export async function damageOf(files: Files, path: string, expected: FileDigest): Promise<string | undefined> {
  if (!(await files.exists(path))) return 'is missing';
  const { bytes, sha256 } = await digestOf(files, path);
  if (bytes !== expected.bytes) return `has ${bytes} bytes, was written with ${expected.bytes}`;
  return sha256 === expected.sha256 ? undefined : 'is not what was written (its SHA-256 differs)';
}

/** Makes a directory appear complete or not at all, with the digests of its files beside them. */
export async function writeSealedDirectory(
  files: Files,
  parent: string,
  name: string,
  fill: (directory: string) => Promise<void>,
): Promise<string> {
  return writeDirectory(files, parent, name, async (directory) => {
    await fill(directory);
    const digests: Record<string, FileDigest> = {};
    for (const file of await filesBelow(files, directory)) digests[file] = await digestOf(files, join(directory, file));
    const seal = { version: 1, files: digests };
    await files.write(join(directory, SEAL), `${JSON.stringify({ ...seal, digest: contentHash(seal) })}\n`);
  });
}

/** The state of a sealed directory: unchanged, damaged, or from a version that wrote no seals. */
type SealState = { readonly type: 'whole' | 'unsealed' } | { readonly type: 'damaged'; readonly why: string };

/**
 * Compares the files of a directory with its seal.
 * @param wanted Selects the files to compare, by their paths in the directory. Default: all
 */
export async function sealState(
  files: Files,
  directory: string,
  wanted: (file: string) => boolean = () => true,
): Promise<SealState> {
  const path = join(directory, SEAL);
  if (!(await files.exists(path))) return { type: 'unsealed' };
  const damaged = (file: string, why: string): SealState => ({ type: 'damaged', why: `${file} ${why}` });
  const value = jsonOf(await files.readText(path));
  const { data } = sealSchema.safeParse(value);
  if (data === undefined) return damaged(path, laterVersion(value, 1) ?? 'is no list of digests');
  const { digest, ...seal } = data;
  if (contentHash(seal) !== digest) return damaged(path, 'is not what was written (its own digest differs)');
  for (const [file, expected] of Object.entries(seal.files)) {
    if (!wanted(file)) continue;
    const why = await damageOf(files, join(directory, file), expected);
    if (why !== undefined) return damaged(join(directory, file), why);
  }
  return { type: 'whole' };
}

/** @throws CheckpointError naming the first file of a sealed directory that was changed */
export async function requireWhole(
  files: Files,
  directory: string,
  wanted?: (file: string) => boolean,
): Promise<'whole' | 'unsealed'> {
  const state = await sealState(files, directory, wanted);
  if (state.type === 'damaged') throw new CheckpointError(state.why);
  return state.type;
}

/** Whether a program that only samples reads this file of a checkpoint: all but the optimiser's state. */
export const isNoOptimizer = (file: string): boolean => !file.endsWith('optimizer.safetensors');

/** The paths of all files below a directory, relative to it. */
export async function filesBelow(files: Files, directory: string): Promise<string[]> {
  const below: string[] = [];
  for (const name of await files.list(directory)) {
    const inner = await filesBelow(files, join(directory, name)).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOTDIR') throw error;
    });
    if (inner === undefined) below.push(name);
    else below.push(...inner.map((file) => `${name}/${file}`));
  }
  return below;
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
