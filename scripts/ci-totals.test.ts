import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryRoot } from '../test/support/tiny-run.js';

const totals = fileURLToPath(new URL('../.ci/totals.mjs', import.meta.url));

it('shows the errors outside of tests of a suite that fails without a failed test', () => {
  const folder = temporaryRoot();
  mkdirSync(join(folder, 'results'));
  const assertionResults = [{ fullName: 'adds', status: 'passed', failureMessages: [] }];
  const report = { testResults: [{ name: 'sums.test.ts', status: 'passed', assertionResults }] };
  writeFileSync(join(folder, 'results', 'verify.json'), JSON.stringify(report));
  writeFileSync(join(folder, 'parts'), '1\tverify\n0\tcheck\n');
  writeFileSync(join(folder, 'output-verify.log'), 'a test\n⎯⎯ Unhandled Errors ⎯⎯\nError: a socket hung up\n');
  const { status, stdout } = spawnSync(process.execPath, [totals, folder], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stdout.split('\n')).toEqual([
    'failed: verify ended with 1',
    '⎯⎯ Unhandled Errors ⎯⎯',
    'Error: a socket hung up',
    '0 tests skipped',
    '2 passed, 1 failed',
    '',
  ]);
  // The suite ran again, and passed.
  writeFileSync(join(folder, 'parts'), '0\tverify\n0\tcheck\n');
  writeFileSync(join(folder, 'repeated'), 'verify\n');
  const again = spawnSync(process.execPath, [totals, folder], { encoding: 'utf8' });
  expect(again.stdout).toContain('DEFECTS: 1 passed only when they were repeated');
  expect(again.stdout).toContain('verify, whose error was in no test\n⎯⎯ Unhandled Errors ⎯⎯\nError: a socket hung up');
  expect(again.status).toBe(0);
});

it('tells apart a report in which all passed, as a suite runs again after it alone', () => {
  const file = join(temporaryRoot(), 'report.json');
  const allPassed = () => spawnSync(process.execPath, [totals, '--all-passed', file]).status;
  expect(allPassed()).toBe(1);
  for (const [status, code] of Object.entries({ passed: 0, failed: 1 })) {
    writeFileSync(file, JSON.stringify({ testResults: [{ name: 'sums.test.ts', status, assertionResults: [] }] }));
    expect(allPassed(), status).toBe(code);
  }
});
