import { describe, expect, it } from 'vitest';
import { houseFindings } from './file-rules.js';

const check = (files: Record<string, string>) =>
  houseFindings(Object.entries(files).map(([path, text]) => ({ path, text }))).map(
    ({ path, line, message }) => `${path}:${line}: ${message}`,
  );
const words = (columns: number) => 'four '.repeat(columns).slice(0, columns - 1);

describe('the house check', () => {
  it('measures comments, C++ and prose; code of TypeScript, tables and fences are not its business', () => {
    const long = words(130);
    expect(
      check({
        'src/a.ts': `const text = '${long}';\n/** ${words(100)} */`,
        'src/b.ts': `/**\n * \`\`\`ts\n * ${long}\n * \`\`\`\n */`,
        'docs/a.md': `| ${long} |\n\n\`\`\`ts\n${long}\n\`\`\`\nshort`,
        'docs/b.md': `See [the address](https://example.org/${'x'.repeat(120)}).`,
      }),
    ).toEqual([]);
    expect(
      check({
        'src/a.ts': `/**\n * ${long}\n */\nconst x = [\n  // ${long}\n];`,
        'packages/engine/native/a.cpp': `// ${long}`,
        'docs/a.md': `\`\`\`\n${long}\n\`\`\`\n${long}\n<!-- ${long} -->short`,
      }),
    ).toEqual([
      'docs/a.md:4: 129 columns; expected at most 120',
      'packages/engine/native/a.cpp:1: 132 columns; expected at most 120',
      'src/a.ts:2: 132 columns; expected at most 120',
      'src/a.ts:5: 134 columns; expected at most 120',
    ]);
  });

  it('refuses the path of an address, which is another one in a folder with a space', () => {
    const message = 'the path of a file from its address; take fileURLToPath';
    const address = ['import', 'meta', 'url'].join('.'); // this file keeps the rule too
    expect(
      check({
        'src/a.ts': `const here = new URL('.', ${address}).pathname;\nconst name = ${address}.slice(7);`,
        'src/b.ts':
          "const here = fileURLToPath(new URL('.', import.meta.url));\nconst { pathname } = new URL(request.url);",
        'test/c.ts': `const file = ${'pathToFileURL'}(path).pathname;`,
      }),
    ).toEqual([`src/a.ts:1: ${message}`, `src/a.ts:2: ${message}`, `test/c.ts:1: ${message}`]);
  });

  it('refuses the clock, sleep and random bytes in tests, and names what to take', () => {
    const uses = {
      "import { setTimeout as sleep } from 'node:timers/promises';": 'timers/promises',
      'await new Promise((resolve) => setTimeout(resolve, 5));': 'setTimeout',
      'globalThis.setTimeout(end, 5);': 'setTimeout',
      'const timer = setInterval(look, 5);': 'setInterval',
      'const began = performance.now();': 'performance.now',
      'const began = Date.now();': 'Date.now',
      'const today = new Date();': 'new Date()',
      'const id = crypto.randomUUID();': 'randomUUID',
      'const bytes = randomBytes(5);': 'randomBytes',
      'const share = Math.random();': 'Math.random',
      'const { user } = process.cpuUsage();': 'process.cpuUsage',
      'await vi.waitFor(() => expect(done).toBe(true));': 'vi.waitFor',
      'await expect.poll(() => done).toBe(true);': 'expect.poll',
      'const signal = AbortSignal.timeout(5);': 'AbortSignal.timeout',
    };
    const text = Object.keys(uses).join('\n');
    for (const path of ['src/a/a.test.ts', 'test/queue/a.queue.ts', 'recipes/a/a.test.ts'])
      expect(check({ [path]: text })).toEqual(
        Object.values(uses).map((name, i) =>
          expect.stringMatching(`^${path}:${i + 1}: ${name.replace(/[().]/g, '\\$&')} in a test; take [a-zA-Z]+`),
        ),
      );
    const program = "const child = 'setTimeout(() => process.exit(0), 5); Math.random(); new Date()';";
    const fine = "setImmediate(look);\nconst then = new Date(2020, 1);\nclearTimeout(timer);\nrandomIntegers(5, 'a');";
    expect(check({ 'src/a/a.test.ts': `${program}\n${fine}` })).toEqual([]);
    expect(
      check({ 'scripts/a.ts': text, 'test/support/time-and-chance.ts': text, 'test/fixtures/a.ts': text }),
    ).toEqual([]);
  });

  it('refuses waits by the time of day, which jumps', () => {
    const line = 'const began = Date.now();';
    expect(check({ 'src/a.ts': line, 'src/runs/trackers/mlflow.ts': line })).toEqual([
      'src/a.ts:1: Date.now() jumps; measure with performance.now()',
    ]);
  });
});
