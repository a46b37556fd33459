import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { drmas } from '../../../test/support/command-line.js';
import { LANGGRAPH_FILE } from '../../../test/support/langgraph-file.js';
import { temporaryRoot } from '../../../test/support/tiny-run.js';
import { aroundProgram } from './around-program.js';

const repository = fileURLToPath(new URL('../../../', import.meta.url));
const root = temporaryRoot();

const AI_SDK_FILE = `import { generateText, stepCountIs, ToolLoopAgent, tool } from 'ai';
import { trainable } from 'drmas/agents';
import { z } from 'zod';

const look = tool({ inputSchema: z.object({ fruit: z.string() }), execute: async () => '5' });
const clerk = new ToolLoopAgent({ model: trainable('clerk'), tools: { look }, stopWhen: stepCountIs(3) });

export async function priceOf(question: string): Promise<string> {
  const { text } = await generateText({ model: trainable('my-reader'), prompt: question });
  return (await clerk.generate({ prompt: text })).text;
}
`;

const ANSWERS = `export default ({ agent, messages }) => {
  if (agent === 'my-reader') return 'pear';
  return messages.at(-1).role === 'tool' ? '5' : { toolCalls: [{ name: 'look', arguments: { fruit: 'pear' } }] };
};
`;

/** A folder with a program, in which `drmas init --from` has run. */
async function around(name: string, program: string, ...words: string[]) {
  const there = join(root, name);
  await mkdir(join(there, 'src'), { recursive: true });
  await writeFile(join(there, 'src/program.ts'), program);
  await symlink(join(repository, 'node_modules'), join(there, 'node_modules')); // as `npm install` would
  const done = await drmas(['init', there, '--from', join(there, 'src/program.ts'), ...words]);
  return { ...done, there, recipe: join(there, 'recipe.ts') };
}

describe('init --from', () => {
  it('writes a recipe around agents of AI SDK, which plays', async () => {
    const { code, out, there, recipe } = await around('ai-sdk', AI_SDK_FILE);
    expect(code).toBe(0);
    expect(out).toMatch(/put a small model into model.gguf .*\n.*tasks.jsonl.*\n {2}npx drmas demonstrate recipe.ts /);
    const text = await readFile(recipe, 'utf8');
    expect(text).toContain("import { priceOf } from './src/program.js';");
    expect(text).toContain("agents: { clerk: agent(short), 'my-reader': agent(short) }");
    expect(text).toContain("const short = { tools: 'plain', ");
    const tasks = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `{"question": "${n} pears", "answer": "5"}\n`);
    await writeFile(join(there, 'tasks.jsonl'), tasks.join(''));
    await writeFile(join(there, 'answers.mjs'), ANSWERS);
    const demonstrations = join(there, 'demonstrations.jsonl');
    const words = ['--script', join(there, 'answers.mjs'), '--tasks', '2', '--min-score', '1', '--out', demonstrations];
    expect(await drmas(['demonstrate', recipe, ...words])).toMatchObject({ code: 0 });
    expect((await readFile(demonstrations, 'utf8')).trim().split('\n')).toHaveLength(2 * 3);
  });

  it('writes a recipe around a graph of LangGraph', async () => {
    const { code, recipe } = await around('langgraph', LANGGRAPH_FILE, '--model', 'some-org/a-model');
    expect(code).toBe(0);
    const text = await readFile(recipe, 'utf8');
    expect(text).toContain('const graph = deskOf(\n  (model) => new ChatOpenAI({ model, ');
    expect(text).toContain('agents: { planner: agent(short), worker: agent(short) }');
    expect(text).toContain('const { answer } = await graph.invoke({ question: task.question }, { signal });');
    expect(text).toContain("lora(checkpoint('some-org/a-model'), { rank: 16 })");
    expect(text).not.toContain('tools:');
  });

  it('gives a graph of messages the question as a message', async () => {
    const example = await readFile(join(repository, 'examples/langgraph/recipe.ts'), 'utf8');
    const text = await readFile((await around('messages', example)).recipe, 'utf8');
    expect(text).toContain('agents: { buyer: agent(short), cashier: agent(short) }');
    expect(text).toContain("graph.invoke({ messages: [{ role: 'user', content: task.question }] }, { signal });");
  });

  const helper = 'const modelOf = (name: string) => trainable(name, { otherwise });\n';
  const inHelper = AI_SDK_FILE.replaceAll('trainable(', 'modelOf(').replace('const look', `${helper}const look`);
  const inAiSdk = [
    "import { priceOf } from './program.js';",
    "agents: { clerk: agent(short), 'my-reader': agent(short) }",
  ];
  const inGraph = [
    'const graph = deskOf(',
    'planner: agent(short), worker: agent(short)',
    '{ answer } = await graph.invoke({ question: ',
  ];
  it.each<[string, string, readonly string[]]>([
    ['double quotes', AI_SDK_FILE.replaceAll("'", '"'), inAiSdk],
    ['double quotes in a graph', LANGGRAPH_FILE.replaceAll("'", '"'), inGraph],
    ['an agent in a comment', AI_SDK_FILE.replace('const look', "// trainable('old')\nconst look"), inAiSdk],
    ['a function of the name', inHelper, inAiSdk],
    [
      'a constant name',
      AI_SDK_FILE.replace("trainable('clerk')", 'trainable(CLERK)').replace(
        'const look',
        "const CLERK = 'clerk';\nconst look",
      ),
      ['clerk: agent(short)'],
    ],
    [
      'an arrow function',
      AI_SDK_FILE.replace(
        'async function priceOf(question: string): Promise<string> {',
        'const priceOf: (question: string) => Promise<string> = async (question) => {',
      ),
      inAiSdk,
    ],
    ['a framework that takes models of AI SDK', AI_SDK_FILE.replace("from 'ai'", "from '@mastra/core/agent'"), inAiSdk],
    [
      'another exported function before the graph',
      `export const clean = (text: string) => text.trim();\n${LANGGRAPH_FILE}`,
      inGraph,
    ],
    [
      'a state of zod',
      LANGGRAPH_FILE.replace(
        /Annotation.Root\(.*\);/,
        'z.object({ question: z.string(), kind: z.string(), answer: z.string() });',
      ),
      inGraph,
    ],
  ])('reads %s', async (_, program, parts) => {
    const there = await mkdtemp(join(root, 'read-'));
    const path = join(there, 'program.ts');
    await writeFile(path, program);
    const { text } = aroundProgram(path, there, { extension: 'ts' }).recipe;
    for (const part of parts) expect(text).toContain(part);
    expect(text).not.toContain('old: agent');
  });

  it('reads the agents of the page about AI SDK', async () => {
    const page = await readFile(join(repository, 'docs/ai-sdk.md'), 'utf8');
    const path = join(root, 'agents.mts');
    await writeFile(
      path,
      page
        .split('```')
        .find((block) => block.startsWith('ts\n// agents.mts'))
        ?.slice(3) ?? '',
    );
    const { text } = aroundProgram(path, root, { extension: 'mts' }).recipe;
    expect(text).toContain("import { pack } from './agents.mjs';");
    expect(text).toContain('agents: { packer: agent(short), reader: agent(short) }');
  });

  it.each([
    ['no model is trainable', AI_SDK_FILE.replaceAll(/trainable\('[\w-]+'\)/g, "'openai/gpt-5-mini'")],
    ['no call of trainable names its agent', AI_SDK_FILE.replaceAll(/trainable\('[\w-]+'\)/g, 'trainable(nameOf(1))')],
    ['expected a function that is exported', AI_SDK_FILE.replace('export ', '')],
    ['Export a function of its models', LANGGRAPH_FILE.replace('(llm: (agent: string) => ChatOpenAI) =>', '')],
    ["imports neither 'ai' nor", 'export const nothing = 0;\n'],
  ])('says what to change first: %s', async (message, program) => {
    const { code, err, there } = await around(`${message}`, program);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) });
    expect((await readdir(there)).sort()).toEqual(['node_modules', 'src']);
  });

  it('keeps tasks that are there, and overwrites no recipe', async () => {
    const there = join(root, 'kept');
    await mkdir(there);
    await writeFile(join(there, 'tasks.jsonl'), 'mine');
    await writeFile(join(there, 'agents.ts'), AI_SDK_FILE);
    const words = ['init', there, '--from', join(there, 'agents.ts')];
    expect(await drmas(words)).toMatchObject({ code: 0, out: expect.stringContaining('unchanged: tasks.jsonl') });
    expect(await readFile(join(there, 'tasks.jsonl'), 'utf8')).toBe('mine');
    expect(await drmas(words)).toMatchObject({ code: 2, err: expect.stringContaining('recipe.ts exists') });
  });
});
