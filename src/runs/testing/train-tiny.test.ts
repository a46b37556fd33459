import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { RecipeError } from '@drmas/engine/errors';
import { checkpoint, lora } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { digitTeam, temporaryRoot, tinyDefinition } from '../../../test/support/tiny-run.js';
import { defineRecipe } from '../../method/recipe/define.js';
import { frozen } from '../../method/recipe/frozen.js';
import { arithmetic } from '../../teams/tasks/generated/arithmetic.js';
import { trainTiny } from './train-tiny.js';

temporaryRoot();
const tasks = arithmetic({ operations: [1, 1], warmStartOperations: [1, 1], top: 9 });
const leftovers = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('drmas-tiny-'));

describe('trainTiny', () => {
  it('trains a recipe on a tiny model with its tokenizer, and leaves nothing behind', async () => {
    const before = await leftovers();
    const { events, episodes } = await trainTiny(tinyDefinition({ training: { steps: 50 } }), { seed: 3 });
    expect(
      events.map(({ type }) => type).filter((type) => ['run.started', 'step', 'run.finished'].includes(type)),
    ).toEqual(['run.started', 'step', 'step', 'run.finished']);
    expect(events.find(({ type }) => type === 'run.started')).toMatchObject({ seed: 3 });
    expect(episodes.map(({ length }) => length)).toEqual([8, 8]);
    for (const { turns } of episodes.flat()) {
      for (const { agent, response, advantage } of turns) {
        expect(['solver', 'verifier']).toContain(agent);
        expect(response.length).toBeGreaterThan(0);
        expect(advantage).toBeTypeOf('number');
      }
    }
    expect(await leftovers()).toEqual(before);
  });

  it('stands in for models that lie elsewhere: checkpoints, adapters on them, frozen ones, none', {
    tags: 'verify',
  }, async () => {
    const model = lora(checkpoint('org/very-large'), { rank: 64 });
    const definitions = [
      defineRecipe({ team: digitTeam, tasks }),
      defineRecipe({ team: digitTeam, tasks, model, assign: 'shared' }),
      defineRecipe({
        team: digitTeam,
        tasks,
        model: checkpoint('org/very-large'),
        assign: { solver: 'solver', verifier: frozen(checkpoint('org/larger')) },
      }),
    ];
    for (const definition of definitions) {
      const { events } = await trainTiny(definition, { steps: 1 });
      expect(events.at(-1)).toMatchObject({ type: 'run.finished', reason: 'completed', steps: 1 });
    }
  });

  it('takes overrides last, and refuses what train refuses', async () => {
    const { episodes } = await trainTiny(tinyDefinition(), { steps: 1, set: ['training.groupSize=2'] });
    expect(episodes.map(({ length }) => length)).toEqual([4]);
    await expect(trainTiny(tinyDefinition(), { set: ['training.stepz=2'] })).rejects.toThrow(RecipeError);
  });
});
