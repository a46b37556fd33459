#!/usr/bin/env node
// The command `drmas`. Older versions of Node must be able to parse this file, so that they can say what is missing: the
// program itself is loaded only after the check, and it does not parse there.

const NEEDED = [20, 20] as const;
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) void import('./main.js').catch(explain);
else {
  process.stderr.write(
    `error: drmas needs Node ${NEEDED.join('.')} or newer, and this is Node ${process.versions.node}. ` +
      'https://nodejs.org has newer versions; with nvm: nvm install 22\n',
  );
  process.exitCode = 1;
}

/** Says which limit of this process keeps the program from loading. Any other error is a fault, with its stack. */
function explain(error: NodeJS.ErrnoException): void {
  const limits = error.code === 'EMFILE' ? '`ulimit -n`' : /out of memory/i.test(error.message) ? '`ulimit -v`' : '';
  if (limits === '') throw error;
  process.stderr.write(`error: drmas cannot start: ${error.message}. Raise the limit (see ${limits})\n`);
  process.exitCode = 1;
}
