/** docs/reference/api.md: what `import ... from 'drmas'` offers, from the doc comments, by TypeDoc. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Application, Logger, LogLevel, type ProjectReflection, type TypeDocOptions } from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';
import { headingsOf } from './links.js';
import { type GeneratedFile, root } from './pages.js';

const HEAD = `# The API

What \`import { ... } from 'drmas'\` offers. \`npm run docs\` writes this page from the doc comments of the sources.

`;

const OPTIONS: Partial<TypeDocOptions & PluginOptions> = {
  entryPoints: [join(root, 'src/index.ts')],
  tsconfig: join(root, 'tsconfig.json'),
  plugin: ['typedoc-plugin-markdown'],
  outputFileStrategy: 'modules',
  logLevel: 'Error',
  skipErrorChecking: true, // `npm run check:types` has looked at them, in a third of the time
  readme: 'none',
  name: 'drmas',
  disableSources: true,
  excludeExternals: true,
  excludeInternal: true,
  excludePrivate: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  hidePageTitle: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  sort: ['alphabetical'],
  groupOrder: ['Functions', 'Variables', 'Classes', 'Interfaces', 'Type Aliases'],
  validation: {
    notExported: true,
    invalidLink: false,
    rewrittenLink: false,
    notDocumented: false,
    unusedMergeModuleWith: false,
  },
  // Schemas of which types are made, and steps of inference: a declaration file never has to name them.
  intentionallyNotExported: [
    'Declared',
    'pipelineTask',
    'searchTask',
    'PROJECTIONS',
    'Rewarded',
    'ValueOf',
    'settingsSchema',
  ],
};

/** It keeps warnings, where TypeDoc's own prints them. */
class Warnings extends Logger {
  readonly texts: string[] = [];
  override log(message: string, level: LogLevel): void {
    super.log(message, level);
    if (level >= LogLevel.Warn) this.texts.push(message);
  }
}

/** @throws Error where the sources cannot be read, or a type that the API mentions cannot be imported */
export async function apiPage(): Promise<GeneratedFile> {
  const out = mkdtempSync(join(tmpdir(), 'drmas-api-'));
  try {
    const typedoc = await Application.bootstrapWithPlugins(OPTIONS);
    const project = await typedoc.convert();
    if (project === undefined) throw new Error('TypeDoc could not read the sources; run npm run check:types');
    requireExported(typedoc, project);
    await typedoc.outputs.writeOutput({ name: 'markdown', path: out }, project);
    return { path: 'docs/reference/api.md', text: linked(HEAD + readFileSync(join(out, 'README.md'), 'utf8')) };
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/**
 * A program whose declarations are emitted must be able to name the types that it infers (TS2883).
 * @throws Error naming the types that a public signature mentions and `src/index.ts` lacks
 */
function requireExported(typedoc: Application, project: ProjectReflection): void {
  const warnings = new Warnings();
  typedoc.logger = warnings;
  typedoc.validate(project);
  if (warnings.texts.length > 0) throw new Error(`src/index.ts lacks types:\n${warnings.texts.join('\n')}`);
}

/**
 * The page with its links to types as GitHub counts anchors: TypeDoc takes names that differ in case alone for
 * different.
 */
function linked(page: string): string {
  const types = headingsOf(page).filter(({ level, title }) => level === 3 && !title.includes('('));
  const anchors = new Map(
    types.map(({ title, anchor }) => [title.replace('`abstract` ', '').replace(/\\?<.*$/, ''), anchor]),
  );
  return page.replaceAll(/\[`(\w+)`\]\(#[\w-]+\)/g, (link, name: string) => {
    const anchor = anchors.get(name);
    return anchor === undefined ? link : `[\`${name}\`](#${anchor})`;
  });
}
