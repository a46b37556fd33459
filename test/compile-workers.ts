import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the workers lie, compiled. */
    compiledWorkers: string;
  }
}

/** The repository, without a slash at the end. */
const sources = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');
/** Losses that the engine's thread imports by the URL of their source. */
const losses = ['src/lab/kto/kto.ts'];
const workers = [
  ...losses,
  'packages/engine/src/embedded/thread/engine-worker.ts',
  'packages/engine/src/tensor/wasm/node-thread.ts',
  'src/runs/run/isolation/player-thread.ts',
];

/**
 * Compiles the modules that run in threads of their own, each into one file, for test/support/start-worker.ts: an
 * engine whose sources pass through a loader takes six times the processor time to start, and hundreds of tests start
 * one.
 */
export async function compileWorkers(project: TestProject): Promise<() => Promise<void>> {
  const outdir = await mkdtemp(join(tmpdir(), 'drmas-workers-'));
  const compile = async () => {
    await build({
      entryPoints: workers.map((worker) => join(sources, worker)),
      outbase: sources,
      outdir,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      external: ['tsx'], // no thread of a test loads TypeScript
      platform: 'node',
      format: 'esm',
      sourcemap: 'linked',
      plugins: [ourModules(outdir)],
    });
  };
  await compile();
  project.onTestsRerun(compile);
  project.provide('compiledWorkers', outdir);
  return () => rm(outdir, { recursive: true, force: true });
}

/**
 * Keeps the compiled files small, because each of the hundreds of threads reads its file anew: no module of ours does
 * work when it is imported, so esbuild drops modules that a thread does not need; and it keeps only the parts of zod
 * that are named. Every module knows where its source lies.
 */
function ourModules(outdir: string): Plugin {
  // A loss of the package is imported from its compiled file; a user's own one as it is.
  const urlIn = (folder: string, file: string) => pathToFileURL(join(folder, file)).href;
  const compiled = losses.map((loss) => [urlIn(sources, loss), urlIn(outdir, loss.replace(/ts$/, 'mjs'))]);
  const compiledUrl = `(${JSON.stringify(Object.fromEntries(compiled))}[url] ?? url)`;
  return {
    name: 'our modules',
    setup: ({ onLoad, onResolve, resolve }) => {
      onResolve({ filter: /^(\.|@drmas\/)/ }, async ({ path, pluginData, ...importer }) => {
        if (pluginData === resolving || importer.importer.includes('node_modules')) return undefined;
        return { ...(await resolve(path, { ...importer, pluginData: resolving })), sideEffects: false };
      });
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const contents = (await readFile(path, 'utf8'))
          .replace(/^import \{ z \} from 'zod';$/m, "import * as z from 'zod';")
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
          .replace('import(url)', `import(${compiledUrl})`);
        return { loader: 'ts', contents };
      });
    },
  };
}

/** Marks a path that esbuild itself resolves. */
const resolving = Symbol('resolving');
