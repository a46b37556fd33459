import { expect, it } from 'vitest';
import { checks, verify } from './verify.js';

/** The commands that a request starts, and its exit code. */
function started(words: readonly string[], failing?: string) {
  const commands: string[] = [];
  const code = verify(words, (command, environment = {}) => {
    commands.push([...Object.entries(environment).map(([name, value]) => `${name}=${value}`), ...command].join(' '));
    return failing !== undefined && command.includes(failing) ? 3 : 0;
  });
  return { code, commands };
}

it('runs the slow tests without a name, and named checks in order', () => {
  expect(started([])).toEqual({ code: 0, commands: ['vitest run --mode verify'] });
  expect(started(['s3', 'queue-rate', '--reporter=dot'])).toEqual({
    code: 0,
    commands: [
      'vitest run --config test/suites.config.ts --mode s3',
      'DRMAS_TEST_EPISODES=10000 vitest run --config test/suites.config.ts --mode queue -t 3.2 times --reporter=dot',
    ],
  });
});

it('builds the package once before the checks that need it, and stops at a failure', () => {
  expect(started(['faults', 'long', '--short'], 'scripts/faults/main.ts')).toEqual({
    code: 3,
    commands: ['npm run --silent build', 'tsx scripts/faults/main.ts'],
  });
  expect(started(['faults'], 'build')).toEqual({ code: 3, commands: ['npm run --silent build'] });
});

it('refuses an unknown name', () => {
  expect(started(['nothing'])).toEqual({ code: 2, commands: [] });
  expect(Object.values(checks).every(({ does }) => does.length > 0)).toBe(true);
});
