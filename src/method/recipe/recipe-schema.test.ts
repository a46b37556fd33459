import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tinyDecoder } from '../../engine/model/model-spec.js';
import { standard } from '../../runs/composition/standard.js';
import { frozen } from './frozen.js';
import { assignmentMap, settingsSchema } from './recipe-schema.js';

const model = tinyDecoder({ width: 8, layers: 1, heads: 2, feedForward: 8, context: 32, tokenizer: { type: 'bytes' } });
const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 8 };
const minimal = {
  name: 'pair',
  assign: { solver: 'both', verifier: 'both' },
  policies: { both: { model } },
  agents: { solver: { sampling, invalidPenalty: 0 }, verifier: { sampling, invalidPenalty: 0 } },
};
const schema = settingsSchema(standard, ['solver', 'verifier'], ['both'], minimal.assign);

/** The schema below optional, default and transforming wrappers, and the first description on the way. */
function unwrapped(outer: z.core.$ZodType): { readonly schema: z.core.$ZodType; readonly description?: string } {
  const description = outer instanceof z.ZodType ? outer.description : undefined;
  const inner =
    outer instanceof z.ZodPipe
      ? outer.def.in
      : outer instanceof z.ZodOptional || outer instanceof z.ZodDefault || outer instanceof z.ZodPrefault
        ? outer.def.innerType
        : undefined;
  if (inner === undefined) return { schema: outer, ...(description === undefined ? {} : { description }) };
  const below = unwrapped(inner);
  return description === undefined ? below : { schema: below.schema, description };
}

/** The dotted paths of keys without a description. One agent or policy represents all. */
function undescribed(at: z.core.$ZodType, path: string): string[] {
  const { schema: inner } = unwrapped(at);
  if (inner instanceof z.ZodDiscriminatedUnion)
    return inner.options.flatMap((member) => undescribed(member, `${path}(${member instanceof z.ZodType ? '' : '?'})`));
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries<z.core.$ZodType>(inner.shape).flatMap(([key, value]) => {
    const byName = ['solver', 'verifier', 'both', 'type', 'model'].includes(key);
    const here = `${path}.${key}`;
    return [...(byName || unwrapped(value).description !== undefined ? [] : [here]), ...undescribed(value, here)];
  });
}

describe('settingsSchema', () => {
  it('fills in every default, so that a second pass changes nothing', () => {
    const settings = schema.parse(minimal);
    expect(settings.training).toMatchObject({ steps: 60, tasksPerStep: 16, groupSize: 8, checkpointEvery: 20 });
    expect(settings.policies.both).toMatchObject({ optimizer: { type: 'adamw' }, warmupSteps: 5, clipNorm: 1 });
    expect(settings.agents.solver).toMatchObject({ rewardWeight: 1 });
    expect(settings).not.toHaveProperty('warmStart');
    expect(schema.parse(settings)).toEqual(settings);
  });

  it('describes every key, since the reference and the editor show these sentences', () => {
    expect(undescribed(schema, 'recipe')).toEqual([]);
  });

  it.each<[string, object]>([
    ['an agent that the team does not have', { agents: { ...minimal.agents, critic: minimal.agents.solver } }],
    ['a policy without an agent', { policies: { ...minimal.policies, other: { model } } }],
    ['an unknown key', { training: { stepz: 1 } }],
    ['no steps in a checkpoint', { training: { checkpointEvery: 0 } }],
    ['a fraction of an episode', { training: { groupSize: 1.5 } }],
    ['a probability above 1', { agents: { ...minimal.agents, solver: { sampling: { ...sampling, topP: 2 } } } }],
    ['a model beside the policies', { model }],
  ])('refuses %s', (_, changes) => {
    expect(schema.safeParse(minimal).success).toBe(true);
    expect(schema.safeParse({ ...minimal, ...changes }).success).toBe(false);
  });
});

describe('assignmentMap', () => {
  it('takes the name of a policy, or a frozen entry', () => {
    const assign = { solver: 'one', verifier: frozen(model) };
    expect(assignmentMap(['solver', 'verifier'], assign).parse(assign)).toMatchObject({
      solver: 'one',
      verifier: { type: 'frozen', model: { kvHeads: 2 } },
    });
    const parses = (value: unknown) => assignmentMap(['solver'], value).safeParse(value).success;
    expect([{ solver: '../up' }, { solver: '' }, {}, { solver: 'a', other: 'b' }].map(parses)).toEqual(
      new Array(4).fill(false),
    );
  });
});
