// @module-tag verify
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drmas-watchdog-'));
});
afterEach(() => rm(folder, { recursive: true }));

const source = (path: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../src', path)).href);

/** A program that plays one episode whose code does not return, under a watchdog. */
const program = (endAfterMs: number, blocks: string) => `
import { enableWatchdog, watchTeams } from ${source('teams/rollout/watchdog/watchdog.ts')};
import { runInScope } from ${source('../packages/engine/src/base/platform/async-scopes.ts')};
const alive = setInterval(() => {}, 1000);
await enableWatchdog({ tellAfterMs: 300 });
watchTeams(${endAfterMs});
const scope = { name: "the team 'bad' on t/0", signal: new AbortController().signal, stray() {} };
runInScope(scope, () => {
  function play() { ${blocks} }
  play();
});
`;

/** Runs the program in a group of processes of its own. @param act is called when something is output on stderr */
async function run(code: string, act: (group: number, output: string) => void = () => {}) {
  const file = join(folder, 'program.mts');
  await writeFile(file, code);
  const child = spawn(process.execPath, ['--import', 'tsx', file], { cwd: process.cwd(), detached: true });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  child.stderr.on('data', (text) => {
    output += text;
    act(child.pid as number, output);
  });
  const [exitCode, signal] = await once(child, 'close');
  return { output, signal, exitCode };
}

it.each([
  ['a loop', 'for (;;);'],
  ['a regular expression', "/^(a+)+$/.test('a'.repeat(60) + 'b')"],
  ['microtasks', 'const next = () => queueMicrotask(next); next();'],
  ['awaits of nothing', 'void (async () => { for (;;) await null; })();'],
])('code that does not return is named, and its process ends when the time is up: %s', async (_, blocks) => {
  const { output, exitCode } = await run(program(3_000, blocks));
  expect(exitCode).toBe(1);
  expect(output).toMatch(/^warning: the team 'bad' on t\/0 does not return, at\n(.*\n)*? +at .*program\.mts:\d+/);
  expect(output).toContain("Its episode's time is up.");
});

const END_OF_PLAY =
  "const end = watchTeams(600_000); end(); process.on('SIGINT', () => {}); process.on('SIGTERM', () => {});";

it.each(
  (['SIGINT', 'SIGTERM'] as const).flatMap((signal) =>
    ['for (;;);', 'void (async () => { for (;;) await null; })();'].map((blocks) => [signal, blocks] as const),
  ),
)('%s ends a process whose main thread hears nothing, also after the rollout: %s', async (name, blocks) => {
  let isPressed = false;
  const code = program(600_000, blocks).replace('watchTeams(600000);', END_OF_PLAY);
  const { output, signal } = await run(code, (pid, text) => {
    if (isPressed || !text.includes('Ctrl-C ends the process')) return;
    isPressed = true;
    process.kill(pid, name);
  });
  expect(signal).toBe(name);
  expect(output).toContain("warning: the team 'bad' on t/0 does not return, at");
});

it('listeners of signals come back when the code returns', async () => {
  const blocks = 'const until = Date.now() + 2_500; while (Date.now() < until);';
  const hears = "process.on('SIGTERM', () => process.exit(41));\nrunInScope(scope";
  const signal = "setTimeout(() => process.kill(process.pid, 'SIGTERM'), 500);";
  const { exitCode } = await run(program(600_000, blocks).replace('runInScope(scope', hears).concat(signal));
  expect(exitCode).toBe(41);
});

// A full heap is collected again and again: 4 s alone, half a minute beside six busy programs.
it('memory that is nearly full is reported before it is full', { timeout: 240_000 }, async () => {
  const grows = 'const all = []; for (;;) all.push(new Array(1e5).fill(0.5 + all.length));';
  const { output } = await run(
    program(600_000, grows).replace(
      'const alive',
      "import v8 from 'node:v8';\nv8.setFlagsFromString('--max-old-space-size=300');\nconst alive",
    ),
  );
  expect(output).toMatch(/^warning: the JavaScript objects of this process take \d+ MB of at most \d+ MB/m);
});

/** A command that leaves a thread only the time that no other program wants. */
const idles = process.platform === 'linux' && spawnSync('sh', ['-c', 'command -v chrt taskset']).status === 0;

it.skipIf(!idles)('a thread that gets no processor is not accused', async () => {
  // The main thread shares a processor with busy programs and has the least right to it. The watchdog has another.
  const busy = Array.from({ length: 4 }, () => spawn('taskset', ['-c', '0', 'sh', '-c', 'while :; do :; done']));
  onTestFinished(() => busy.forEach((each) => void each.kill('SIGKILL')));
  const starved = `
import { execFileSync } from 'node:child_process';
execFileSync('taskset', ['-p', '-c', '0', String(process.pid)]);
execFileSync('chrt', ['--idle', '-p', '0', String(process.pid)]);
const round = () => { for (const until = performance.now() + 20; performance.now() < until; ); setTimeout(round, 1); };
round();
setTimeout(() => process.exit(0), 12_000);
`;
  const { output } = await run(program(600_000, '').replace('runInScope(scope', `${starved}\nrunInScope(scope`));
  expect(output).not.toMatch(/does not return|lets nothing else run/);
});
