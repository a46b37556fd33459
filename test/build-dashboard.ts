import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

/** Builds the dashboard's page for tests and the report, if its sources are newer than the page. */
export async function buildDashboard(): Promise<void> {
  const sources = [...filesBelow(path('packages/dashboard')), ...filesBelow(path('src/runs/analysis'))];
  if (Math.max(...sources.map(timeOf)) <= timeOf(path('dist/dashboard/page.js'))) return;
  const { build } = await import('vite');
  await build({ configFile: path('packages/dashboard/vite.config.ts') });
}

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

const timeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
