import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

const root = join(import.meta.dirname, '..');
// In the clone, whose configuration resolves `drmas`.
const directory = mkdtempSync(join(import.meta.dirname, '.rl-loop-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Starts the example as a person does from a clone, without a build. */
function start(...words: readonly string[]): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', 'examples/rl-loop.ts', ...words], { cwd: root });
}

async function output(...words: readonly string[]): Promise<string> {
  const child = start(...words);
  const streams = [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream));
  const [[printed, wrong], [code]] = await Promise.all([Promise.all(streams), once(child, 'exit')]);
  expect(code, wrong).toBe(0);
  return printed ?? '';
}

describe('the loop that its reader owns', () => {
  const saved = (name: string) => join(directory, name, 'model.safetensors');
  const lines: string[] = [];
  beforeAll(async () => {
    vi.spyOn(console, 'log').mockImplementation((...words) => void lines.push(words.join(' ')));
    vi.spyOn(process, 'argv', 'get').mockReturnValue(['node', 'rl-loop.ts', '30', join(directory, 'sort')]);
    await import('../examples/rl-loop.js');
    vi.restoreAllMocks();
  });

  it('is short', () => {
    expect(readFileSync(join(root, 'examples/rl-loop.ts'), 'utf8').trim().split('\n').length).toBeLessThanOrEqual(120);
  });

  it('learns to sort from rewards alone', () => {
    const rewards = lines.flatMap((line) => /^step \d+: reward (-?[\d.]+)/.exec(line)?.[1] ?? []).map(Number);
    const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
    expect(rewards.length).toBe(30);
    expect(mean(rewards.slice(0, 3))).toBeLessThan(0.3);
    expect(mean(rewards.slice(-3))).toBeGreaterThan(0.5);
  });

  it('does the same again as a program of its own, to the last bit', { tags: 'verify' }, async () => {
    const printed = (await output('30', join(directory, 'again'))).trim().split('\n');
    expect(printed.slice(0, -1)).toEqual(lines.slice(0, -1));
    expect(printed.at(-1)).toBe(lines.at(-1));
    expect(readFileSync(saved('again')).equals(readFileSync(saved('sort')))).toBe(true);
  });

  it('has a variation with two agents, which runs', async () => {
    const page = readFileSync(join(root, 'docs/engine-library.md'), 'utf8');
    const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
    const block = blocks.find((code) => code.includes('checker')) ?? '';
    expect(block.trim().split('\n').length).toBeLessThanOrEqual(20);
    const short = block.replace('models/sort', join(directory, 'sort')).replace('step <= 100', 'step <= 2');
    expect(short).not.toBe(block);
    const file = join(directory, 'two-agents', 'main.ts');
    mkdirSync(join(directory, 'two-agents'));
    writeFileSync(file, `${short}\nexport const steps = [writer, checker].map(({ parameters }) => parameters);\n`);
    const { steps } = (await import(file)) as { readonly steps: readonly number[] };
    expect(steps[0]).toBeGreaterThan(0);
    expect(steps[1]).toBe(steps[0]);
  });

  it('ends with Ctrl-C', { tags: 'verify' }, async () => {
    const child = start('100000');
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    child.kill('SIGINT');
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    expect(signal === 'SIGINT' || code === 130, `code ${code}, signal ${signal}`).toBe(true);
  });
});
