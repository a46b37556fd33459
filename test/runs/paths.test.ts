// @module-tag verify
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { RecipeError } from '../../src/base/core/errors.js';
import type { TaskSource } from '../../src/base/core/task.js';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { arithmetic } from '../../src/teams/tasks/generated/arithmetic.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam } from '../../src/teams/team/team.js';
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
    const { task, reward } = digitTeam;
    const recipe = () => {
      const team = defineTeam({
        name: 'x',
        task,
        agents: { [name]: agent() },
        play: async () => ({ text: '' }),
        reward,
      });
      return tinyRecipe({ team } as unknown as Partial<RecipeInput>);
    };
    expect(recipe).toThrow();
  });

  it('of a task: files are called after steps, whatever tasks are called', async () => {
    const home = join(root, 'home');
    await mkdir(home);
    const names = [...hostile, 'CON', 'x'.repeat(5000), '__proto__'];
    const sums = arithmetic({ operations: [1, 2], warmStartOperations: [1, 2], top: 19 });
    const tasks: TaskSource = {
      ...sums,
      async load(split, schema) {
        const set = await sums.load(split, schema as never);
        return { ...set, at: (index) => ({ ...set.at(index), id: names[index % names.length] as string }) };
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
