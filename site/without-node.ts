import { createRequire } from 'node:module';
import type { Plugin } from 'vite';

const PREFIX = '\0without ';

/**
 * Replaces Node's modules in a page: a call of one of their functions throws an error that names it. A run in a tab
 * calls none, but it needs modules that also hold functions for Node.
 */
export function withoutNode(): Plugin {
  return {
    name: 'without-node',
    enforce: 'pre',
    resolveId: (id) => (id.startsWith('node:') ? PREFIX + id : undefined),
    load(id) {
      if (!id.startsWith(PREFIX)) return undefined;
      const name = id.slice(PREFIX.length);
      const names = Object.keys(createRequire(import.meta.url)(name)).filter((each) => /^[A-Za-z]\w*$/.test(each));
      // Functions, since some are called with `new`.
      const absent = (each: string) =>
        `export const ${each} = /* @__PURE__ */ absent(${JSON.stringify(`${each} of ${name}`)});`;
      return [
        "const absent = (what) => function () { throw new Error('a browser tab has no ' + what); };",
        ...names.filter((each) => each !== 'default').map(absent),
        'export default {};',
      ].join('\n');
    },
  };
}
