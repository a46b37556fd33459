/**
 * docs/reference/settings.md: all keys of a recipe with accepted values, default and meaning, from the schemas.
 */

import { modelSchema } from '@drmas/engine/model';
import { frozenSchema } from '../../src/method/recipe/frozen.js';
import { settingsSchema } from '../../src/method/recipe/recipe-schema.js';
import { standard } from '../../src/runs/composition/standard.js';
import { fileSettings, jsonlSettings } from '../../src/teams/tasks/files/file-source.js';
import { hubSettings } from '../../src/teams/tasks/files/hub-source.js';
import { arithmeticSettings } from '../../src/teams/tasks/generated/arithmetic.js';
import {
  defaultText,
  inputNode,
  isSection,
  isUnionByType,
  members,
  type Node,
  rangeText,
  typeOf,
} from './json-schema.js';
import { type GeneratedFile, table } from './pages.js';

/** The name that stands for every agent's and every policy's in the page. */
const ANY = '<name>';

/** The plain part of a recipe, with one agent and one policy. */
export const settingsNode = () => inputNode(settingsSchema(standard, [ANY], [ANY], {}));

export const modelNode = () => inputNode(modelSchema);

/** A result of `frozen(...)`. */
export const frozenNode = () => inputNode(frozenSchema);

interface Row {
  readonly key: string;
  /** The `type` of the section above under which the key exists; undefined if it always does. */
  readonly of?: string | undefined;
  readonly node: Node;
}

/**
 * The keys below a section, nested ones with dots; the members of a union one after another. Keys below a section in
 * `closed` are left out: they are listed in a section of their own.
 */
function rowsBelow(section: Node, closed: readonly string[] = [], prefix = ''): Row[] {
  return members(section).flatMap((member) => {
    const of = isUnionByType(section) ? typeOf(member) : undefined;
    return Object.entries(member.properties ?? {}).flatMap(([name, node]): Row[] => {
      const key = `${prefix}${name}`;
      if (name === 'type' && node.const !== undefined) return [];
      const inner = isSection(node) && !closed.includes(key) ? rowsBelow(node, closed, `${key}.`) : [];
      return [{ key, of, node }, ...inner.map((row) => ({ ...row, of: row.of ?? of }))];
    });
  });
}

/** Merges rows that differ only in the `type` they belong to. */
function merged(rows: readonly Row[]): { readonly key: string; readonly of: readonly string[]; readonly node: Node }[] {
  const byText = new Map<string, { key: string; of: string[]; node: Node }>();
  for (const { key, of, node } of rows) {
    const text = JSON.stringify([key, node]);
    const row = byText.get(text) ?? { key, of: [], node };
    if (of !== undefined) row.of.push(of);
    byText.set(text, row);
  }
  return [...byText.values()];
}

function settingsTable({ node: section, closed, inherits = false }: Section): string {
  const rows = merged(rowsBelow(section, closed));
  const conditional = rows.some(({ of }) => of.length > 0);
  return table(
    ['key', ...(conditional ? ['with type'] : []), 'accepts', 'default', 'meaning'],
    rows.map(({ key, of, node }) => [
      `\`${key}\``,
      ...(conditional ? [of.map((type) => `\`${type}\``).join(', ')] : []),
      rangeText(node),
      defaultText(node) || (!inherits && isRequired(section, key) ? 'required' : ''),
      node.description ?? '',
    ]),
  );
}

/** Whether every member of the section that has the key demands it. */
function isRequired(section: Node, key: string): boolean {
  const [first = '', ...rest] = key.split('.');
  const holders = members(section).filter(({ properties }) => properties?.[first] !== undefined);
  return holders.every(({ required, properties }) => {
    const inner = properties?.[first];
    if (rest.length > 0) return inner !== undefined && isRequired(inner, rest.join('.'));
    return required?.includes(first) ?? false;
  });
}

const HEAD = `# Settings

The settings of a recipe: the key, what it accepts, its default and what it means. \`npm run docs\` writes this page from
the schemas that check recipes. [recipes.md](../recipes.md) says how the settings work together.

\`--set path.to.key=value\` sets them, except API keys and functions. \`drmas recipes show <recipe>\` prints a recipe with
the defaults of the column \`default\` filled in, and with the settings of its own world
(\`recipes/<recipe>/world.ts\` describes them).
`;

interface Section {
  readonly title: string;
  readonly text: string;
  readonly node: Node;
  /** Keys whose own keys are listed in another section. */
  readonly closed?: readonly string[];
  /** Whether missing keys are filled in from elsewhere, so that no key is required. */
  readonly inherits?: boolean;
}

/** A section of a recipe; of one with an entry for every agent or policy, such an entry. */
export function sectionNode(name: string): Node {
  const whole = settingsNode().properties?.[name];
  if (whole === undefined) throw new Error(`the schema has no section '${name}'`);
  return whole.properties?.[ANY] ?? whole;
}

/** The options of the task sources that ship. */
export const taskNodes = () => ({
  arithmetic: inputNode(arithmeticSettings),
  file: inputNode(fileSettings),
  hub: inputNode(hubSettings),
  jsonl: inputNode(jsonlSettings),
});

/** The sections of a recipe in the order of the page. */
function sections(): Section[] {
  const settings = settingsNode();
  const tasks = taskNodes();
  const scalar = ['name', 'seed', 'assign'].map((name) => [name, sectionNode(name)] as const);
  return [
    {
      title: 'Top level',
      text: 'A recipe also has `team`, `tasks`, `use` (plug-ins) and `sinks`, which are no plain data, and the sections below.',
      node: { ...settings, properties: { ...Object.fromEntries(scalar), assign: withoutKeys(settings, 'assign') } },
      inherits: true,
    },
    {
      title: '`model`',
      text: 'The model of every policy that names none. `policies.<name>.model` has the same keys; `base` is a whole model.',
      node: modelNode(),
      closed: ['base'],
    },
    {
      title: '`policies.<name>`',
      text: 'How each policy learns, by its name.',
      node: sectionNode('policies'),
      closed: ['model', 'loss'],
      inherits: true,
    },
    {
      title: '`agents.<name>`',
      text: 'Settings of each agent, by its name.',
      node: sectionNode('agents'),
      inherits: true,
    },
    {
      title: '`assign.<agent>`',
      text: 'The result of `frozen(...)`: an agent that plays and never trains.',
      node: frozenNode(),
      closed: ['model'],
    },
    {
      title: '`advantage`',
      text: '[estimators.md](../estimators.md) has the formula and the source of each type.',
      node: sectionNode('advantage'),
    },
    {
      title: '`loss`',
      text: '[losses.md](../losses.md) has the formula and the source of each type.',
      node: sectionNode('loss'),
    },
    { title: '`warmStart`', text: 'Supervised training before reinforcement.', node: sectionNode('warmStart') },
    { title: '`training`', text: 'The reinforcement itself.', node: sectionNode('training') },
    { title: '`evaluation`', text: 'Evaluations on held-out tasks.', node: sectionNode('evaluation') },
    {
      title: '`rollout`',
      text: "How episodes are played; by default in the program's own thread.",
      node: sectionNode('rollout'),
    },
    {
      title: '`tasks`: `arithmetic({ ... })`',
      text: 'Generated chains of a pocket calculator. `--set tasks.train.<key>` and `tasks.test.<key>` set these keys.',
      node: tasks.arithmetic,
    },
    {
      title: '`tasks`: `file(path, { ... })`',
      text: 'Tasks from a file. `jsonl(path, { ... })` has the same keys but `format` and `delimiter`.',
      node: tasks.file,
    },
    {
      title: '`tasks`: `hub(name, { ... })`',
      text: 'Tasks from a data set on a hub, by its name (`hub` of `drmas/tasks`).',
      node: tasks.hub,
    },
    { title: '`backend`', text: 'The backend holds the models and computes.', node: sectionNode('backend') },
  ];
}

/** A key of the top level as one value. */
function withoutKeys(settings: Node, key: string): Node {
  const description = settings.properties?.[key]?.description;
  return { enum: ['separate', 'shared', '{ agent: policy }'], default: 'separate', description };
}

export function settingsPage(): GeneratedFile {
  const parts = sections().map((section) => `## ${section.title}\n\n${section.text}\n\n${settingsTable(section)}\n`);
  return { path: 'docs/reference/settings.md', text: [HEAD, ...parts].join('\n') };
}

/** Keys without a description, by their sections and paths. */
export function undescribed(): string[] {
  return sections().flatMap(({ title, node, closed }) =>
    rowsBelow(node, closed).flatMap(({ key, of, node: { description } }) =>
      description ? [] : [`${title} ${key}${of === undefined ? '' : ` (${of})`}`],
    ),
  );
}
