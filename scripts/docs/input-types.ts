/**
 * The options that a user writes, as types. Their doc comments are the descriptions in the schemas that check them.
 * git does not keep the files: `npm run build` and `npm run check` write them first, and programs that only run need no
 * types.
 */
import { defaultText, member, members, type Node } from './json-schema.js';
import type { GeneratedFile } from './pages.js';
import { frozenNode, modelNode, sectionNode, settingsNode, taskNodes } from './settings-page.js';

interface Shape {
  /**
   * Which keys may be missing because the team or the recipe's top level fills them in: the section's own keys, or all
   * keys below it.
   */
  readonly partial?: 'keys' | 'deep';
  /** Types of keys that are declared elsewhere. */
  readonly declared?: Readonly<Record<string, string>>;
}

/** The TypeScript type of a node, as source. */
function typeText(node: Node, shape: Shape = {}): string {
  if (members(node).length > 1)
    return members(node)
      .map((member) => typeText(member, shape))
      .join(' | ');
  if (node.const !== undefined) return JSON.stringify(node.const);
  if (node.enum !== undefined) return node.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (node.prefixItems !== undefined) return `readonly [${node.prefixItems.map((item) => typeText(item)).join(', ')}]`;
  if (node.items !== undefined) return `readonly (${typeText(node.items)})[]`;
  if (node.properties !== undefined) return `{\n${fields(node, shape)}}`;
  if (node.type === 'object' && typeof node.additionalProperties === 'object')
    return `Readonly<Record<string, ${typeText(node.additionalProperties)}>>`;
  if (node.type === 'integer') return 'number';
  if (node.type === 'null') return 'null';
  if (node.type === 'string' || node.type === 'number' || node.type === 'boolean') return node.type;
  throw new Error(`no TypeScript type for ${JSON.stringify(node)}`);
}

function fields({ properties = {}, required = [] }: Node, shape: Shape): string {
  const lines = Object.entries(properties).map(([key, node]) => {
    const optional = shape.partial !== undefined || node.default !== undefined || !required.includes(key);
    const type = shape.declared?.[key] ?? typeText(node, shape.partial === 'deep' ? { partial: 'deep' } : {});
    return `${documented(node)}readonly ${key}${optional ? '?' : ''}: ${type}${optional ? ' | undefined' : ''};\n`;
  });
  return lines.join('');
}

/** The doc comment of a key. */
function documented(node: Node): string {
  const text = node.description === undefined ? [] : [node.description];
  const value =
    members(node).length > 1 || node.properties !== undefined || node.const !== undefined ? '' : defaultText(node);
  if (value !== '') text.push(`@default ${value}`);
  if (text.length === 0) return '';
  return text.length === 1 ? `/** ${text[0]} */\n` : `/**\n${text.map((line) => ` * ${line}\n`).join('')} */\n`;
}

interface TypeFile {
  readonly path: string;
  /** The head comment and the imports. */
  readonly head: string;
  readonly types: readonly (readonly [name: string, node: Node, shape?: Shape])[];
}

const recipeTypes = (): TypeFile => ({
  path: 'src/method/recipe/settings-input.ts',
  head: `/**
 * The sections of a recipe as a user writes them. \`npm run docs -- types\` writes them from the schemas that
 * recipe-schema.ts joins; an editor shows their descriptions for a key of \`defineRecipe\`.
 */
import type { ModelInput } from '@drmas/engine/model';
`,
  types: [
    [
      'PolicyInput',
      described(sectionNode('policies'), 'How a policy learns.'),
      { partial: 'keys', declared: { model: 'ModelInput', loss: 'LossInput' } },
    ],
    ['AgentInput', described(sectionNode('agents'), 'The settings of an agent.'), { partial: 'deep' }],
    ['EstimatorInput', sectionNode('advantage')],
    ['LossInput', sectionNode('loss')],
    ['WarmStartInput', sectionNode('warmStart')],
    ['TrainingInput', sectionNode('training')],
    ['EvaluationInput', sectionNode('evaluation')],
    ['GatewayInput', sectionNode('gateway')],
    ['RolloutInput', sectionNode('rollout')],
    ['BackendInput', sectionNode('backend')],
  ],
});

const answer = 'string | ((row: FileRow) => unknown) | null';

const taskTypes = (): TypeFile => ({
  path: 'src/teams/tasks/task-options.ts',
  head: `/**
 * The options of the task sources as a user writes them. \`npm run docs -- types\` writes them from the schemas in
 * the files of the sources.
 */
import type { FileRow } from './files/row-fields.js';
`,
  types: [
    ['ArithmeticOptions', described(taskNodes().arithmetic, 'The options of `arithmetic`.')],
    ['JsonlOptions', described(taskNodes().jsonl, 'The options of `jsonl`.'), { declared: { answer } }],
    ['HubOptions', described(taskNodes().hub, 'The options of `hub`.'), { declared: { answer } }],
    ['FileOptions', described(taskNodes().file, 'The options of `file`.'), { declared: { answer } }],
  ],
});

const modelTypes = (): TypeFile => {
  const typeOf = (type: string, sentence: string) => described(member(modelNode(), type), sentence);
  return {
    path: 'packages/engine/src/model/model-input.ts',
    head: `/** The models of recipes as a user writes them. \`npm run docs -- types\` writes them from model-schema.ts. */
import type { TemplateVariables } from './tokenizers/named-templates.js';
import type { BytesSpec, SymbolsSpec } from './tokenizers/tokenizer-spec.js';
`,
    types: [
      [
        'TinyDecoderInput',
        typeOf('tiny-decoder', 'A tiny decoder in a recipe: `kvHeads` defaults to `heads`, `ropeBase` to 10000.'),
        { declared: { tokenizer: 'SymbolsSpec | BytesSpec' } },
      ],
      [
        'CheckpointSpec',
        typeOf('checkpoint', 'A model on disk, in the Hugging Face layout or in a GGUF file, or on a hub.'),
        { declared: { variables: 'TemplateVariables' } },
      ],
      [
        'LoraInput',
        typeOf('lora', 'An adapter in a recipe, with either `rank` or `from`.'),
        { declared: { base: 'TinyDecoderInput | CheckpointSpec' } },
      ],
      ['ChoiceTableInput', typeOf('choice-table', 'A table of choices in a recipe.')],
    ],
  };
};

/** The settings of a server, in a file of their own beside their schema. */
const serverTypes = (path: string, name: string, sentence: string, node: Node, shape: Shape = {}): TypeFile => ({
  path,
  head: `// \`npm run docs -- types\` writes this type from the schema beside it.\n`,
  types: [[name, described(node, sentence), shape]],
});

/** An endpoint's type is not among the options of `frozen`. */
function endpointNode(): Node {
  const node = member(frozenNode(), 'endpoint');
  const { type: _, ...properties } = node.properties ?? {};
  return { ...node, properties };
}

const described = (node: Node, description: string): Node => ({ ...node, description });

export function inputTypes(): GeneratedFile[] {
  const { backend = {}, sampler = {} } = settingsNode().properties ?? {};
  const files = [
    recipeTypes(),
    taskTypes(),
    modelTypes(),
    serverTypes(
      'packages/engine/src/endpoint/endpoint-options.ts',
      'EndpointOptions',
      "An endpoint as a recipe's author writes it. Only `url` and `model` are required.",
      endpointNode(),
      { declared: { body: "Readonly<Record<string, import('zod').core.util.JSONType>>" } },
    ),
    serverTypes(
      'packages/engine/src/samplers/sampler-input.ts',
      'SamplerInput',
      "An engine as a recipe's author writes it. Only `url` is required.",
      sampler,
    ),
    serverTypes(
      'packages/tinker/src/client/tinker-input.ts',
      'TinkerInput',
      'The settings of a server as a recipe has them: all but the URL have a default.',
      member(backend, 'tinker'),
    ),
  ];
  return files.map(({ path, head, types }) => {
    const sources = types.map(([name, node, shape = {}]) => {
      const comment = node.description === undefined ? '' : documented({ description: node.description });
      return members(node).length > 1
        ? `${comment}export type ${name} = ${typeText(node, shape)};\n`
        : `${comment}export interface ${name} ${typeText(node, shape)}\n`;
    });
    return { path, text: [head, ...sources].join('\n') };
  });
}
