// @module-tag verify
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RecipeError } from '@drmas/engine/errors';
import type { TaskSource } from '@drmas/engine/nouns';
import { beforeAll, describe, expect, it } from 'vitest';
import { evaluate, loadPolicy, loadTokenizer, resume, train } from '../../src/index.js';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { arithmetic } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
import { goldenPath } from '../goldens.js';
import { compiledProgram } from '../support/compiled-program.js';
import { digitTeam, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

/** Names that could lead out of a directory, or that a file system reserves. */
const hostile = ['../out', '../../out', '/tmp/out', 'a/../../out', 'a\\..\\out', '..', '.', 'a\0b', 'C:\\out', '~', ''];

describe('no name leads out of the run directory', () => {
  it.each(hostile)('of a policy: %j', (name) => {
    const changes = { assign: { solver: name, verifier: 'verifier' } } as Partial<RecipeInput>;
    expect(() => tinyRecipe(changes)).toThrow(RecipeError);
    expect(() => tinyRecipe({}, [`assign.solver=${JSON.stringify(name)}`])).toThrow(RecipeError);
  });

  it.each(hostile)('of an agent, after which policies and folders are called: %j', (name) => {
    const { task } = digitTeam;
    const recipe = () => {
      const team = defineTeam({
        name: 'x',
        task,
        agents: { [name]: agent() },
        play: async () => ({ text: '' }),
        reward: () => 0,
      });
      return tinyRecipe({ team } as unknown as Partial<RecipeInput>);
    };
    expect(recipe).toThrow();
  });

  it('of a task: files are called after steps, whatever tasks are called', async () => {
    const home = join(root, 'home');
    await mkdir(home);
    // A task without an id is refused before any work.
    const names = [...hostile.filter((name) => name !== ''), 'CON', 'x'.repeat(5000), '__proto__'];
    const sums = arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 });
    const tasks: TaskSource = {
      ...sums,
      async load(split, schema) {
        const set = await sums.load(split, schema as never);
        // One problem a name: two problems with one id in a step are refused.
        return { ...set, size: names.length, at: (index) => ({ ...set.at(index), id: names[index] as string }) };
      },
    };
    const overrides = ['training.steps=2', 'training.tasksPerStep=8', 'evaluation.tasks=4', 'warmStart=null'];
    const run = await trainTiny(home, tinyRecipe({ tasks } as Partial<RecipeInput>, overrides));
    const files = await readdir(root, { recursive: true });
    const within = (file: string) => join(root, file).startsWith(run.path) || run.path.startsWith(join(root, file));
    expect(files.filter((file) => !within(file) && !file.startsWith('cache'))).toEqual([]);
    const named = (file: string) => /^[\w.+-]+$/.test(file.split('/').at(-1) ?? '');
    expect(files.filter((file) => !named(file))).toEqual([]);
  });
});

// A recipe's file with a model and tasks beside it: a base model without a chat template, and the folder moved
// afterwards.

describe('beside the recipe', () => {
  const root = temporaryRoot();
  const project = join(root, 'project');
  const recipe = join(project, 'own.ts');
  const run = join(root, 'run');

  const source = `
import { join } from 'node:path';
import { agent, checkpoint, defineRecipe, defineTeam, jsonl, lora } from '${fileURLToPath(new URL('../../src/index.js', import.meta.url))}';
import { z } from '${fileURLToPath(new URL('../../node_modules/zod/index.js', import.meta.url))}';
export default defineRecipe({
  team: defineTeam({
    name: 'own',
    task: z.object({ question: z.string(), answer: z.string() }),
    agents: { solver: agent({ system: 'Solve.', sampling: { maxTokens: 3 } }) },
    play: async ({ task, agents }) => (await agents.solver(task.question)).text,
    reward: ({ outcome }) => outcome.length % 2,
  }),
  tasks: jsonl(join(import.meta.dirname, 'tasks.jsonl'), { test: 0.5 }),
  model: lora(checkpoint('./model', { chatTemplate: 'plain' }), { rank: 1 }),
  training: { steps: 2, tasksPerStep: 1, groupSize: 2, checkpointEvery: 1 },
  evaluation: { every: 2, tasks: 1, samples: 1 },
});
`;

  beforeAll(async () => {
    await mkdir(project);
    await cp(goldenPath('models/llama-mini'), join(project, 'model'), { recursive: true });
    const file = join(project, 'model', 'tokenizer_config.json');
    const { chat_template: _, ...config } = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify(config));
    await writeFile(recipe, source);
    const rows = Array.from({ length: 20 }, (_, i) => `{"question":"${i}+1","answer":"${i + 1}"}\n`);
    await writeFile(join(project, 'tasks.jsonl'), rows);
    await train(recipe, { run, threads: 1 });
  }, 120_000);

  it('finds the model beside the file, and plays it with the template that the recipe gives', async () => {
    const { resolved } = JSON.parse(await readFile(join(run, 'recipe.json'), 'utf8'));
    expect(resolved.policies.solver.model.base).toEqual({
      type: 'checkpoint',
      path: join(project, 'model'),
      chatTemplate: 'plain',
    });
    const [row = '{}'] = (await readFile(join(run, 'episodes', 'step-000001.jsonl'), 'utf8')).split('\n');
    const { prompt } = JSON.parse(row).turns[0];
    const tokenizer = await loadTokenizer(join(project, 'model'));
    expect(tokenizer.decode(prompt)).toMatch(/System:\nSolve\.\n\nUser:\n.*\n\nAssistant:\n$/s);
    expect(() => tokenizer.chat([{ role: 'user', content: 'a' }])).toThrow(/checkpoint\(path, \{ chatTemplate/);
  });

  it('keeps the template beside the adapter, for whoever loads it without the recipe', async () => {
    const directory = join(run, 'checkpoints', 'step-000002', 'solver');
    const policy = await loadPolicy(directory, { threads: 1 });
    const text = policy.tokenizer.decode(policy.tokenizer.chat([{ role: 'user', content: 'a' }]));
    expect(text).toMatch(/User:\na\n\nAssistant:\n$/);
    await policy.dispose();
    expect((await loadTokenizer(directory)).chat([{ role: 'user', content: 'a' }])).toEqual(
      policy.tokenizer.chat([{ role: 'user', content: 'a' }]),
    );
  });

  it('is played by the running package, if another copy lies beside it', async () => {
    const { main, remove } = await compiledProgram();
    const file = join(root, 'copy', 'own.ts');
    const copy = join(root, 'copy', 'node_modules', 'drmas');
    await mkdir(copy, { recursive: true });
    await writeFile(join(copy, 'package.json'), '{"name":"drmas","type":"module","exports":"./index.js"}');
    await writeFile(join(copy, 'index.js'), "throw new Error('the other copy');");
    const loaded = "export { default } from 'drmas/recipes/math/recipe';\nimport { train } from 'drmas';\n";
    await writeFile(file, `${loaded}console.log(typeof train);`);
    const { stdout } = await promisify(execFile)(process.execPath, [main, 'plan', file], { cwd: root });
    expect(stdout).toMatch(/^function\nrecipe {4}own\b/);
    await remove();
  }, 60_000);

  it('goes on where the file lies now, once it is named', async () => {
    const moved = join(root, 'moved');
    await rename(project, moved);
    const from = 'step-000001';
    await expect(resume(run, undefined, { from, threads: 1 })).rejects.toThrow(
      /own\.ts, which does not exist; give the recipe's new path with --recipe FILE/,
    );
    const file = join(moved, 'own.ts');
    await resume(run, file, { from, threads: 1 });
    const record = JSON.parse(await readFile(join(run, 'recipe.json'), 'utf8'));
    expect(record).toMatchObject({ recipe: { source: file }, resolved: { name: 'own' }, acceptedChanges: [] });
    expect(record.resolved.tasks.train.file).toBe(join(moved, 'tasks.jsonl'));
    await evaluate(run, { threads: 1 });
    await writeFile(file, `${source}// changed`);
    await expect(resume(run, file, { from, threads: 1 })).rejects.toThrow(/the code of the recipe .* has changed/);
    await rm(file);
    await expect(evaluate(run, { recipe: file })).rejects.toThrow(/there is no recipe file .*own\.ts/);
  }, 60_000);
});
