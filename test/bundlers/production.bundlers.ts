/** A small program on `drmas/serve` from the packed package: in Node, through bundlers, in Bun and in Deno. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openModel } from '@drmas/engine';
import { tinyDecoder } from '@drmas/engine/model';
import { build as esbuild } from 'esbuild';
import { build as vite } from 'vite';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { LIBRARIES } from '../../scripts/support/libraries.js';
import { packAll, unpackInto } from '../../scripts/support/packed-packages.js';
import { npmEnvironment } from '../support/npm-environment.js';
import { freePort, ServerProcess } from '../support/server-process.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));

const run = async (command: string, words: readonly string[], cwd: string): Promise<string> =>
  (await promisify(execFile)(command, words, { cwd, env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1' } })).stdout;

const readJson = async (path: string) => JSON.parse(await readFile(path, 'utf8'));

const dependenciesOf = async (folder: string) =>
  (await readJson(join(repository, folder, 'package.json'))).dependencies as Record<string, string>;
const needed = await Promise.all([...Object.values(LIBRARIES), '.'].map(dependenciesOf));
const others = Object.fromEntries(needed.flatMap(Object.entries).filter(([name]) => !(name in LIBRARIES)));

/** Apps are in folders below the environment's, where they find the packages. */
const installed = await npmEnvironment({
  name: 'bundlers',
  packages: {
    bun: '1.4.5',
    deno: '2.9.6',
    next: '16.4.6',
    react: '19.3.1',
    'react-dom': '19.3.1',
    webpack: '5.112.2',
    ...others,
  },
  scripts: ['bun', 'deno'],
  what: 'Next.js, Bun and Deno (540 MB)',
});
const folder = 'folder' in installed ? installed.folder : '';
if ('unavailable' in installed) console.log(`SKIPPED: bundlers, Bun and Deno: ${installed.unavailable}`);
const program = (name: string) => join(folder, 'node_modules/.bin', name);

const ANSWER = `import { loadPolicy, trainable, trainedAgents } from 'drmas/serve';

// A model's answer: as tokens, and as text through AI SDK's interface.
export async function answer(directory) {
  const policy = await loadPolicy(directory, { threads: 1 });
  const prompt = policy.tokenizer.encode('12 + 7 = ');
  const { tokens } = await policy.generate({ prompt, maxTokens: 24, temperature: 1, seed: 3 });
  await policy.dispose();
  const agents = trainedAgents(directory, { threads: 1 });
  const model = trainable('model', { otherwise: agents.model('model') });
  const { content } = await model.doGenerate({
    prompt: [{ role: 'user', content: [{ type: 'text', text: '12 + 7 = ' }] }],
    seed: 3,
    maxOutputTokens: 12,
  });
  await agents.dispose();
  return { tokens: [...tokens], text: content.map(({ text }) => text).join('') };
}
`;
const MAIN = `import { answer } from './answer.js';

answer(process.argv[2]).then((answered) => console.log(JSON.stringify(answered)));
`;
const ROUTE = `import { answer } from '../../answer.js';

export const dynamic = 'force-dynamic';
export const GET = async () => Response.json(await answer(process.env.MODEL));
`;

let app: string;
let model: string;
/** The answer in Node, without a bundler. */
let expected: unknown;

const answerOf = async (command: string, words: readonly string[]): Promise<unknown> =>
  JSON.parse(await run(command, [...words, model], app));

beforeAll(async () => {
  if (folder === '') return;
  app = await mkdtemp(join(folder, 'app-'));
  unpackInto(join(app, 'node_modules'), packAll(app));
  await mkdir(join(app, 'app/answer'), { recursive: true });
  for (const [name, text] of Object.entries({
    'package.json': '{ "private": true, "type": "module" }',
    'next.config.mjs': 'export default {};',
    'app/layout.js': 'export default ({ children }) => children;',
    'app/answer/route.js': ROUTE,
    'answer.js': ANSWER,
    'main.js': MAIN,
  }))
    await writeFile(join(app, name), text);
  const sizes = { width: 48, layers: 2, heads: 3, feedForward: 128, context: 128 };
  const tiny = await openModel(tinyDecoder({ ...sizes, tokenizer: { type: 'bytes' } }), { seed: 7, threads: 1 });
  model = join(app, 'model');
  await tiny.save(model);
  await tiny.dispose();
  expected = await answerOf(process.execPath, ['main.js']);
});
afterAll(async () => {
  if (app !== undefined) await rm(app, { recursive: true, force: true });
});

it.skipIf(folder === '')('answers in Node', () => {
  expect(expected).toMatchObject({ tokens: { length: 24 }, text: expect.stringMatching(/./) });
});

it.skipIf(folder === '').each(['esm', 'cjs'] as const)(
  'gives the same tokens from a bundle of esbuild: %s',
  async (format) => {
    const outfile = join(app, `esbuild/${format}.${format === 'esm' ? 'mjs' : 'cjs'}`);
    const entryPoints = [join(app, 'main.js')];
    await esbuild({ entryPoints, bundle: true, platform: 'node', format, outfile, logLevel: 'error' });
    expect(await answerOf(process.execPath, [outfile])).toEqual(expected);
  },
);

it.skipIf(folder === '').each(['esm', 'cjs'] as const)(
  'makes bundles of every entry without the optional packages: %s',
  async (format) => {
    const { exports } = await readJson(join(repository, 'package.json'));
    const entries = Object.keys(exports).filter((name) => !/[*]|json$/.test(name));
    for (const entry of entries) {
      const contents = `import * as names from 'drmas${entry.slice(1)}'; console.log(Object.keys(names).length);`;
      const outfile = join(app, `entries/${entry.slice(2)}.${format === 'esm' ? 'mjs' : 'cjs'}`);
      const stdin = { contents, resolveDir: app };
      await esbuild({ stdin, bundle: true, platform: 'node', format, outfile, logLevel: 'error' });
      expect(Number(await run(process.execPath, [outfile], app)), entry).toBeGreaterThanOrEqual(0);
    }
  },
);

it.skipIf(folder === '')('gives the same tokens from an SSR build of Vite that bundles all packages', async () => {
  const ssr = { noExternal: true, target: 'node' } as const;
  const build = { ssr: 'main.js', outDir: 'vite' };
  await vite({ root: app, configFile: false, logLevel: 'error', ssr, build });
  expect(await answerOf(process.execPath, ['vite/main.js'])).toEqual(expected);
});

it.skipIf(folder === '')('gives the same tokens from a route of Next.js', async () => {
  await run(program('next'), ['build'], app);
  const port = await freePort();
  const words = ['start', '--port', String(port), '--hostname', '127.0.0.1', app];
  const server = new ServerProcess(program('next'), words, { MODEL: model, NEXT_TELEMETRY_DISABLED: '1' });
  onTestFinished(() => server.stop());
  const url = `http://127.0.0.1:${port}/answer`;
  await server.ready(url);
  expect(await (await fetch(url)).json()).toEqual(expected);
});

it.skipIf(folder === '')('gives the same tokens from a bundle of webpack', async () => {
  const settings = { mode: 'production', target: 'node', entry: './main.js', output: { path: join(app, 'webpack') } };
  const script = `import webpack from 'webpack';
webpack(${JSON.stringify(settings)}, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString('errors-only'));
});`;
  await writeFile(join(app, 'pack.js'), script);
  await run(process.execPath, ['pack.js'], app);
  await writeFile(join(app, 'webpack/package.json'), '{ "type": "commonjs" }');
  expect(await answerOf(process.execPath, ['webpack/main.js'])).toEqual(expected);
});

it.skipIf(folder === '')('gives the same tokens in Bun', async () => {
  expect(await answerOf(program('bun'), ['main.js'])).toEqual(expected);
});

it.skipIf(folder === '')('loads a recipe in Bun', async () => {
  const command = join(app, 'node_modules/drmas/dist/src/cli/main.js');
  const recipe = join(app, 'node_modules/drmas/templates/project/team.ts');
  expect(await run(program('bun'), [command, 'recipes', 'show', recipe], app)).toContain('"recompute"');
});

it.skipIf(folder === '')('gives the same tokens in Deno', async () => {
  expect(await answerOf(program('deno'), ['run', '--allow-all', 'main.js'])).toEqual(expected);
});
