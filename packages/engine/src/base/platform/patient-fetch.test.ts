import { execFileSync } from 'node:child_process';
import pRetry from 'p-retry';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { withEnvironment } from '../../../../../test/support/environment.js';
import { reasonOf } from '../core/errors.js';
import { patientFetch } from './patient-fetch.js';

const { signal } = new AbortController();
const reasonFor = (address: string) => patientFetch(address, { signal }).then(String, reasonOf);

describe('the error of a server that cannot be reached', () => {
  const clean = Object.fromEntries(
    ['http_proxy', 'no_proxy', 'NO_PROXY', 'NODE_USE_ENV_PROXY', 'NODE_OPTIONS'].map((name) => [name, undefined]),
  );
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND there.example'), { code: 'ENOTFOUND' });
  let restore = () => {};
  afterEach(() => {
    restore();
    vi.unstubAllGlobals();
  });

  it.each<[string, boolean, Record<string, string>?]>([
    ['http://there.example', true],
    ['https://there.example', false],
    ['http://127.0.0.1', false],
    ['http://there.example', true, { NO_PROXY: 'localhost,re.example,other.example:80' }],
    ['http://there.example', false, { NO_PROXY: 'localhost, There.example' }],
    ['http://there.example', false, { no_proxy: '.example' }],
    ['http://there.example', false, { NO_PROXY: '*' }],
    ['http://there.example', false, { NODE_OPTIONS: '--use-env-proxy' }],
  ])('names a proxy that Node does not use: %s, %s %j', async (address, isNamed, set = {}) => {
    restore = withEnvironment({ ...clean, HTTP_PROXY: 'http://proxy.example', ...set });
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause: unknown })));
    const advice = '; Node uses the proxy of HTTP_PROXY only with NODE_USE_ENV_PROXY=1, from Node 22.21 on';
    const reason = `getaddrinfo ENOTFOUND there.example${isNamed ? advice : ''}`;
    expect(await reasonFor(address)).toBe(`fetch failed (${reason})`);
  });

  it('may pass: who asks may try again, with the advice too', async () => {
    restore = withEnvironment({ ...clean, HTTP_PROXY: 'http://proxy.example' });
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('fetch failed', { cause: unknown })));
    const ask = vi.fn(() => patientFetch('http://there.example', { signal }));
    const asked = pRetry(ask, { retries: 2, minTimeout: 1 });
    await expect(asked).rejects.toMatchObject({
      cause: { message: expect.stringMatching(/proxy/), code: 'ENOTFOUND' },
    });
    expect(ask).toHaveBeenCalledTimes(3);
  });
});

/** The output of another process, in which `patientFetch` is new. */
const inProcess = (body: string) => {
  const text = `
    import { createServer } from 'node:net';
    import { patientFetch } from ${JSON.stringify(new URL('patient-fetch.ts', import.meta.url).href)};
    const failure = (address) => patientFetch(address, new AbortController()).catch(({ message }) => message);
    ${body}`;
  const words = ['--import', 'tsx', '--input-type=module', '--eval', text];
  return execFileSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 });
};

it('ends if a server closes the very first connection of a process at once', () => {
  const body = `
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1', async () => {
      console.log(await failure('http://127.0.0.1:' + server.address().port));
      process.exit();
    });`;
  expect(inProcess(body)).toBe('fetch failed\n');
});

it('ends if a process sends its requests to a proxy that says nothing about this machine', () => {
  const body = `
    globalThis.fetch = (address, init) => new Promise((_, reject) => {
      if (!String(address).startsWith('http://127.0.0.1')) reject(new TypeError('no way'));
      init?.signal?.addEventListener('abort', () => reject(init.signal.reason));
    });
    console.log(await failure('http://there.example'));
    process.exit();`;
  expect(inProcess(body)).toBe('no way\n');
});
