import { join } from 'node:path';
import { z } from 'zod';
import { damageOf, jsonOf, linesOf } from '../../base/disk.js';
import { RunError } from '../../base/errors.js';
import type { Files } from '../../base/host.js';
import { DIGESTS } from './run-files.js';

/** A line of digests.jsonl. */
const lineSchema = z.object({
  /** The path in the run's directory. */
  file: z.string().regex(/^(?:events|episodes\/[\w.-]+)\.jsonl$/),
  bytes: z.int().min(0),
  sha256: z.string(),
  /** Only for the event log. */
  lines: z.int().min(0).optional(),
});

export type DigestLine = z.output<typeof lineSchema>;

/** Reads the first lines of digests.jsonl, all of them by default. @throws RunError with file and line */
export async function readDigests(files: Files, run: string, most = Number.POSITIVE_INFINITY): Promise<DigestLine[]> {
  const path = join(run, DIGESTS);
  const digests: DigestLine[] = [];
  if (most === 0 || !(await files.exists(path))) return digests;
  for await (const line of linesOf(files, path)) {
    const { data } = lineSchema.safeParse(jsonOf(line));
    if (data === undefined) throw new RunError(`${path}:${digests.length + 1}: expected the digest of a file`);
    digests.push(data);
    if (digests.length === most) break;
  }
  return digests;
}

/** The episode files in the first lines of digests.jsonl whose content has changed. */
export async function damagedEpisodes(
  files: Files,
  run: string,
  lines: number,
): Promise<{ readonly file: string; readonly why: string }[]> {
  const damaged: { file: string; why: string }[] = [];
  for (const { file, ...digest } of await readDigests(files, run, lines)) {
    const why = digest.lines === undefined ? await damageOf(files, join(run, file), digest) : undefined;
    if (why !== undefined) damaged.push({ file, why });
  }
  return damaged;
}
