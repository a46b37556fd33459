import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTokenizer } from '@drmas/engine/tokens';
import { afterAll, describe, expect, it } from 'vitest';
import { tinyDefinition } from '../../../test/support/tiny-run.js';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { arithmetic } from '../../teams/tasks/generated/arithmetic.js';
import { demonstrationsOf } from '../training/run/run-settings.js';
import { traceBatch } from '../training/warm-start/supervised.js';
import { agentProfiles } from './recipe.js';
import { overridesOf } from './settings-file.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-overrides-'));
afterAll(() => rmSync(root, { recursive: true }));

const file = (text: string | Buffer) => {
  const path = join(root, 'settings.json');
  writeFileSync(path, text);
  return path;
};

describe('overrides from a file', () => {
  it('give one override for each leaf', () => {
    const settings = {
      training: { steps: 3 },
      agents: { solver: { system: 'a.b=1\n' } },
      evaluation: { by: ['level'] },
    };
    expect(overridesOf(file(JSON.stringify(settings)))).toEqual([
      'training.steps=3',
      'agents.solver.system="a.b=1\\n"',
      'evaluation.by=["level"]',
    ]);
  });

  it('come from a file of Windows too, and from none in UTF-16', () => {
    const text = '\ufeff{\r\n"seed": 2\r\n}\r\n';
    expect(overridesOf(file(text))).toEqual(['seed=2']);
    expect(() => overridesOf(file(Buffer.from(text, 'utf16le')))).toThrow(/not valid for encoding utf-8/);
  });

  it.each([
    ['{', /settings\.json holds no settings: /],
    ['[1]', /expected a JSON object, got \[1\]/],
    ['{"agents": {"a.b": {"system": ""}}}', /the key 'a\.b' cannot be overridden/],
    ['['.repeat(1000), /nested at most/],
  ])('are refused if the file is %.20s', (text, message) => {
    expect(() => overridesOf(file(text))).toThrow(message);
  });

  it('give agents other system prompts, in profiles and demonstrations too', () => {
    const [of, before] = [['agents.solver.system="<verifier>"'], []].map((overrides) =>
      resolveRecipe(tinyDefinition(), { overrides }),
    );
    if (of === undefined || before === undefined) throw new Error('two recipes');
    expect(agentProfiles(of).solver?.system).toBe('<verifier>');
    expect(agentProfiles(before).solver?.system).toBe('<solver>');
    const model = before.policies.solver?.model;
    if (model?.type !== 'tiny-decoder') throw new Error('a tiny decoder');
    const source = { agents: ['solver'], tokenizer: createTokenizer(model.tokenizer), context: 1000 };
    const first = (recipe: typeof of) => traceBatch(demonstrationsOf(recipe), source, 1, 'train', 1, 1)[0]?.tokens[0];
    expect(first(of)).toBe(source.tokenizer.encode('<verifier>')[0]);
    expect(first(before)).toBe(source.tokenizer.encode('<solver>')[0]);
  });
});

describe('a section that is left out', () => {
  it.each(['warmStart=none', 'warmStart=false', 'warmStart=off', 'warmStart=null', 'warmStart.steps=0'])(
    'may be written as %s, with or without one in the recipe',
    (override) => {
      const changes = [tinyDefinition(), tinyDefinition({ tasks: arithmetic() })];
      for (const definition of changes)
        expect(resolveRecipe(definition, { overrides: [override] }).warmStart).toBeUndefined();
    },
  );

  it.each(['gateway', 'rollout', 'sampler'])('is %s too', (section) => {
    expect(resolveRecipe(tinyDefinition(), { overrides: [`${section}=none`] })).not.toHaveProperty(section);
  });

  it('is a warm start of no steps in the recipe itself', () => {
    expect(resolveRecipe(tinyDefinition({ warmStart: { steps: 0 } })).warmStart).toBeUndefined();
  });
});

describe('the order of overrides', () => {
  const loss = (...overrides: string[]) => resolveRecipe(tinyDefinition(), { overrides }).loss;

  it('is the order in which they are given, also if one sets a type and another its section', () => {
    expect(loss('loss={"type":"kto"}', 'loss.type=gspo').type).toBe('gspo');
    expect(loss('loss.type=gspo', 'loss={"type":"kto"}').type).toBe('kto');
    expect(loss('loss.type=gspo', 'loss.type=kto').type).toBe('kto');
    const controller = (value: string) => `policies.solver.kl.controller${value}`;
    const adaptive = controller('={"type":"adaptive","target":0.1}');
    const overrides = ['policies.solver.kl.coefficient=1', adaptive, controller('.type=fixed')];
    const { kl } = resolveRecipe(tinyDefinition(), { overrides }).policies.solver ?? {};
    expect(kl?.controller).toEqual({ type: 'fixed' });
  });

  it('lets a type stand behind the settings of the new type', () => {
    expect(loss('loss.clip=0.5', 'loss.type=st-ppo')).toMatchObject({ type: 'st-ppo', clip: 0.5 });
    expect(loss('loss={"type":"kto"}', 'loss.clip=0.5', 'loss.type=st-ppo')).toMatchObject({ clip: 0.5 });
  });
});
