/** Plug-ins of a user's recipe (`use`) if its episodes are played in threads, or by workers of a queue. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CompiledProgram, compiledProgram } from '../support/compiled-program.js';
import { temporaryRoot } from '../support/tiny-run.js';
import { kill, noRedis, REDIS } from './workers.js';

const unavailable = await noRedis();
if (unavailable !== undefined) console.log(`SKIPPED: plug-ins on a queue, because ${unavailable}`);
const repository = fileURLToPath(new URL('../..', import.meta.url));
const root = temporaryRoot();
const project = join(root, 'project');
let program: CompiledProgram;

beforeAll(async () => {
  program = await compiledProgram();
  await cp(join(repository, 'examples/plug-ins'), project, { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules'));
});
afterAll(() => program.remove());

const start = (words: readonly string[]) => spawn(process.execPath, [program.main, ...words], { cwd: project });

/** The files of a run that must be equal wherever its episodes are played. */
async function trained(name: string, place: string, set: readonly string[]): Promise<Record<string, string>> {
  const run = join(root, `${name}-${place}`);
  const words = set.flatMap((setting) => ['--set', setting]);
  const child = start(['train', `${name}.ts`, '--run', run, '--threads', '1', '--json', ...words]);
  let err = '';
  child.stderr.on('data', (part) => {
    err += part;
  });
  child.stdout.resume();
  const [code] = await once(child, 'close');
  expect(code, err).toBe(0);
  const files = await readdir(run, { recursive: true });
  const kept = files.filter((file) => /^episodes.*\.jsonl$|\.csv$|unigram\.json$|model\.safetensors$/.test(file));
  const contents = await Promise.all(
    kept.map(async (file) => [file, await readFile(join(run, file), 'base64')] as const),
  );
  return Object.fromEntries(contents);
}

describe.each(['own-estimator', 'own-loss', 'own-tracker', 'own-backend'])('the plug-in of %s', (name) => {
  let here: Record<string, string>;
  beforeAll(async () => {
    here = await trained(name, 'program', []);
    expect(Object.keys(here).length).toBeGreaterThan(5);
  });

  it('works with episodes in threads', async () => {
    expect(await trained(name, 'threads', ['rollout.isolate=2'])).toEqual(here);
  });

  it.skipIf(unavailable !== undefined)('works with episodes on a worker', async () => {
    const queue = `test-${process.pid}-${name}`;
    const worker = start(['serve', 'worker', '--url', REDIS, '--queue', queue, '--recipes', project]);
    try {
      const settings = ['type=queue', `url=${REDIS}`, `queue=${queue}`, 'leaseSeconds=2'];
      expect(
        await trained(
          name,
          'queue',
          settings.map((setting) => `rollout.${setting}`),
        ),
      ).toEqual(here);
    } finally {
      await kill(worker);
    }
  });
});
