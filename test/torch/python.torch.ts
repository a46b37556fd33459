/** The worker's own tests, and its style. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { torchPython } from './torch-python.js';

const available = await torchPython();
const cwd = fileURLToPath(new URL('../../packages/engine/python', import.meta.url));
const bench = fileURLToPath(new URL('../../research/bench/card/card.py', import.meta.url));
const run = (...words: string[]) =>
  spawnSync(process.env.DRMAS_PYTHON as string, words, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, OMP_NUM_THREADS: '1' },
  });

describe.skipIf(!available)('the worker in Python', () => {
  it('passes its own tests', () => {
    const { status, stderr } = run('-m', 'unittest');
    expect(stderr).toMatch(/^OK$/m);
    expect(status).toBe(0);
  });

  it('is where the bench of cards looks for it, and a part that fails leaves the others', () => {
    const out = mkdtempSync(join(tmpdir(), 'drmas-card-'));
    const rehearsal = ['--device', 'cpu', '--shapes', 'absent,tiny', '--parts', 'check,publish'];
    const { stdout, stderr, status } = run(bench, ...rehearsal, '--out', out);
    expect(stdout, stderr).toMatch(/"part": "check".*"repeats_equal": true/);
    expect(stdout).toMatch(/"part": "publish".*"shape": "absent", "failed": "KeyError: 'absent'"/);
    expect(stdout).toMatch(/"part": "publish".*"shape": "tiny", "ms"/);
    expect(readFileSync(join(out, 'card.jsonl'), 'utf8')).toBe(stdout);
    expect(status).toBe(0);
  });

  it.each(['check', 'format --check'])('keeps to its style: ruff %s', (words) => {
    const { stdout, stderr, status } = run('-m', 'ruff', ...words.split(' '), '.');
    expect(`${stdout}${stderr}`).toMatch(/All checks passed|already formatted/);
    expect(status).toBe(0);
  });

  it('has the types that it says it has', () => {
    const { stdout, status } = run('-m', 'mypy', 'drmas_torch');
    expect(stdout).toMatch(/^Success/m);
    expect(status).toBe(0);
  });
});
