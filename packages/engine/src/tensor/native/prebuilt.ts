/** The addons that ship compiled, so that users need no compiler: `prebuilt/` of the package. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { messageOf } from '../../errors.js';
import { checksum, shippedSources, sourceHash } from './build.js';

/** The content of `prebuilt/manifest.json`. */
export interface PrebuiltManifest {
  /** The hash of the sources that they were made of: others are not taken. */
  readonly sources: string;
  readonly compiler: string;
  /** SHA-256 of each file, by its name. */
  readonly files: Readonly<Record<string, string>>;
}

export const PREBUILT_MANIFEST = 'manifest.json';

export const prebuiltDirectory = (): string => join(dirname(shippedSources()), 'prebuilt');

/**
 * The addons that may run on a system. On Linux that depends on its C library, which only the attempt tells: one that
 * was linked to another does not load.
 */
function namesFor(platform: string, architecture: string): string[] {
  const base = `${platform}-${architecture}`;
  return platform === 'linux' ? [`${base}-glibc.node`, `${base}-musl.node`] : [`${base}.node`];
}

/** Loads the addon that ships for this system. A file whose hash differs from the manifest's is not loaded. */
export async function loadPrebuilt(
  directory = prebuiltDirectory(),
): Promise<{ readonly addon: unknown; readonly name: string } | { readonly reason: string }> {
  let manifest: PrebuiltManifest;
  try {
    manifest = JSON.parse(await readFile(join(directory, PREBUILT_MANIFEST), 'utf8')) as PrebuiltManifest;
  } catch {
    return { reason: 'none ship with this copy of drmas' };
  }
  if (manifest.sources !== (await sourceHash(shippedSources())))
    return { reason: 'those that ship were made of other sources' };
  const problems: string[] = [];
  for (const name of namesFor(process.platform, process.arch)) {
    const expected = manifest.files[name];
    if (expected === undefined) continue;
    const path = join(directory, name);
    try {
      if (checksum(await readFile(path)) !== expected) throw new Error('its checksum is not the noted one');
      return { addon: createRequire(import.meta.url)(path), name };
    } catch (error) {
      problems.push(`${name}: ${messageOf(error)}`);
    }
  }
  return { reason: problems.join('; ') || `none ships for ${process.platform} ${process.arch}` };
}
