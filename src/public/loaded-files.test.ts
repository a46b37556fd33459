import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';

/** The package of a specifier such as `hono/utils/cookie` or `@hono/node-server`. */
const packageOf = (path: string) =>
  path
    .split('/')
    .slice(0, path.startsWith('@') ? 2 : 1)
    .join('/');

/** The packages and the files of `src` that a bundler follows an entry to. */
async function reached(entry: string): Promise<{ readonly packages: string[]; readonly files: string[] }> {
  const { metafile } = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    write: false,
    metafile: true,
  });
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports);
  const external = imports.filter((one) => one.external === true && !one.path.startsWith('node:'));
  return {
    packages: [...new Set(external.map(({ path }) => packageOf(path)))].sort(),
    files: Object.keys(metafile.inputs),
  };
}

describe('the entries of the package', () => {
  it.each(['./serve.ts', '../gateway/agents/index.ts'])(
    '%s reaches no compiler, command line or optional package',
    async (entry) => {
      const { packages, files } = await reached(entry);
      expect(packages).toEqual(['@hono/node-server', 'fastest-levenshtein', 'hono', 're2js', 'zod']);
      const rooms = new Set(files.map((file) => /src\/(?:([^/.]+)\/)?/.exec(file)?.[1] ?? 'doors'));
      expect([...rooms].sort().filter((room) => room !== 'public')).toEqual(['base', 'doors', 'gateway']);
      expect(files.length).toBeLessThan(75);
    },
  );

  it.each([
    ['./advantages.ts', 20],
    ['./losses.ts', 40],
    ['./events.ts', 25],
    ['./settings.ts', 5],
    ['./teams.ts', 55],
    ['./backends.ts', 60],
  ])('%s, from which a plug-in takes its define function, reaches at most %i files', async (entry, most) => {
    const { packages, files } = await reached(entry);
    expect(files.length).toBeLessThanOrEqual(most);
    expect(packages.filter((name) => !['fastest-levenshtein', 're2js', 'zod'].includes(name))).toEqual([]);
  });

  it('are held by a test that sees more in the entry of training', async () => {
    const { packages, files } = await reached('../index.ts');
    expect(packages).toEqual(expect.arrayContaining(['bullmq', 'ioredis']));
    expect(files.length).toBeGreaterThan(500);
  });
});
