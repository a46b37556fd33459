import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** A static page that trains in the tab. It uses the recipe and the training loop of the command line. */
export default defineConfig({
  root: path('.'),
  base: './',
  logLevel: 'warn',
  resolve: { tsconfigPaths: true, alias: [{ find: /^drmas(\/tasks)?$/, replacement: path('src/run/drmas.ts') }] },
  worker: {
    format: 'es',
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: path('../../dist/site'),
    emptyOutDir: true,
    modulePreload: false,
    target: 'es2022',
    rolldownOptions: { checks: { pluginTimings: false } }, // the worker is built inside a plugin, which takes its time
  },
});
