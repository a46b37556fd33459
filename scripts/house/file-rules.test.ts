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
        'native/a.cpp': `// ${long}`,
        'docs/a.md': `\`\`\`\n${long}\n\`\`\`\n${long}\n<!-- ${long} -->short`,
      }),
    ).toEqual([
      'docs/a.md:4: 129 columns; expected at most 120',
      'native/a.cpp:1: 132 columns; expected at most 120',
      'src/a.ts:2: 132 columns; expected at most 120',
      'src/a.ts:5: 134 columns; expected at most 120',
    ]);
  });
});
