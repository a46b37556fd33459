import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RunError } from '../../../core/errors.js';
import { byteText } from '../../../core/format.js';
import { codeOf, nodeFiles } from '../../../platform/node-files.js';
import { cacheDirectory } from '../../../tensor/native/build-cache.js';
import { defineCommand, optionalArgument } from '../../define-command.js';
import { toggle } from '../../flags.js';

/** What lies in the cache, by its folder. */
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
  description: 'remove what is cached, all of it or one kind; it is made again when it is needed',
  details: 'removes what is cached; `native` is compiled again, `warmstarts` are trained again',
  arguments: [optionalArgument('kind', `one of ${Object.keys(KINDS).join(', ')}; all of them by default`)],
  flags: {},
  examples: ['drmas cache clear warmstarts'],
  async run({ stdout, environment }, [kind]) {
    if (kind !== undefined && KINDS[kind] === undefined)
      throw new RunError(`there is no cache '${kind}'; there are ${Object.keys(KINDS).join(', ')}`);
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
  description: 'list what is cached, with its size',
  details:
    "lists what is cached and how large it is: compiled kernels and warm starts, in `DRMAS_CACHE` or the user's cache directory. `drmas cache clear` removes it. `--json`",
  arguments: [],
  flags: { json: toggle('print the sizes as JSON') },
  examples: ['drmas cache', 'drmas cache clear warmstarts'],
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

/** The bytes of all files below a directory; links are not followed. */
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
