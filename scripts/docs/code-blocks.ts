/**
 * Every TypeScript block of the Markdown pages, and every `@example` of the sources, compiled as a user's file would
 * be.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import ts from 'typescript';
import { markdownPages, readPage, root } from './pages.js';

interface Block {
  /** The page or source that contains the block, and the line of the block's first line there. */
  readonly page: string;
  readonly line: number;
  readonly code: string;
}

/** The sources of the package, and the compiler's messages about the blocks: one line each, with page and line. */
export function compiled(): { readonly program: ts.Program; readonly errors: string[] } {
  const blocks = [...markdownPages().flatMap(markdownBlocks), ...sourceFiles().flatMap(exampleBlocks)];
  const byFile = new Map(blocks.map((block, i) => [join(root, `docs-block-${i}.ts`), block]));
  const program = ts.createProgram([join(root, 'src/index.ts'), ...byFile.keys()], options(), host(byFile));
  const errors = [...byFile].flatMap(([file, { page, line }]) => {
    const source = program.getSourceFile(file);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ start = 0, messageText }) => {
      const at = line + (source?.getLineAndCharacterOfPosition(start).line ?? 0);
      return `${page}:${at}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
  });
  return { program, errors };
}

/** The blocks of a page that begin with ```ts. One that begins with ```ts ignore, and a reason, is left out. */
function markdownBlocks(page: string): Block[] {
  const text = readPage(page);
  return [...text.matchAll(/^```ts(.*)\n([\s\S]*?)^```$/gm)].flatMap(({ 1: flags = '', 2: code = '', index }) => {
    if (/^ ignore: \S/.test(flags)) return [];
    if (flags !== '')
      throw new Error(`${page}: expected \`\`\`ts, or \`\`\`ts ignore: and a reason, got \`\`\`ts${flags}`);
    return [{ page, line: lineOf(text, index) + 1, code }];
  });
}

/** The code blocks below the `@example` tags of a source. */
function exampleBlocks(page: string): Block[] {
  const text = readPage(page);
  if (!text.includes('@example')) return [];
  return [...text.matchAll(/^ *\* @example\n((?: *\*(?:[ \t].*)?\n)*? *\* ```ts\n)((?: *\*.*\n)*?) *\* ```$/gm)].map(
    ({ 1: before = '', 2: code = '', index }) => ({
      page,
      line: lineOf(text, index) + 1 + before.split('\n').length - 1,
      code: code.replaceAll(/^ *\* ?/gm, ''),
    }),
  );
}

const lineOf = (text: string, index: number) => text.slice(0, index).split('\n').length;

const sourceFiles = () =>
  execFileSync('git', ['ls-files', '--', 'src/*.ts', 'packages/*/src/*.ts'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

/** The options of the repository, and `drmas` as its sources. */
function options(): ts.CompilerOptions {
  const file = join(root, 'tsconfig.json');
  const { config } = ts.readConfigFile(file, ts.sys.readFile);
  const { options: written } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const ours = {
    noEmit: true,
    noUnusedLocals: false,
    noUnusedParameters: false,
    declaration: false,
    isolatedModules: false,
  };
  return {
    ...written,
    ...ours,
  };
}

/**
 * The file system, with the blocks as files at the root. A block without an import or export is a module all the same.
 */
function host(blocks: ReadonlyMap<string, Block>): ts.CompilerHost {
  const files = ts.createCompilerHost(options());
  return {
    ...files,
    fileExists: (file) => blocks.has(file) || files.fileExists(file),
    readFile: (file) => {
      const block = blocks.get(file);
      return block === undefined ? files.readFile(file) : `${block.code}\nexport {};\n`;
    },
    getSourceFile: (file, version, ...rest) => {
      const block = blocks.get(file);
      if (block === undefined) return files.getSourceFile(file, version, ...rest);
      return ts.createSourceFile(file, `${block.code}\nexport {};\n`, version);
    },
  };
}
