import { RandomStream } from '@drmas/engine/math';
import type { Trace } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import recipe from './recipe.js';
import { commandNames, failure, requests } from './world.js';

const source = requests();
function requireDefined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('expected a value');
  return value;
}
const tasksOf = async (split: 'train' | 'test') => {
  const tasks = await source.load(split);
  return Array.from({ length: tasks.size }, (_, index) => tasks.at(index));
};

describe('the world of words', () => {
  it('holds out requests of every command, none of which is trained on', async () => {
    const [train, test] = [await tasksOf('train'), await tasksOf('test')];
    const trained = new Set(train.map(({ id }) => id));
    expect(trained.size).toBe(train.length);
    expect(test.some(({ id }) => trained.has(id))).toBe(false);
    for (const name of commandNames) expect(test.some(({ data }) => data.name === name)).toBe(true);
  });

  it('demonstrates no held-out request, no third wording, and no new name', async () => {
    const test = new Set((await tasksOf('test')).map(({ id }) => id));
    const renamed = new Set((await tasksOf('train')).map(({ data }) => data.renamed));
    const random = new RandomStream('traces', 1);
    for (let i = 0; i < 2000; i++) {
      const { agent, messages, response } = requireDefined(source.trace)(random, 'train') as Extract<
        Trace,
        { agent: string }
      >;
      const text = String(messages?.[0]?.content);
      if (agent === 'coder') expect(test.has(text)).toBe(false);
      else
        expect([...renamed, ...commandNames].some((word) => [response, text.split(' ')[0]].includes(word))).toBe(false);
    }
  });

  it('says why a line failed', () => {
    expect(failure('copy notes', true)).toBe('copy notes\nError: copy has a new name in version 2.');
    expect(failure('copy notes', false)).toBe('copy notes\nError: a test failed.');
    expect(failure('dance notes', true)).toBe('dance notes\nError: dance is not a command.');
  });

  it('asks the fixer only after a failure, and takes one word of it', async () => {
    const { team } = recipe.input;
    const { data: task } = requireDefined((await tasksOf('train'))[0]);
    const playWith = async (version2: boolean, line: string, word: string) => {
      const asked: string[] = [];
      const agents = {
        coder: async () => ({ text: line }),
        fixer: async (read: string) => {
          asked.push(read);
          return { text: word };
        },
      };
      const random = { chance: () => version2 };
      const outcome = await team.play({ task, agents, random } as never);
      return { outcome, asked };
    };
    const right = `${task.name} ${task.file}`;
    expect(await playWith(false, right, '')).toMatchObject({ outcome: { passed: true }, asked: [] });
    const fixed = await playWith(true, right, task.renamed);
    expect(fixed).toMatchObject({ outcome: { passed: true, understood: true } });
    expect(fixed.asked).toEqual([failure(right, true)]);
    expect((await playWith(true, right, task.name)).outcome).toMatchObject({ passed: false });
  });
});
