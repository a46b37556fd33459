import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { withEnvironment } from '../../../../../test/support/environment.js';
import { reasonOf } from '../core/errors.js';
import { patientFetch } from './patient-fetch.js';

const { signal } = new AbortController();
const reasonFor = (address: string) => patientFetch(address, { signal }).then(String, reasonOf);

describe('the error of a server that cannot be reached', () => {
  const clean = { http_proxy: undefined, HTTP_PROXY: undefined, NODE_USE_ENV_PROXY: undefined };
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND there.example'), { code: 'ENOTFOUND' });
  let restore = () => {};
  afterEach(() => {
    restore();
    vi.unstubAllGlobals();
  });

  it.each([
    ['http://there.example', true],
    ['https://there.example', false],
    ['http://127.0.0.1', false],
  ])('names a proxy that Node does not use: %s', async (address, isNamed) => {
    restore = withEnvironment({ ...clean, HTTP_PROXY: 'http://proxy.example' });
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause: unknown })));
    const advice = '; Node uses the proxy of HTTP_PROXY only with NODE_USE_ENV_PROXY=1, from Node 22.21 on';
    const reason = 'fetch failed (getaddrinfo ENOTFOUND there.example)';
    expect(await reasonFor(address)).toBe(`${reason}${isNamed ? advice : ''}`);
  });
});

it('ends if a server closes the very first connection of a process at once', () => {
  const text = `
    import { createServer } from 'node:net';
    import { patientFetch } from ${JSON.stringify(new URL('patient-fetch.ts', import.meta.url).href)};
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1', async () => {
      const address = 'http://127.0.0.1:' + server.address().port;
      await patientFetch(address, new AbortController()).catch(({ message }) => console.log(message));
      process.exit();
    });`;
  const words = ['--import', 'tsx', '--input-type=module', '--eval', text];
  expect(execFileSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })).toBe('fetch failed\n');
});
