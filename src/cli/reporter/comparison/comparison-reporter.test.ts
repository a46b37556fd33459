import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stamped, step, warmup } from '../../../../test/fixtures/run-events.js';
import { quickPlace } from '../../../../test/support/quick-place.js';
import { tinyDefinition } from '../../../../test/support/tiny-run.js';
import {
  type AblateOptions,
  type AblationPlan,
  type AblationResult,
  ablateIn,
} from '../../../runs/studies/ablation/ablate.js';
import { guardedStream } from '../screen.js';
import { comparisonLines } from './comparison-printer.js';
import { ComparisonReporter } from './comparison-reporter.js';

const vary = { 'advantage.type': ['drmas', 'grpo', 'grpo-turn'] };
let root: string;
let result: AblationResult;

/** A small comparison, with the callbacks of its options. */
const compared = (options: Partial<AblateOptions> = {}) =>
  ablateIn(quickPlace, tinyDefinition(), {
    vary,
    seeds: 1,
    parallel: 1,
    threads: 1,
    run: join(root, 'run'),
    ...options,
  });

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-comparison-'));
  result = await compared();
});
afterAll(() => rm(root, { recursive: true }));

/** The final screen of a terminal with so many columns, and all text that was written to it. */
async function onTerminal(width: number, play: (reporter: ComparisonReporter) => Promise<void> | void) {
  let written = '';
  const write = (text: string) => {
    written += text;
  };
  const { write: guarded } = guardedStream({ write }, []);
  await play(new ComparisonReporter({ write: (text) => void guarded(text), width, live: true, colour: false }));
  const lines = written
    .split('\n')
    .map((line) => line.split('\r').reduce((shown, text) => text + shown.slice(text.length)));
  return { written, lines: lines.map((line) => line.trimEnd()) };
}

describe('the end of a comparison', () => {
  it.each([49, 80, 100])('is readable in %d columns', (width) => {
    const lines = comparisonLines(result, width);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
    const columns = lines.filter((line) => /^solver( |$)/.test(line));
    expect(columns.join(' ').split(/ +/)).toEqual(expect.arrayContaining(['drmas', 'grpo', 'grpo-turn']));
    expect(columns.length).toBe(width < 60 ? 2 : 1);
  });
});

describe('ComparisonReporter', () => {
  it('writes a row once every run of the pair has that evaluation, and nothing over it', async () => {
    const run = join(root, 'second');
    const { written, lines } = await onTerminal(49, async (reporter) => {
      await compared({
        run,
        onStart: (plan) => reporter.onStart(plan),
        onBegin: (...args) => reporter.onBegin(...args),
        onEvent: (...args) => reporter.onEvent(...args),
        onEnd: (ended) => reporter.onEnd(ended),
      });
      reporter.finish(result, run);
    });
    for (const sign of ['\u001b', '·']) expect(written).not.toContain(sign);
    expect(Math.max(...lines.filter((line) => !line.includes(root)).map((line) => line.length))).toBeLessThanOrEqual(
      49,
    );
    const rows = lines.filter((line) => /^(held out|step \d+ .*%)/.test(line)).map((line) => line.split(/ {2,}/));
    expect(rows).toEqual([
      ['held out', 'drmas', 'grpo', 'grpo-turn'],
      ['step 0', '10.0 %', '10.0 %', '10.0 %'],
      ['step 4', '18.0 %', '10.0 %', '10.0 %'],
    ]);
    expect(lines.slice(0, 3)).toEqual([
      'recipe    tiny, seed 1',
      'team      digits: solver, verifier',
      'compares  drmas and grpo and grpo-turn from the',
    ]);
  });

  it('shows how far the runs are, and a warning of a kind once', async () => {
    let plan: AblationPlan | undefined;
    await compared({
      run: join(root, 'third'),
      onStart: (begun) => {
        plan = begun;
      },
    });
    const { lines, written } = await onTerminal(80, (reporter) => {
      if (plan === undefined) throw new Error('expected a plan');
      reporter.onStart(plan);
      const [first, second] = plan.runs;
      if (first === undefined || second === undefined) throw new Error('expected two runs');
      for (const planned of [first, second]) reporter.onBegin(planned, []);
      const warning = (agent: string): RunEvent =>
        stamped({ type: 'warning', code: 'health', message: `${agent} repeats itself`, agent });
      reporter.onEvent(first, stamped(warmup(50)));
      reporter.onEvent(first, stamped(step(1)));
      for (const agent of ['solver', 'solver', 'verifier']) reporter.onEvent(first, warning(agent));
      reporter.onEvent(second, warning('solver'));
      reporter.onEvent(second, stamped(step(2)));
      reporter.interrupted('go on');
    });
    expect(lines.filter((line) => line.startsWith('warning'))).toEqual([
      'warning: drmas: solver repeats itself',
      'warning: drmas: verifier repeats itself',
      'warning: grpo: solver repeats itself',
    ]);
    expect(written).toContain('drmas 1/4 reward 0.60  grpo 2/4 reward 0.61');
    expect(written).toContain('warm start');
    expect(lines.at(-2)).toBe('go on');
  });
});
