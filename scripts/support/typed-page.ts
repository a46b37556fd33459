/** A page as a reader types it: its files and commands, in their order. */

/**
 * The page as one script for bash. Blocks that begin with a comment such as `// agents.mts` become files of that name;
 * blocks of `sh` run. In place of each `npm install` the given command runs.
 */
export function typedPage(text: string, install: string): string {
  const blocks = [...text.matchAll(/^```(\w+)(?:[^\n]*)\n([\s\S]*?)^```$/gm)];
  const parts = blocks.flatMap(({ 1: language = '', 2: code = '' }) => {
    if (language === 'sh') return [code.replaceAll(/^npm install .*$/gm, install)];
    const file = /^\/\/ (\S+\.\w+)\n/.exec(code)?.[1];
    return file === undefined ? [] : [`cat > '${file}' <<'END_OF_FILE'\n${code}END_OF_FILE\n`];
  });
  return ['set -ex', ...parts].join('\n');
}
