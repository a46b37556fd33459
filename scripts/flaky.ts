/**
 * `npm run flaky`: runs the daily tests again and again where tests fail that lean on the machine: beside four busy
 * loops, in a folder and a temporary folder with a space and letters outside ASCII, every second time as a user without
 * rights (if this one is root). Nothing is repeated. Prints how often each test failed, and exits with 1 if one did.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { filesOf } from './house/file-rules.js';
import { runProgram, UsageError } from './support/run-program.js';

const USAGE = `npm run flaky -- [--runs 10] [--loops 4] [FILES ...]

  --runs N   runs of the daily tests (default 10)
  --loops N  busy loops beside them (default 4)
  FILES      only these test files, as vitest takes them
`;
const root = fileURLToPath(new URL('..', import.meta.url));
/** The id of the user without rights on Debian. */
const NOBODY = 65534;
const BUSY = 'for (;;);';
/** The environment without npm's settings, which belong to the user who typed the command. */
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')));

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

/** The files of the checkout that git knows or would add, copied; the packages are links of the file system. */
function copyCheckout(to: string): void {
  for (const path of filesOf(root)) cpSync(join(root, path), join(to, path), { recursive: true });
  const { status } = spawnSync('cp', ['-al', join(root, 'node_modules'), join(to, 'node_modules')]);
  if (status !== 0) cpSync(join(root, 'node_modules'), join(to, 'node_modules'), { recursive: true });
  // Caches of earlier runs may belong to another user.
  for (const name of readdirSync(join(to, 'node_modules')))
    if (name.startsWith('.') && name !== '.bin') rmSync(join(to, 'node_modules', name), { recursive: true });
  spawnSync('git', ['init', '-q'], { cwd: to });
}

/** Gives a folder's own files to the user without rights. The packages stay with their owner, and can be read. */
function giveAway(folder: string): void {
  chownSync(folder, NOBODY, NOBODY);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name === 'node_modules') chownSync(path, NOBODY, NOBODY);
    else if (entry.isDirectory()) giveAway(path);
    else chownSync(path, NOBODY, NOBODY);
  }
}

/** The names of the tests that failed, or of the file if it could not be loaded. */
function failedTests(report: string, folder: string): string[] {
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(folder, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [`${file}: ${message.split('\n')[0]}`];
    return failed.map(({ fullName }) => `${file} > ${fullName}`);
  });
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { runs: { type: 'string', default: '10' }, loops: { type: 'string', default: '4' } },
    allowPositionals: true,
  });
  const [runs, loops] = [values.runs, values.loops].map(Number);
  if (!(Number.isInteger(runs) && Number.isInteger(loops)) || (runs as number) < 1 || (loops as number) < 0)
    throw new UsageError(`--runs ${values.runs} --loops ${values.loops}: expected whole numbers, at least 1 run`);

  const place = mkdtempSync(join(tmpdir(), 'drmas flaky ü '));
  const children: ChildProcess[] = [];
  const end = () => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    rmSync(place, { recursive: true, force: true });
  };
  process.once('exit', end);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

  const isRoot = process.getuid?.() === 0;
  const users = isRoot ? [undefined, NOBODY] : [undefined];
  const places = users.map((user) => {
    const folder = join(place, user === undefined ? 'check out' : 'check out é');
    mkdirSync(folder, { recursive: true });
    copyCheckout(folder);
    for (const name of ['tmp ö', 'home ñ']) mkdirSync(join(folder, '..', `${user ?? 'own'} ${name}`));
    if (user !== undefined) {
      spawnSync('chmod', ['755', place]);
      giveAway(folder);
      for (const name of ['tmp ö', 'home ñ']) giveAway(join(folder, '..', `${user} ${name}`));
    }
    return {
      folder,
      user,
      temporary: join(place, `${user ?? 'own'} tmp ö`),
      home: join(place, `${user ?? 'own'} home ñ`),
    };
  });
  for (let i = 0; i < (loops as number); i++) children.push(spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }));

  const failures = new Map<string, number>();
  for (let run = 0; run < (runs as number); run++) {
    const { folder, user, temporary, home } = places[run % places.length] as (typeof places)[number];
    const report = join(temporary, `report-${run}.json`);
    const started = Date.now();
    const words = ['node_modules/vitest/vitest.mjs', 'run', '--retry=0', '--reporter=json', `--outputFile=${report}`];
    const child = spawn(process.execPath, [...words, ...positionals], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: {
        ...environment,
        TMPDIR: temporary,
        ...(user === undefined ? {} : { HOME: home, XDG_CACHE_HOME: join(home, 'cache') }),
      },
      ...(user === undefined ? {} : { uid: user, gid: user }),
    });
    children.push(child);
    const [code] = (await once(child, 'close')) as [number | null];
    const failed = existsSync(report) ? failedTests(report, folder) : [];
    if (failed.length === 0 && code !== 0) failed.push(`the run itself ended with ${code}`);
    for (const name of failed) failures.set(name, (failures.get(name) ?? 0) + 1);
    const who = user === undefined ? '' : ', as an ordinary user';
    const seconds = Math.round((Date.now() - started) / 1000);
    console.log(`run ${run + 1} of ${runs}: ${failed.length} failed (${seconds} s${who})`);
    for (const name of failed) console.log(`  ${name}`);
  }
  for (const [name, count] of [...failures].sort((a, b) => b[1] - a[1])) console.log(`${count} of ${runs}: ${name}`);
  end();
  const tests = [...failures.keys()].filter((name) => !name.startsWith('the run itself'));
  console.log(`${tests.length} tests failed in ${runs} runs beside ${loops} busy loops`);
  return failures.size === 0 ? 0 : 1;
}

await runProgram(USAGE, main);
