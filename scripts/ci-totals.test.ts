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
});
