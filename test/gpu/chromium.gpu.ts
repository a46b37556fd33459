import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { DeviceCheck } from '@drmas/webgpu/internal/kernels/check-device';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BrowserPage, chromium, SOFTWARE_GPU } from '../support/chromium.js';

/** WebGPU is for pages from somewhere, and from this machine at least. */
const server = createServer((_, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>kernels</title>');
});
let page: BrowserPage | undefined;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await page?.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const tags = ['long'];
it.skipIf(chromium === undefined)('the kernels compute in a tab of Chromium as the plain ones', { tags }, async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('page.ts', import.meta.url))],
    bundle: true,
    format: 'iife',
    globalName: 'kernelsPage',
    write: false,
  });
  page = await BrowserPage.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    flags: SOFTWARE_GPU,
  });
  await page.until("document.title === 'kernels'");
  const { gap, rowsKeepBits } = (await page.evaluate(`${outputFiles[0]?.text}; kernelsPage.check()`)) as DeviceCheck;
  expect(gap).toBeGreaterThan(0);
  expect(gap).toBeLessThan(2e-5);
  expect(rowsKeepBits).toBe(true);
});
