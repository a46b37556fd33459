import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RunError } from '@drmas/engine/errors';
import { byteText } from '@drmas/engine/host';
import { cacheDirectory, codeOf, nodeFiles } from '@drmas/engine/platform';
import { defineCommand, optionalArgument } from '../../define-command.js';
import { toggle } from '../../flags.js';

const KINDS: Readonly<Record<string, string>> = {
  native: 'compiled kernels',
  warmstarts: 'warm starts',
};

interface CachedKind {
  readonly kind: string;
  readonly entries: number;
  readonly bytes: number;
}

const clear = defineCommand({
  name: 'clear',
  description: 'remove all cached data, or one kind of it',
  details: 'removes cached data. drmas makes it again when needed: it compiles `native` and trains `warmstarts`',
  arguments: [optionalArgument('kind', `${Object.keys(KINDS).join(' or ')} (default: all)`)],
  flags: {},
  examples: ['drmas doctor cache clear warmstarts'],
  async run({ stdout, environment }, [kind]) {
    if (kind !== undefined && KINDS[kind] === undefined)
      throw new RunError(`there is no cache '${kind}'; expected ${Object.keys(KINDS).join(' or ')}`);
    const root = cacheDirectory(environment);
    for (const cached of await cachedKinds(root)) {
      if (kind !== undefined && cached.kind !== kind) continue;
      await nodeFiles.remove(join(root, cached.kind));
      stdout.write(`removed ${cached.kind}: ${byteText(cached.bytes)}\n`);
    }
    return 0;
  },
});

export const cache = defineCommand({
  name: 'cache',
  description: 'list cached data and its size',
  details:
    "lists the compiled kernels and warm starts in `DRMAS_CACHE` or the user's cache directory, with their sizes. `drmas doctor cache clear` removes them",
  arguments: [],
  flags: { json: toggle('print the sizes as JSON') },
  examples: ['drmas doctor cache', 'drmas doctor cache clear warmstarts'],
  async run({ stdout, environment }, _, { json }) {
    const directory = cacheDirectory(environment);
    const kinds = await cachedKinds(directory);
    if (json === true) stdout.write(`${JSON.stringify({ type: 'cache', directory, kinds })}\n`);
    else {
      stdout.write(`${directory}\n`);
      for (const { kind, entries, bytes } of kinds)
        stdout.write(`  ${kind.padEnd(10)}  ${byteText(bytes).padStart(8)}  ${KINDS[kind]}: ${entries}\n`);
    }
    return 0;
  },
  subcommands: [clear],
});

async function cachedKinds(root: string): Promise<CachedKind[]> {
  const kinds: CachedKind[] = [];
  for (const kind of Object.keys(KINDS)) {
    const entries = (await nodeFiles.list(join(root, kind))).length;
    if (entries > 0) kinds.push({ kind, entries, bytes: await bytesBelow(join(root, kind)) });
  }
  return kinds;
}

/** The bytes of all files below a directory. Links are not followed. */
async function bytesBelow(path: string): Promise<number> {
  try {
    const status = await lstat(path);
    if (!status.isDirectory()) return status.size;
    const sizes = await Promise.all((await readdir(path)).map((name) => bytesBelow(join(path, name))));
    return sizes.reduce((sum, size) => sum + size, 0);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0; // another process removed it
    throw error;
  }
}
