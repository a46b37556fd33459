// @module-tag verify
import { spawn } from 'node:child_process';
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
import { runInScope } from ${source('base/platform/async-scopes.ts')};
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
  const [, signal] = await once(child, 'close');
  return { output, signal };
}

it.each([
  ['a loop', 'for (;;);'],
  ['a regular expression', "/^(a+)+$/.test('a'.repeat(60) + 'b')"],
])('code that does not return is named, and its process ends when the time is up: %s', async (_, blocks) => {
  const { output, signal } = await run(program(900, blocks));
  expect(signal).toBe('SIGKILL');
  expect(output).toMatch(
    /^warning: the team 'bad' on t\/0 does not return, at\n(.*\n)*? +at play \(.*program\.mts:\d+/,
  );
  expect(output).toContain("Its episode's time is up.");
});

it('Ctrl-C ends a process whose main thread hears nothing', async () => {
  let pressed = false;
  const { output, signal } = await run(program(600_000, "process.on('SIGINT', () => {}); for (;;);"), (group, text) => {
    if (pressed || !text.includes('Ctrl-C ends the process')) return;
    pressed = true;
    const press = setInterval(() => {
      try {
        process.kill(-group, 'SIGINT');
      } catch {
        clearInterval(press);
      }
    }, 200);
  });
  expect(signal).toBe('SIGKILL');
  expect(output).toContain("interrupted: the team 'bad' on t/0 does not return, at");
});
