import { choiceTable, lora, tinyDecoder } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineRecipe, type RecipeInput } from '../../../method/recipe/define.js';
import { frozen } from '../../../method/recipe/frozen.js';
import { agent } from '../../../teams/team/agent.js';
import { defineTeam } from '../../../teams/team/team.js';
import { resolveRecipe } from '../../composition/resolve-recipe.js';
import { overridesOf, teamVariants } from './team-variants.js';

const team = defineTeam({
  name: 'desk',
  task: z.unknown(),
  agents: { writer: agent(), critic: agent({ absent: 'fine' }), editor: agent({ absent: '' }) },
  limits: { rounds: 5 },
  play: async ({ limits }) => limits.rounds,
  reward: () => 0,
});
const tokenizer = { type: 'bytes' } as const;
const sizes = { layers: 1, heads: 1, feedForward: 8, context: 64, tokenizer };
const model = tinyDecoder({ width: 8, ...sizes });
const tasks = { name: 'none', load: async () => ({ name: 'none', size: 1, at: () => ({ id: '1', data: 0 }) }) };
const definition = (changes: Partial<RecipeInput> = {}) =>
  defineRecipe({ team, tasks, model, warmStart: { steps: 10 }, ...changes } as never);

const derived = (changes: Partial<RecipeInput> = {}) => teamVariants(resolveRecipe(definition(changes)));
const names = (changes?: Partial<RecipeInput>) => derived(changes).variants.map(({ name }) => name);

describe('the smaller teams of a team', () => {
  it('follow from what team and recipe declare', () => {
    const { variants, notes } = derived({ policies: { writer: { candidates: [{ model }] } } });
    expect(variants.map(({ cut, name }) => `${cut}: ${name}`)).toEqual([
      'drop: without critic',
      'drop: without editor',
      'limit: rounds 3',
      'limit: rounds 2',
      'limit: rounds 1',
      'model: smaller writer',
      'merge: one policy for writer+critic',
      'merge: one policy for writer+editor',
      'merge: one policy for critic+editor',
      'merge: one policy for writer+critic+editor',
      'freeze: frozen writer',
      'freeze: frozen critic',
      'freeze: frozen editor',
    ]);
    expect(notes).toEqual(['the team needs writer: it declares no `absent` text for it']);
  });

  it('have a lower limit than the recipe sets, and keep constants, other models and random weights as they are', () => {
    expect(names({ limits: { rounds: 2 } }).filter((name) => name.startsWith('rounds'))).toEqual(['rounds 1']);
    const constant = { assign: { writer: 'writer', critic: frozen({ text: 'fine' }), editor: 'editor' } };
    expect(names(constant as never)).not.toContain('without critic');
    expect(names({ warmStart: undefined } as never).filter((name) => name.startsWith('frozen'))).toEqual([]);
    const table = choiceTable({ features: ['A'], choices: ['a', 'b'] });
    const other = names({ model: table, warmStart: undefined } as never);
    expect(other.filter((name) => name.startsWith('frozen'))).toEqual([]);
  });

  it('share a policy only between equal models', () => {
    const other = tinyDecoder({ width: 16, ...sizes });
    const merged = names({ policies: { editor: { model: other } } }).filter((name) => name.startsWith('one policy'));
    expect(merged).toEqual(['one policy for writer+critic']);
    expect(names({ assign: 'shared' }).filter((name) => name.startsWith('one policy'))).toEqual([]);
  });
});

describe('a smaller team as overrides', () => {
  const written: Partial<RecipeInput> = {
    policies: { critic: { clipNorm: 2 }, writer: { clipNorm: 3 } },
    agents: { critic: { rewardWeight: 2, callCost: 0.1 }, editor: { callCost: 0.1 } },
  };
  const all: readonly (readonly [Partial<RecipeInput>, readonly string[]])[] = [
    [{}, []],
    [written, []],
    [{ assign: 'shared' }, []],
    [{}, ['assign=shared']],
    [{}, ['policies.critic.clipNorm=2', 'agents.critic.rewardWeight=2', 'limits.rounds=4']],
    [
      {
        assign: { writer: 'a', critic: 'b', editor: frozen({ url: 'http://127.0.0.1/v1', model: 'x', apiKey: 'k' }) },
      } as never,
      [],
    ],
    [{ assign: { writer: 'a', critic: 'b', editor: frozen({ complete: () => ({ text: '' }) }) } } as never, []],
    [{ model: lora(model, { rank: 2 }) }, []],
  ];

  it('resolves for each recipe, with any of them written into the recipe or as overrides', () => {
    for (const [changes, set] of all) {
      const recipe = definition(changes);
      const base = resolveRecipe(recipe, { overrides: [...set] });
      for (const variant of teamVariants(base).variants) {
        const overrides = [...set, ...overridesOf(variant, base, recipe, set)];
        const resolved = resolveRecipe(recipe, { overrides });
        const { assign = {}, limits = {} } = variant;
        expect(resolved.assign, overrides.join(' ')).toMatchObject(assign);
        expect(resolved.limits ?? {}).toMatchObject(limits);
        expect({ ...resolved.team.limits }).toMatchObject(limits);
        expect(overrides.join()).not.toContain('apiKey');
      }
    }
  });
});
