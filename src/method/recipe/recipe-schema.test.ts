import { tinyDecoder } from '@drmas/engine/model';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { tinyDefinition, tinyRecipe } from '../../../test/support/tiny-run.js';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { standard } from '../../runs/composition/standard.js';
import { frozen } from './frozen.js';
import { lossOf, lossPath } from './policy-losses.js';
import { assignmentMap, settingsSchema } from './recipe-schema.js';
import { withoutRemoved } from './removed-settings.js';

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

describe('a removed setting', () => {
  it.each([
    ['training.durationWeights.most=5', /^training\.durationWeights: drmas has no such setting any more: no meas/],
    ['sampler={"type":"vllm","url":"http://a","timeoutSeconds":9}', /^sampler\.timeoutSeconds: .* 600 seconds/],
    [
      'policies.solver.sampler={"type":"vllm","url":"http://a","timeoutSeconds":9}',
      /^policies\.solver\.sampler\.timeoutSeconds: /,
    ],
  ])('is refused with its path and the reason: %s', (override, message) => {
    expect(() => resolveRecipe(tinyDefinition(), { overrides: [override] })).toThrow(message);
  });

  it('is ignored in a stored recipe at the value that is fixed now, and stays at any other', () => {
    const sampler = { type: 'vllm', url: 'http://a' };
    const stored = {
      sampler: { ...sampler, timeoutSeconds: 600 },
      policies: { solver: { sampler: { ...sampler, timeoutSeconds: 600 } }, verifier: {} },
      training: { steps: 3 },
    };
    expect(withoutRemoved(stored)).toEqual({
      sampler,
      policies: { solver: { sampler }, verifier: {} },
      training: { steps: 3 },
    });
    expect(stored.sampler.timeoutSeconds).toBe(600);
    const other = { sampler: { ...sampler, timeoutSeconds: 9 }, training: { durationWeights: { most: 10 } } };
    expect(withoutRemoved(other)).toEqual(other);
  });
});

describe('the losses of a recipe', () => {
  it('are one loss for all policies, or a policy has a complete loss of its own', () => {
    const recipe = tinyRecipe({ policies: { verifier: { loss: { type: 'turn-ppo', clip: 0.1 } } } }, ['loss.clip=0.3']);
    expect(lossOf(recipe, 'solver')).toEqual({ type: 'ppo-clip', clip: 0.3, aggregate: 'token-mean' });
    const loss = { type: 'turn-ppo', clip: 0.1, aggregate: 'seq-mean-token-mean' };
    expect(lossOf(recipe, 'verifier')).toEqual(loss);
    expect(['solver', 'verifier'].map((policy) => lossPath(recipe, policy))).toEqual([
      'loss',
      'policies.verifier.loss',
    ]);
  });

  it.each(['ppo-clip', 'turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo'])('fill in the correction of %s', (type) => {
    const recipe = tinyRecipe({}, [`loss.type=${type}`, 'loss.importanceCorrection={}']);
    const correction = { cap: 2, beyond: 'truncate', level: 'token' };
    expect(recipe.loss).toMatchObject({ type, importanceCorrection: correction });
  });

  it.each([
    [['loss={"type":"gspo","dualClip":3}'], /^loss.dualClip: unknown key/],
    [['loss={"type":"gspo","aggregate":"token-mean"}'], /^loss.aggregate: unknown key/],
    [['loss={"type":"cross-entropy","importanceCorrection":{}}'], /^loss.importanceCorrection: unknown key/],
    [['loss.importanceCorrection={"cap":0}'], /^loss.importanceCorrection.cap/],
    [['loss.clipLow=1'], /^loss.clipLow/],
    [
      ['loss={"type":"cross-entropy"}'],
      /^loss.type: 'cross-entropy' takes .* weights of demonstrations, which those of 'drmas' are not; .*'rejection'/,
    ],
    [['policies.verifier.loss={"type":"cross-entropy"}'], /^policies.verifier.loss.type: 'cross-entropy'/],
    [
      [
        'advantage={"type":"rejection"}',
        'loss={"type":"cross-entropy"}',
        'policies.solver.kl={"in":"advantage","kind":"k1","coefficient":2}',
      ],
      /^policies.solver.kl.in: 'cross-entropy' weighs .* the KL makes some negative/,
    ],
  ])('%o is refused with its path', (overrides, message) => {
    expect(() => tinyRecipe({}, overrides)).toThrow(message);
  });

  it('accept cross-entropy together with rejection', () => {
    const recipe = tinyRecipe({}, ['advantage={"type":"rejection","keep":"best"}', 'loss={"type":"cross-entropy"}']);
    expect(recipe).toMatchObject({
      advantage: { type: 'rejection', keep: 'best', above: 0, episodeScore: 'mean' },
      loss: { type: 'cross-entropy', aggregate: 'token-mean' },
    });
  });
});
