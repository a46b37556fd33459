/**
 * Prints the failures of a whole check and, as its last line, `N passed, N failed`: the tests of every suite, and each
 * part that is not a suite as one. Exits with 1 if something failed or nothing ran. A test that passed only when it was
 * repeated is a defect, and named last.
 * Arguments: a folder with `parts`, one line `exit code, name` a part separated by a tab; `results/NAME.json`, the JSON
 * report of vitest for a part that is a suite; `output-NAME.log`, all that the suite printed; and `repeated`, the suites
 * that ran again because they ended with an error though no test failed. The errors of such an output are printed:
 * vitest reports errors outside of all tests only there.
 *
 * With `--all-passed FILE`: exits with 0 if the report of vitest is there and all its tests passed, else with 1.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder = '.', report] = process.argv.slice(2);
if (folder === '--all-passed') process.exit(allPassed(report) ? 0 : 1);
const RANK = ['pending', 'passed', 'failed'];
/** The status of each test by suite, file, name and number of its kind. A slow test is skipped by the daily group. */
const tests = new Map();
const broken = new Set();
const repeated = [];

for (const name of existsSync(join(folder, 'results')) ? readdirSync(join(folder, 'results')).sort() : []) {
  const part = name.replace(/\.json$/, '');
  const { testResults } = JSON.parse(readFileSync(join(folder, 'results', name), 'utf8'));
  for (const { name: file, message, status, assertionResults } of testResults) {
    const seen = new Map();
    if (status === 'failed' && assertionResults.every((test) => test.status !== 'failed')) {
      console.log(`failed: ${file}\n${message}`);
      tests.set(`${part} ${file}`, 'failed');
      broken.add(part);
    }
    for (const test of assertionResults) {
      const nth = seen.get(test.fullName) ?? 0;
      seen.set(test.fullName, nth + 1);
      const suite = part === 'verify' ? 'test' : part;
      const key = JSON.stringify([suite, file, test.fullName, nth]);
      const status = RANK.includes(test.status) ? test.status : 'pending';
      if (RANK.indexOf(status) >= RANK.indexOf(tests.get(key) ?? 'pending')) tests.set(key, status);
      const reasons = test.failureMessages?.join('\n') ?? '';
      if (status === 'passed' && reasons !== '') repeated.push(`${file} > ${test.fullName}\n${reasons}`);
      if (status !== 'failed') continue;
      broken.add(part);
      console.log(`failed: ${file} > ${test.fullName}\n${reasons}`);
    }
  }
}

/** The part of an output that begins with vitest's title of errors outside of tests, or else its last lines. */
function errorsOf(file) {
  if (!existsSync(file)) return '';
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const title = lines.findIndex((line) => /Unhandled (Errors?|Rejections?)|Uncaught Exception/.test(line));
  return title < 0 ? lines.slice(-30).join('\n') : lines.slice(title, title + 80).join('\n');
}

/** Whether a report of vitest is there, and all of its files and tests passed. */
function allPassed(file) {
  if (!existsSync(file)) return false;
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults.length > 0 && testResults.every(({ status }) => status !== 'failed');
}

const counts = { passed: 0, failed: 0, pending: 0 };
for (const status of tests.values()) counts[status]++;
const parts = existsSync(join(folder, 'parts')) ? readFileSync(join(folder, 'parts'), 'utf8').trim() : '';
for (const line of parts === '' ? [] : parts.split('\n')) {
  const [code = '1', part = ''] = line.split('\t');
  const isSuite = existsSync(join(folder, 'results', `${part}.json`));
  if (code === '0') counts.passed += isSuite ? 0 : 1;
  else if (!broken.has(part)) {
    console.log(`failed: ${part} ended with ${code}`);
    console.log(errorsOf(join(folder, `output-${part}.log`)));
    counts.failed++;
  }
}

for (const part of existsSync(join(folder, 'repeated'))
  ? readFileSync(join(folder, 'repeated'), 'utf8').trim().split('\n')
  : [])
  repeated.push(`${part}, whose error was in no test\n${errorsOf(join(folder, `output-${part}.log`))}`);
if (repeated.length > 0)
  console.log(
    `\nDEFECTS: ${repeated.length} passed only when they were repeated; mend them before anything else:\n${repeated.join('\n')}\n`,
  );
console.log(`${counts.pending} tests skipped`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 || counts.passed === 0 ? 1 : 0);
