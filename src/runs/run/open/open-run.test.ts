import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Task, TaskSource } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { describe, expect, it } from 'vitest';
import { temporaryRoot, tinyDefinition, tinyRecipe } from '../../../../test/support/tiny-run.js';
import { jsonl } from '../../../teams/tasks/files/file-source.js';
import { resolveRecipe } from '../../composition/resolve-recipe.js';
import { planRun } from '../../studies/plan/dry-run.js';
import { probeRecipe } from '../../studies/plan/probe/probe-recipe.js';
import { evaluate, train } from '../api.js';
import { leakedTasks, prepareTasks } from './prepare-tasks.js';

const root = temporaryRoot();

const prepare = (overrides: readonly string[], tasks?: TaskSource) =>
  prepareTasks(tinyRecipe(tasks === undefined ? {} : { tasks }, overrides));

describe('what is refused before any work', () => {
  it('a warm start without traces, a split without tasks', async () => {
    const silent = (size: number): TaskSource => ({
      name: 'silent',
      load: async () => ({ name: 'silent', size, at: () => ({ id: 'one', data: {} }) }),
    });
    await expect(prepare([], silent(1))).resolves.toBeDefined();
    await expect(prepare(['warmStart.steps=1'], silent(1))).rejects.toThrow(/warmStart: .*'silent' generate no traces/);
    await expect(prepare([], silent(0))).rejects.toThrow(/tasks.train: there are no tasks/);
  });

  it('a division of evaluations by what no task has, or what each has alone', async () => {
    await expect(prepare(['evaluation.by=operations'])).resolves.toBeDefined();
    await expect(prepare(['evaluation.by=["operations","answer"]'])).resolves.toBeDefined();
    await expect(prepare(['evaluation.by=level'])).rejects.toThrow(
      "evaluation.by: no evaluated task has the field 'level' (they have operations, question, answer)",
    );
    const rows = [
      { id: 'a', data: { kind: 'x', list: [1] } },
      { id: 'b', data: { level: 2 } },
      { id: 'c', data: 'y' },
    ];
    const mixed = (size: number): TaskSource => ({
      name: 'mixed',
      load: async () => ({ name: 'mixed', size, at: (index) => rows[rows.length - size + index] as Task }),
    });
    await expect(prepare(['evaluation.by=list'], mixed(3))).rejects.toThrow("field 'list' (they have kind, level)");
    await expect(prepare(['evaluation.by=list'], mixed(1))).rejects.toThrow('(they have no field with a text or a');
    await expect(prepare(['evaluation.by=question', 'evaluation.tasks=200'])).rejects.toThrow(
      /evaluation.by: the field 'question' has \d+ values, expected at most 100/,
    );
    expect(() => prepare(['evaluation.by=7'])).toThrow('evaluation.by: expected the name of a field');
  });

  it('a base for policies that are not alike', async () => {
    const deeper = 'policies.verifier.model.layers=2';
    await expect(prepare([deeper])).rejects.toThrow(/warmStart.share: .*different models/);
    await expect(prepare([deeper, 'warmStart.share=policy'])).resolves.toBeDefined();
  });

  it('responses that are longer than the context', async () => {
    const message = "agents.verifier.sampling.maxTokens: 64 leaves no room for a prompt in the model's context of 64";
    await expect(prepare(['agents.verifier.sampling.maxTokens=64'])).rejects.toThrow(message);
    await expect(prepare(['agents.verifier.sampling.maxTokens=63'])).resolves.toBeDefined();
    await expect(prepare(['evaluation.sampling.maxTokens=64'])).rejects.toThrow('evaluation.sampling.maxTokens: 64');
    await expect(prepare(['agents.solver.evaluationSampling.maxTokens=64'])).rejects.toThrow(
      'agents.solver.evaluationSampling.maxTokens: 64',
    );
  });
});

describe('tasks that were read with warnings', () => {
  const definition = () => {
    const lines = [1, 2, 3, 4].map((n) =>
      JSON.stringify({ question: `${n}+1`, answer: n % 2 === 0 ? '' : `${n + 1}` }),
    );
    const file = join(root, 'half.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    return {
      file,
      definition: tinyDefinition({ tasks: jsonl(file), training: { steps: 1, tasksPerStep: 2, groupSize: 2 } }),
    };
  };

  it('are told in the log of the run, once, and by everything else that reads them', { tags: 'verify' }, async () => {
    const { file, definition: recipe } = definition();
    const message = `${file}:2: 2 of 4 tasks left out, their answer is null or empty`;
    const run = join(root, 'half');
    const { events } = await train(recipe, { run, threads: 1 });
    const undivided = expect.stringMatching(/half\.jsonl are the training tasks and the test tasks/);
    const expected = [message, undivided].map((text) => ({ code: 'tasks', message: text }));
    expect(events.filter(({ type }) => type === 'warning')).toMatchObject(expected);
    expect(events.findIndex(({ type }) => type === 'warning')).toBe(1);

    const notices: string[] = [];
    const onNotice = (notice: string) => void notices.push(notice);
    await evaluate(run, { recipe, threads: 1, tasks: 1, samples: 1, onNotice });
    expect(notices).toEqual([message]);
    const resolved = resolveRecipe(recipe);
    await probeRecipe(resolved, nodeHost({ threads: 1, notify: onNotice }), { tasks: 1 });
    expect(notices).toEqual([message, message, undivided]);
    expect((await planRun(resolved, await prepareTasks(resolved))).notes).toContain(message);
  });

  it('name the tasks that are too long for their source, in the log and in the plan', async () => {
    const file = join(root, 'long.jsonl');
    const questions = ['1+1', '2+1', '3+1+1+1+1+1+1+1+1'];
    writeFileSync(file, questions.map((question) => JSON.stringify({ question, answer: '2' })).join('\n'));
    const training = { steps: 1, tasksPerStep: 2, groupSize: 2 };
    const definition = (limit: number) =>
      tinyDefinition({ tasks: jsonl(file, { maxQuestionTokens: limit }), training });
    const message = `${file}: 1 of 3 tasks left out, their question has more than 12 tokens`;
    const run = join(root, 'long');
    const { events } = await train(definition(12), { run, threads: 1 });
    expect(
      events.filter(({ type, ...event }) => type === 'warning' && 'code' in event && event.code === 'tasks'),
    ).toMatchObject([{ message }, { message: expect.stringContaining('scores say nothing about new tasks') }]);
    const resolved = resolveRecipe(definition(12));
    expect((await planRun(resolved, await prepareTasks(resolved))).notes).toContain(message);
    await expect(train(definition(1), { run: join(root, 'none'), threads: 1 })).rejects.toThrow(
      'all 3 tasks have a question of more than 1 tokens',
    );
  });

  it('are not called both training and test tasks if the file is divided, or if there are two', async () => {
    const rows = [1, 2, 3, 4].map((n) => `{"question":"${n}+1","answer":"2","part":"${n < 3 ? 'train' : 'test'}"}`);
    const [file, other] = [join(root, 'divided.jsonl'), join(root, 'other.jsonl')];
    writeFileSync(file, rows.join('\n'));
    writeFileSync(other, '{"question":"5+1","answer":"6"}');
    const divided = [jsonl(file, { split: 'part' }), { train: jsonl(file), test: jsonl(other) }];
    for (const [i, tasks] of divided.entries()) {
      const definition = tinyDefinition({ tasks, training: { steps: 1, tasksPerStep: 2, groupSize: 2 } });
      const { events } = await train(definition, { run: join(root, `divided-${i}`), threads: 1 });
      expect(events.filter((event) => event.type === 'warning' && event.code === 'tasks')).toEqual([]);
    }
  });

  it('are counted if a task of the test file is a training task too, under any id', async () => {
    const rowsOf = (numbers: readonly number[], id: string) =>
      numbers.map((n) => `{"id":"${id}${n}","answer":"${n + 1}","question":"${n}+1"}`).join('\n');
    const [file, test] = [join(root, 'learnt.jsonl'), join(root, 'test.jsonl')];
    writeFileSync(file, rowsOf([1, 2, 3, 4], 'a'));
    writeFileSync(test, rowsOf([4, 1, 5], 'b'));
    const tasks = { train: jsonl(file), test: jsonl(test) };
    const recipe = resolveRecipe(tinyDefinition({ tasks, training: { tasksPerStep: 2 } }));
    const message = '2 of 3 evaluated tasks are training tasks too, such as b4, so scores say less about new tasks';
    expect(leakedTasks(recipe.tasks, await prepareTasks(recipe), 3)).toEqual([message]);
    expect((await planRun(recipe, await prepareTasks(recipe))).notes).toContain(message);
  });

  it.each([
    ['ignores the split', () => '', 1],
    ['heeds it', (split: string) => split, 0],
  ])('are the same if the source of a program %s', async (_, idOf, warned) => {
    const at = (split: string) => (i: number) => ({
      id: `${idOf(split)}${i}`,
      data: { question: `${i}`, answer: '1' },
    });
    const source = (size: number) => ({
      name: 'own',
      load: async (split: string) => ({ name: 'own', size, at: at(split) }),
    });
    for (const [size, count] of [
      [12, 5],
      [Number.POSITIVE_INFINITY, 5],
      [12, 1], // one task may be the only one of its kind, such as a game
    ] as const) {
      const recipe = resolveRecipe(tinyDefinition({ tasks: source(size) }));
      const said = leakedTasks(recipe.tasks, await prepareTasks(recipe), count);
      const found = said.filter((message) => message.includes('first training tasks, so') && message.includes("'own'"));
      expect(found).toHaveLength(count > 1 ? warned : 0);
    }
  });
});
