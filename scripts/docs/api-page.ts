/** docs/reference/api.md: the names of `drmas` and its subpaths, from the declarations and doc comments. */
import { join } from 'node:path';
import { Application, Logger, LogLevel, type ProjectReflection, type TypeDocOptions } from 'typedoc';
import { type Entry, entriesOf } from './api-entries.js';
import { type GeneratedFile, root } from './pages.js';

const HEAD = `# The API

The exports of \`drmas\` and of its subpaths. \`npm run docs\` writes this page from the doc comments of the sources. An
editor shows the whole comment of each name and of each setting.

`;

/** The entry point of each import path, in the order of the page. Each has one section. */
const ENTRIES = {
  drmas: 'src/index.ts',
  'drmas/teams': 'src/public/teams.ts',
  'drmas/tasks': 'src/public/tasks.ts',
  'drmas/agents': 'src/gateway/agents/index.ts',
  'drmas/events': 'src/public/events.ts',
  'drmas/serve': 'src/public/serve.ts',
  'drmas/settings': 'src/public/settings.ts',
  'drmas/advantages': 'src/public/advantages.ts',
  'drmas/losses': 'src/public/losses.ts',
  'drmas/backends': 'src/public/backends.ts',
  'drmas/engine': 'packages/engine/src/index.ts',
  'drmas/testing': 'src/runs/testing/index.ts',
};

const OPTIONS: Partial<TypeDocOptions> = {
  entryPoints: Object.values(ENTRIES).map((file) => join(root, file)),
  tsconfig: join(root, 'tsconfig.json'),
  logLevel: 'Error',
  skipErrorChecking: true, // `npm run check -- types` has looked at them, in a third of the time
  readme: 'none',
  excludeExternals: true,
  excludeInternal: true,
  excludePrivate: true,
  validation: {
    notExported: true,
    invalidLink: false,
    rewrittenLink: false,
    notDocumented: false,
    unusedMergeModuleWith: false,
  },
  intentionallyNotExported: [
    'pipelineTask',
    'searchTask',
    'Rewarded',
    'AgentValue',
    'settingsSchema',
    'Choice',
    'PolicySettings',
    'src/method/advantage/estimators/index.ts:Estimator',
    'labEstimators',
    'EstimatorDefinition',
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

const API = 'docs/reference/api.md';

/** @throws Error if the sources cannot be read, or a type that the API mentions cannot be imported */
export async function apiPage(): Promise<GeneratedFile> {
  const typedoc = await Application.bootstrapWithPlugins(OPTIONS);
  const project = await typedoc.convert();
  if (project === undefined) throw new Error('TypeDoc could not read the sources; run npm run check -- types');
  requireExported(typedoc, project);
  const shown = new Set<string>();
  const sections = entriesOf(ENTRIES).map(({ path, entries }) => {
    const isNew = ({ key }: Entry) => !shown.has(key);
    const [own, others] = [entries.filter(isNew), entries.filter((entry) => !isNew(entry))];
    for (const { key } of own) shown.add(key);
    return section(path, own, others);
  });
  return { path: API, text: HEAD + sections.join('\n') };
}

/** The names that most programs begin with. */
const FIRST = ['train', 'defineTeam', 'agent', 'defineRecipe', 'evaluate', 'loadTeam', 'loadPolicy'];

/** The place of a value in its section: first the names of most programs, then the others, errors last. */
const rank = ({ name, isError }: Entry): number =>
  isError ? FIRST.length + 1 : FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length;

/** The section of an import path: its functions and values, then its types, then the names of earlier sections. */
function section(path: string, own: readonly Entry[], others: readonly Entry[]): string {
  const values = own
    .filter(({ isType }) => !isType)
    .toSorted((a, b) => rank(a) - rank(b))
    .map(valueText);
  const types = own.filter(({ isType }) => isType).map(typeText);
  const names = others.map(({ name }) => `\`${name}\``).join(', ');
  return [
    `## \`${path}\`\n`,
    ...values,
    ...(types.length === 0 ? [] : [`### Types of \`${path}\`\n\n${types.join('\n')}\n`]),
    ...(names === '' ? [] : [`Further names, which a section above describes: ${names}.\n`]),
  ].join('\n');
}

/** A function, a class or another value: its declaration and the parts of its comment. */
function valueText({ name, declaration, summary, parameters, returns, throws, examples }: Entry): string {
  const parts = [
    `### \`${name}\``,
    `\`\`\`typescript\n${declaration}\n\`\`\``,
    summary,
    parameters.map((each) => `- \`${each.name}\`: ${each.text}`).join('\n'),
    returns === '' ? '' : `**Returns** ${returns}`,
    throws.map((text) => `**Throws** ${text}`).join('\n\n'),
    ...examples,
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** A type in one line, and a line for each documented setting. */
const typeText = ({ name, summary, members }: Entry): string =>
  [
    `- \`${name}\`${summary === '' ? '' : `: ${summary}`}`,
    ...members.map((member) => `  - \`${member.name}\`: ${member.summary}`),
  ].join('\n');

/** The types in the text of the API page that no sentence describes, one line each. */
export const typesWithoutSentence = (path: string, text: string): string[] =>
  path !== API ? [] : [...text.matchAll(/^- `(\w+)`$/gm)].map(([, name = '']) => `${API}: ${name} has no doc comment`);

/**
 * A program whose declarations are emitted must be able to name the types that it infers (TS2883).
 * @throws Error naming the types that a public signature mentions and that no entry point exports
 */
function requireExported(typedoc: Application, project: ProjectReflection): void {
  const warnings = new Warnings();
  typedoc.logger = warnings;
  typedoc.validate(project);
  if (warnings.texts.length > 0) throw new Error(`the entry points lack types:\n${warnings.texts.join('\n')}`);
}
