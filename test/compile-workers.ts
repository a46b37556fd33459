import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the workers lie, compiled. */
    compiledWorkers: string;
  }
}

const sources = fileURLToPath(new URL('../src', import.meta.url));
/** Losses that the engine's thread imports by the URL of their source. */
const losses = ['lab/kto/kto.ts'];
const workers = [
  ...losses,
  'engine/embedded/thread/engine-worker.ts',
  'engine/tensor/wasm/node-thread.ts',
  'runs/run/isolation/player-thread.ts',
];

/**
 * Compiles the modules that run in threads of their own, each into one file, for test/support/start-worker.ts: an
 * engine whose sources pass through a loader takes six times the processor time to start, and hundreds of tests start
 * one.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const outdir = await mkdtemp(join(tmpdir(), 'drmas-workers-'));
  // A thread of a test imports no TypeScript: a loss of the package is imported from its compiled file.
  const [from, to] = [sources, outdir].map((folder) => JSON.stringify(pathToFileURL(folder).href));
  const compiledUrl = `url.startsWith(${from}) ? url.replace(${from}, ${to}).replace(/ts$/, 'mjs') : url`;
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
      sourcemap: 'inline',
      plugins: [
        {
          name: 'every module knows where its source lies',
          setup: ({ onLoad }) =>
            onLoad({ filter: /\.ts$/ }, async ({ path }) => {
              const url = JSON.stringify(pathToFileURL(path).href);
              const contents = (await readFile(path, 'utf8')).replaceAll('import.meta.url', url);
              return { loader: 'ts', contents: contents.replace('import(url)', `import(${compiledUrl})`) };
            }),
        },
      ],
    });
  };
  await compile();
  project.onTestsRerun(compile);
  project.provide('compiledWorkers', outdir);
  return () => rm(outdir, { recursive: true, force: true });
}
