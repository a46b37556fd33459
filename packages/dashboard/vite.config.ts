import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** The page of the dashboard: one script and one style, which the server and the report read. */
export default defineConfig({
  root: path('.'),
  base: './',
  logLevel: 'warn',
  resolve: { tsconfigPaths: true },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: path('../../dist/dashboard'),
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    target: 'es2022',
    rolldownOptions: {
      output: { entryFileNames: 'page.js', assetFileNames: 'page[extname]', codeSplitting: false },
    },
  },
});
