/**
 * One training step in a worker of headless Chromium, on a page that is not isolated from other origins and on one that
 * is, where it has two threads, must give the losses that it gives in Node. Run after `npm run build`. Skipped, and
 * reported as skipped, without Chromium (`CHROMIUM` names another one).
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { createWasmKernels } from '../../packages/engine/dist/tensor/wasm/wasm.js';
import { trainingStep } from './step.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const TIMEOUT_MS = 90_000;
const TOLERANCE = 1e-6;
const TYPES = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };
const PAGE = `<!doctype html><script>
  new Worker('/worker.js', { type: 'module' }).onerror = (event) =>
    fetch('/result', { method: 'POST', body: JSON.stringify({ error: 'the worker failed: ' + event.message }) });
</script>`;

/** Bundles the worker, since a browser finds no npm packages by their names. Returns the bundle's directory. */
async function bundleWorker() {
  const directory = mkdtempSync(join(tmpdir(), 'drmas-browser-bundle-'));
  await build({
    configFile: false,
    root,
    base: './',
    logLevel: 'error',
    worker: { format: 'es' },
    build: {
      outDir: directory,
      target: 'es2022',
      modulePreload: false,
      rolldownOptions: { input: join(root, 'test/browser/worker.mjs'), output: { entryFileNames: 'worker.js' } },
    },
  });
  return directory;
}

const candidates = process.env.CHROMIUM ? [process.env.CHROMIUM] : ['chromium', 'chromium-browser', 'google-chrome'];
const browser = candidates.find((name) => spawnSync(name, ['--version']).status === 0);
if (browser === undefined) {
  console.log(`browser test skipped: none of ${candidates.join(', ')} runs here`);
  process.exit(0);
}

/** The response headers that isolate a page from other origins. */
const ISOLATED = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };

/** The result that the page posts. */
function inBrowser(headers) {
  return new Promise((resolve, reject) => {
    const server = createServer((request, response) => {
      const path = normalize(new URL(request.url, 'http://localhost').pathname);
      if (path === '/result') {
        let body = '';
        request.on('data', (part) => {
          body += part;
        });
        request.on('end', () => {
          response.end();
          finish(() => resolve(JSON.parse(body)));
        });
        return;
      }
      try {
        const folder = path.startsWith('/native/') ? join(root, 'packages/engine') : bundle;
        const content = path === '/' ? PAGE : readFileSync(join(folder, path));
        response.setHeaders(
          new Map(Object.entries({ ...headers, 'content-type': TYPES[extname(path)] ?? 'text/html' })),
        );
        response.end(content);
      } catch {
        response.writeHead(404).end();
      }
    });
    const profile = mkdtempSync(join(tmpdir(), 'drmas-browser-'));
    let chromium;
    const timer = setTimeout(() => finish(() => reject(new Error('the browser gave no answer'))), TIMEOUT_MS);
    let finished = false;
    const finish = (then) => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      server.close();
      server.closeAllConnections();
      chromium?.once('exit', () => {
        try {
          rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
        } catch {
          // One of the browser's processes was not gone yet; the profile is a temporary directory.
        }
        then();
      });
      // The whole group: Chromium's own processes outlive it by a moment, and write to the profile.
      if (chromium?.pid !== undefined) process.kill(-chromium.pid, 'SIGKILL');
    };
    server.listen(0, '127.0.0.1', () => {
      const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
      const url = `http://127.0.0.1:${server.address().port}/`;
      chromium = spawn(browser, [...flags, `--user-data-dir=${profile}`, url], { stdio: 'ignore', detached: true });
      chromium.once('exit', (code) => {
        if (!finished) reject(new Error(`${browser} ended with ${code}`));
      });
    });
  });
}

const here = await trainingStep(createWasmKernels(readFileSync(join(root, 'packages/engine/native/drmas.wasm'))));
if (!(here.after < here.before)) throw new Error(`the step did not lower the loss: ${here.before}, ${here.after}`);
const bundle = await bundleWorker();
process.once('exit', () => rmSync(bundle, { recursive: true, force: true }));
for (const [threads, headers] of [
  [1, {}],
  [2, ISOLATED],
]) {
  const there = await inBrowser(headers);
  if (there.error !== undefined) throw new Error(there.error);
  if (there.threads !== threads) throw new Error(`the page worked on ${there.threads} threads, expected ${threads}`);
  for (const key of ['before', 'after']) {
    if (!(Math.abs(there[key] - here[key]) <= TOLERANCE * Math.abs(here[key]))) {
      throw new Error(`the loss ${key} the step is ${there[key]} in the browser, ${here[key]} in Node`);
    }
  }
  const equal = there.before === here.before && there.after === here.after;
  console.log(
    `a training step in ${browser} (threads: ${threads}): loss ${there.before} -> ${there.after}, ` +
      `${equal ? 'the very numbers' : `within ${TOLERANCE}`} of Node`,
  );
}
