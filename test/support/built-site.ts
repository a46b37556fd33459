/** The page of apps/site, built and served from a folder of its own: files alone, as on a host of static pages. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hashOf } from '../../apps/site/src/page/address.js';
import { writeWarmStart } from '../../scripts/site-pages.js';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.wasm': 'application/wasm',
};

export interface BuiltSite {
  /** Where the page trains with these overrides, seed 1. It does not lie at the host's root. */
  address(set: readonly string[]): string;
  close(): Promise<void>;
}

export async function serveBuiltSite(): Promise<BuiltSite> {
  const folder = await mkdtemp(join(tmpdir(), 'drmas-site-'));
  const { build } = await import('vite');
  const configFile = fileURLToPath(new URL('../../apps/site/vite.config.ts', import.meta.url));
  await build({ configFile, build: { outDir: join(folder, 'deep') } });
  await writeWarmStart(join(folder, 'deep'));
  const server = createServer(async ({ url = '' }, response) => {
    const path = join(folder, new URL(url, 'http://localhost').pathname);
    const content = await readFile(path).catch(() => undefined);
    response.writeHead(content === undefined ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' });
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: (set) => `http://127.0.0.1:${port}/deep/index.html${hashOf({ seed: 1, set })}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
