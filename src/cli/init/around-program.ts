/**
 * A recipe and tasks around a program that exists: agents of AI SDK, or a graph of LangGraph. The program is read as
 * text and not run. The settings of the recipe suit a small pretrained model.
 */
import { readFileSync } from 'node:fs';
import { basename, extname, relative, sep } from 'node:path';
import { ArgumentError, messageOf } from '@drmas/engine/errors';

interface Program {
  readonly imports: readonly string[];
  /** Lines before the team. */
  readonly before: readonly string[];
  readonly agents: readonly string[];
  /** The body of `play`, which has `task` and `signal`. */
  readonly play: readonly string[];
  readonly callsTools: boolean;
}

/** The example task, and the name of the model's file if there is none. */
const TASKS = '{"question": "what your program gets", "answer": "the right result"}\n';
export const MODEL = 'model.gguf';

/**
 * The files around a program.
 * @param path The program's file
 * @param target The directory of the recipe
 * @throws ArgumentError if the file cannot be read, or with what the program must change first
 */
export function aroundProgram(
  path: string,
  target: string,
  { extension, model = MODEL }: { readonly extension: 'ts' | 'mts'; readonly model?: string | undefined },
): { readonly recipe: { readonly name: string; readonly text: string }; readonly tasks: typeof TASKS } {
  const program = programOf(path, `./${relative(target, path).split(sep).join('/')}`.replace('./../', '../'));
  return { recipe: { name: `recipe.${extension}`, text: recipeText(basename(path), program, model) }, tasks: TASKS };
}

/** Comments that begin a line: the agents in them are none. */
const COMMENTS = /^\s*(?:\/\/.*$|\/\*[\s\S]*?\*\/)/gm;
/** The name of an agent in a call. */
const NAME = '\\(\\s*[\'"`]([\\w-]+)[\'"`]';

function programOf(path: string, from: string): Program {
  const text = textOf(path).replaceAll(COMMENTS, '');
  const module = from.replace(/ts$/, 'js');
  if (/\btrainable\(/.test(text)) return functionOf(path, text, module);
  if (/from\s*['"]@langchain\/langgraph\b/.test(text)) return graphOf(path, text, module);
  if (/from\s*['"]ai['"]/.test(text)) return functionOf(path, text, module);
  throw new ArgumentError(
    `${path} imports neither 'ai' nor '@langchain/langgraph'; for other programs see docs/agents-elsewhere.md`,
  );
}

/** A program with models that are `trainable`, and an exported function. */
function functionOf(path: string, text: string, module: string): Program {
  const agents = trainedIn(text);
  if (agents.length === 0)
    throw new ArgumentError(
      /\btrainable\(/.test(text)
        ? `${path}: no call of trainable names its agent. Write the name there as a text of letters, digits, - and _`
        : `${path}: no model is trainable. Write model: trainable('NAME', { otherwise: YOUR_MODEL }) where an agent has its ` +
            "model, and import { trainable } from 'drmas/agents'",
    );
  const [name] = namesIn(text, /^export (?:async )?(?:function |const (?=\w+\b.*?= (?:async )?(?:\(|\w+ =>)))(\w+)/gm);
  if (name === undefined)
    throw new ArgumentError(
      `${path}: expected a function that is exported by its name, as in export async function NAME(task), and returns ` +
        'the result',
    );
  return {
    imports: [`import { ${name} } from '${module}';`],
    before: [],
    agents,
    play: [`return ${name}(task.question);`],
    callsTools: /\btools\b/.test(text),
  };
}

/** The names of the agents that are called `trainable`, also by a function of the name: `modelOf('buyer')`. */
function trainedIn(text: string): string[] {
  const named = namesIn(text, /\btrainable\(\s*(\w+)/g).flatMap((variable) => [
    ...namesIn(text, new RegExp(`\\bconst ${variable}\\b[^=\\n]*= ['"]([\\w-]+)['"]`, 'g')),
    ...namesIn(text, new RegExp(`\\b(?:function|const) (\\w+)[^\\n]*?[( ]${variable}\\b`, 'g')).flatMap((helper) =>
      callsOf(helper, text),
    ),
  ]);
  return [...new Set([...callsOf('trainable', text), ...named])];
}

/** The names in the calls of a function. */
const callsOf = (name: string, text: string) => namesIn(text, new RegExp(`\\b${name}${NAME}`, 'g'));

/** A graph of LangGraph: an exported function of its models. */
function graphOf(path: string, text: string, module: string): Program {
  const functions = [...text.matchAll(/^export (?:function |const )(\w+)(?: = )?\(\s*(\w+)/gm)];
  const asking = functions.map(([, name, models = '']) => ({ name, agents: callsOf(models, text) }));
  const { name, agents } = asking.find(({ agents }) => agents.length > 0) ?? { agents: [] };
  if (name === undefined)
    throw new ArgumentError(
      `${path}: training cannot put its models into this graph. Export a function of its models: ` +
        "export const graphOf = (llm: (agent: string) => ChatOpenAI) => new StateGraph(...)...compile(), in which the node 'planner' " +
        "asks llm('planner'); your app calls graphOf(() => new ChatOpenAI(...))",
    );
  const fields = stateOf(text);
  const [input, output] = [fields[0], fields.at(-1)];
  const invoke = (state: string) => `await graph.invoke(${state}, { signal });`;
  return {
    imports: [
      "import { ChatOpenAI } from '@langchain/openai';",
      "import { boundFetch } from 'drmas/agents';",
      `import { ${name} } from '${module}';`,
    ],
    before: [
      '// In training the name of a model is the agent that answers.',
      "const configuration = { baseURL: 'http://drmas/v1', fetch: boundFetch };",
      `const graph = ${name}(`,
      "  (model) => new ChatOpenAI({ model, apiKey: 'drmas', streaming: false, maxRetries: 0, configuration }),",
      ');',
      '',
    ],
    agents,
    play:
      input === undefined
        ? [
            `const { messages } = ${invoke("{ messages: [{ role: 'user', content: task.question }] }")}`,
            'return messages.at(-1)?.text;',
          ]
        : [`const { ${output} } = ${invoke(`{ ${input}: task.question }`)}`, `return ${output};`],
    callsTools: /\b(?:tools|bindTools)\b/.test(text),
  };
}

/** The fields of a graph's state; none if it is a list of messages. */
function stateOf(text: string): string[] {
  const annotated = namesIn(text, /(\w+):\s*Annotation\b/g);
  if (annotated.length > 0) return annotated;
  const [, state = ''] = /new StateGraph\(\s*(\w+)/.exec(text) ?? [];
  const [, body = ''] =
    new RegExp(`const ${state} = (?:z\\.object|new StateSchema)\\(\\{([\\s\\S]*?)\\}\\)`).exec(text) ?? [];
  const fields = namesIn(body, /(\w+):/g);
  return fields.includes('messages') ? [] : fields;
}

/** The settings are those of a walk with SmolLM2-135M-Instruct (docs/lab-notes/2026-11.md, an agent that improves). */
const recipeText = (file: string, { imports, before, agents, play, callsTools }: Program, model: string) =>
  `/** Trains the agents of ${file}. Change the fields of a task, the reward, and the lengths of answers. */
import { join } from 'node:path';
import { agent, checkpoint, defineRecipe, defineTeam, jsonl, lora, withDemonstrations } from 'drmas';
import { z } from 'zod';
${imports.join('\n')}

${[...before].map((line) => `${line}\n`).join('')}// The longest answer in tokens, and the price of an answer that the program cannot read.
const short = { ${callsTools ? "tools: 'plain', " : ''}sampling: { maxTokens: 32 }, invalidPenalty: 0.1 } as const;

const team = defineTeam({
  name: '${basename(file, extname(file))}',
  // The fields of a line in tasks.jsonl.
  task: z.object({ question: z.string(), answer: z.string() }),
  agents: { ${agents.map((each) => `${/^\w+$/.test(each) ? each : `'${each}'`}: agent(short)`).join(', ')} },
  async play({ task${play.join('').includes('signal') ? ', signal' : ''} }) {
${play.map((line) => `    ${line}`).join('\n')}
  },
  // Your evaluation of the result: true or a number.
  reward: ({ task, outcome }) => String(outcome ?? '').trim() === task.answer,
});

const here = (file: string) => join(import.meta.dirname, file);

export default defineRecipe({
  team,
  // A quarter of the tasks is held out. \`drmas demonstrate\` writes the demonstrations.
  tasks: withDemonstrations(jsonl(here('tasks.jsonl'), { test: 0.25 }), here('demonstrations.jsonl')),
  // Settings for a small pretrained model: each agent is an adapter, and learns the form of answers first.
  model: lora(checkpoint('${model.replaceAll(/['\\]/g, '\\$&')}'), { rank: 16 }),
  warmStart: { steps: 16, batch: 16, learningRate: 1e-3 },
  training: { steps: 20, tasksPerStep: 4, groupSize: 8 },
  evaluation: { every: 10, samples: 2 },
});
`;

const namesIn = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].flatMap(([, name]) => name ?? [])),
];

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ArgumentError(`cannot read ${path}: ${messageOf(error)}`);
  }
}
