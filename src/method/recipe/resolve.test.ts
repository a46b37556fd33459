import { RecipeError } from '@drmas/engine/errors';
import { lora, tinyDecoder } from '@drmas/engine/model';
import type { TaskSource } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { resolveRecipe } from '../../runs/composition/resolve-recipe.js';
import { agent } from '../../teams/team/agent.js';
import { defineTeam } from '../../teams/team/team.js';
import { defineRecipe, type RecipeInput } from './define.js';
import { evaluationSampling, recipeJson } from './recipe.js';

const team = defineTeam({
  name: 'pair',
  task: z.unknown(),
  agents: { solver: agent({ invalidPenalty: 0.1, sampling: { maxTokens: 48 } }), verifier: agent({}) },
  play: async () => 0,
  reward: () => 0,
});

const source = (settings: Record<string, unknown>): TaskSource => ({
  name: 'sums',
  settings,
  load: async () => ({ name: 'sums', size: 0, at: () => ({ id: '', data: null }) }),
  configure: (changed) => source({ ...changed }),
});

const model = tinyDecoder({
  width: 16,
  layers: 1,
  heads: 2,
  feedForward: 32,
  context: 64,
  tokenizer: { type: 'bytes' },
});

const minimal = { team, tasks: source({ file: null, low: 4 }), model };
type Input = RecipeInput<typeof team>;
const resolveWhole = (overrides: string[] = [], input: Partial<Input> = {}) =>
  resolveRecipe({ type: 'recipe', input: { ...minimal, ...input } as RecipeInput }, { overrides });

/** The resolved recipe without its open estimator, whose functions are new each time. */
function resolve(...request: Parameters<typeof resolveWhole>) {
  const { estimator, ...recipe } = resolveWhole(...request);
  return recipe;
}

function errorOf(act: () => unknown): RecipeError {
  try {
    act();
  } catch (error) {
    if (error instanceof RecipeError) return error;
    throw error;
  }
  throw new Error('expected a RecipeError');
}

describe('resolveRecipe', () => {
  it("sets the limits of the team's loops, by the names that it declares", () => {
    const limited = { team: { ...team, limits: { rounds: 4, tries: 2 } } };
    expect(resolve(['limits.rounds=2'], limited).team.limits).toEqual({ rounds: 2, tries: 2 });
    expect(resolve([], limited).team.limits).toEqual({ rounds: 4, tries: 2 });
    expect(errorOf(() => resolve(['limits.turns=2'], limited)).message).toMatch(/limits/);
    expect(errorOf(() => resolve(['limits.rounds=0'], limited)).message).toMatch(/limits\.rounds/);
  });

  it('removes a policy without agents, also if an earlier override has set it', () => {
    const overrides = ['policies.verifier.clipNorm=2', 'assign={"solver":"solver","verifier":"solver"}'];
    expect(errorOf(() => resolve(overrides)).message).toMatch(/policies/);
    expect(Object.keys(resolve([...overrides, 'policies.verifier=null']).policies)).toEqual(['solver']);
  });

  it('keeps the settings of policies when the assignment changes, if all policies have the same settings', () => {
    const optimizer = { learningRate: 1e-6 };
    const alike = { policies: { solver: { optimizer }, verifier: { optimizer } } };
    const shared = resolve(['assign=shared', 'policies.shared.clipNorm=2'], alike);
    expect(Object.keys(shared.policies)).toEqual(['shared']);
    expect(shared.policies.shared).toMatchObject({ optimizer, clipNorm: 2 });
    const apart = resolve(['assign=separate'], { assign: 'shared', policies: { shared: { optimizer } } } as object);
    expect([apart.policies.solver, apart.policies.verifier]).toMatchObject([{ optimizer }, { optimizer }]);
    expect(resolve(['assign=separate'], alike)).toEqual(resolve([], alike));
    const differing = { policies: { ...alike.policies, verifier: { clipNorm: 3 } } };
    expect(errorOf(() => resolve(['assign=shared'], differing)).message).toMatch(/no agent is assigned to a policy/);
  });

  it('evaluates with the sampling of training, unless the recipe sets another for all agents or for one', () => {
    const trains = { temperature: 1, topP: 1, topK: 0, maxTokens: 48 };
    expect(evaluationSampling(resolve(), 'solver')).toEqual(trains);
    const all = ['evaluation.sampling.temperature=0.6', 'evaluation.sampling.topP=0.95'];
    const one = ['agents.verifier.evaluationSampling.temperature=0', 'agents.verifier.sampling.maxTokens=8'];
    const apart = resolve([...all, ...one]);
    expect(evaluationSampling(apart, 'solver')).toEqual({ ...trains, temperature: 0.6, topP: 0.95 });
    expect(evaluationSampling(apart, 'verifier')).toEqual({ temperature: 0, topP: 0.95, topK: 0, maxTokens: 8 });
    expect(apart.agents.solver?.sampling).toEqual(trains);
    expect(errorOf(() => resolve(['evaluation.sampling.topp=0.95'])).message).toMatch(
      /^evaluation\.sampling\.topp: .*did you mean 'topP'/,
    );
    expect(errorOf(() => resolve(['evaluation.sampling.topP=0'])).path).toBe('evaluation.sampling.topP');
  });

  it('fills in every default', () => {
    const recipe = resolve();
    expect(recipe.assign).toEqual({ solver: 'solver', verifier: 'verifier' });
    expect(recipe.policies.verifier).toEqual({
      model: { ...model, kvHeads: 2, ropeBase: 10_000 },
      optimizer: { type: 'adamw', learningRate: 2e-4, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0 },
      warmupSteps: 5,
      schedule: { type: 'constant' },
      clipNorm: 1,
      epochs: 1,
      miniBatches: 1,
      entropyCoefficient: 0,
    });
    expect(recipe.agents.solver).toEqual({
      sampling: { temperature: 1, topP: 1, topK: 0, maxTokens: 48 },
      invalidPenalty: 0.1,
      callCost: 0,
      tokenCost: 0,
      rewardWeight: 1,
    });
    expect(recipe.agents.verifier?.sampling.maxTokens).toBe(256);
    expect(recipe.advantage.type).toBe('drmas');
    expect(recipe.loss).toEqual({ type: 'ppo-clip', clip: 0.2, aggregate: 'token-mean' });
    expect(recipe.training).toMatchObject({ steps: 60, tasksPerStep: 16, groupSize: 8, spike: { action: 'clip' } });
    expect(recipe.evaluation).toMatchObject({ every: 20, tasks: 256, samples: 4, level: 0.95 });
    expect(recipe.warmStart).toBeUndefined();
    expect(recipe.name).toBe('pair');
  });

  it('has a JSON form that survives a round trip', () => {
    const json = recipeJson(resolveWhole(['warmStart.steps=7', 'tasks.test.low=5']));
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
    expect(json).toMatchObject({ team: 'pair', tasks: { train: { low: 4 }, test: { name: 'sums', low: 5 } } });
  });

  it('makes one policy for all agents when they share', () => {
    const recipe = resolve(['assign=shared', 'policies.shared.clipNorm=0.5']);
    expect(recipe.assign).toEqual({ solver: 'shared', verifier: 'shared' });
    expect(Object.keys(recipe.policies)).toEqual(['shared']);
    expect(recipe.policies.shared).toMatchObject({ clipNorm: 0.5, model: { width: 16 } });
  });

  it('takes an assignment by name and a model per policy', () => {
    const assign = { solver: 'big', verifier: 'small' } as const;
    const input = { ...minimal, assign, policies: { big: { model: { ...model, width: 32 } } } };
    const recipe = resolveRecipe(defineRecipe(input), { overrides: ['model.layers=2'] });
    expect(recipe.policies.big?.model).toMatchObject({ width: 32, layers: 1 });
    expect(recipe.policies.small?.model).toMatchObject({ width: 16, layers: 2 });
  });
});

describe('overrides', () => {
  it('reach leaves that were defaulted, inherited or written', () => {
    const recipe = resolve([
      'training.spike.factor=5',
      'policies.verifier.optimizer.learningRate=1e-3',
      'policies.solver.model.width=32',
      'agents.solver.sampling.temperature=0.5',
      'seed=9',
      'name=tuned',
    ]);
    expect(recipe.training.spike).toEqual({ factor: 5, floor: 1, window: 20, action: 'clip' });
    expect(recipe.policies.verifier?.optimizer.learningRate).toBe(1e-3);
    expect(recipe.policies.solver?.model).toMatchObject({ width: 32 });
    expect(recipe.policies.verifier?.model).toMatchObject({ width: 16 });
    expect(recipe.agents.solver?.sampling).toMatchObject({ temperature: 0.5, maxTokens: 48 });
    expect(recipe).toMatchObject({ seed: 9, name: 'tuned' });
  });

  it('drop the siblings of a type that changes, whatever their order', () => {
    const loss = { type: 'ppo-clip', clip: 0.1, clipHigh: 0.3 } as const;
    expect(resolve(['loss.clipLow=0.5', 'loss.type=cispo'], { loss }).loss).toEqual({
      type: 'cispo',
      clipLow: 0.5,
      clipHigh: 0.2,
      aggregate: 'token-mean',
    });
    expect(resolve(['loss.type=ppo-clip'], { loss }).loss).toMatchObject({ clip: 0.1, clipHigh: 0.3 });
  });

  it('of the training tasks also apply to the test split of the same source', () => {
    const { tasks } = resolve(['tasks.train.file=a.jsonl', 'tasks.test.low=1']);
    expect(tasks.train.settings).toEqual({ file: 'a.jsonl', low: 4 });
    expect(tasks.test.settings).toEqual({ file: 'a.jsonl', low: 1 });
    const apart = resolve(['tasks.train.low=2'], { tasks: { train: source({ low: 4 }), test: source({ low: 4 }) } });
    expect(apart.tasks.test.settings).toEqual({ low: 4 });
  });

  it('change the optimiser, which then has its own defaults', () => {
    const written = { policies: { solver: { optimizer: { learningRate: 0.5 } } } };
    const optimizerWith = (...overrides: string[]) => resolve(overrides, written).policies.solver?.optimizer;
    expect(optimizerWith()).toMatchObject({ type: 'adamw', learningRate: 0.5 });
    const sgd = { type: 'sgd', learningRate: 0.1, momentum: 0.9, nesterov: false, weightDecay: 0 };
    expect(optimizerWith('policies.solver.optimizer.type=sgd', 'policies.solver.optimizer.momentum=0.9')).toEqual(sgd);
    const looking = ['policies.solver.optimizer.type=sgd', 'policies.solver.optimizer.nesterov=true'];
    expect(errorOf(() => optimizerWith(...looking)).path).toBe('policies.solver.optimizer.nesterov');
  });

  it('choose a filter with its own keys', () => {
    const filter = (...overrides: string[]) =>
      resolve(overrides.map((one) => `training.filter.${one}`)).training.filter;
    expect(resolve([]).training.filter).toBeUndefined();
    expect(filter('type=equal-outcomes')).toEqual({ type: 'equal-outcomes', score: 'outcome' });
    expect(filter('type=equal-outcomes', 'refill={}')).toMatchObject({ refill: { maxRounds: 4 } });
    expect(filter('type=variance', 'score=mean')).toEqual({ type: 'variance', score: 'mean', keep: 0.5 });
    const refused = [
      ['training.filter.refill', ['type=variance', 'refill.maxRounds=3']],
      ['training.filter.refill.maxRounds', ['type=equal-outcomes', 'refill.maxRounds=1']],
      ['training.filter.keep', ['type=variance', 'keep=1']],
      ['training.filter.type', ['score=mean']],
    ] as const;
    for (const [path, overrides] of refused) expect(errorOf(() => filter(...overrides)).path, path).toBe(path);
  });

  it('reach an adapter and its base', () => {
    const adapter = lora(model, { rank: 4 });
    const all = ['q', 'k', 'v', 'o', 'gate', 'up', 'down'];
    const { policies } = resolve([], { model: adapter });
    expect(policies.solver?.model).toMatchObject({ type: 'lora', rank: 4, alpha: 4, targets: all });
    expect(policies.solver?.model).toMatchObject({ base: { type: 'tiny-decoder', kvHeads: 2 } });
    const changed = resolve(['model.alpha=8', 'model.targets=["v","q"]', 'policies.verifier.model.base.width=32'], {
      model: adapter,
    });
    expect(changed.policies.solver?.model).toMatchObject({ alpha: 8, targets: ['q', 'v'], base: { width: 16 } });
    expect(changed.policies.verifier?.model).toMatchObject({ alpha: 8, base: { width: 32 } });
    for (const [override, path, message] of [
      ['model.rank=0', 'model.rank', /expected a number >= 1, got 0/],
      ['model.targets=["q","x"]', 'model.targets.1', /one of q, k, v, o, gate, up, down/],
      ['model.targets=[]', 'model.targets', /a list of length >= 1/],
      ['model.alhpa=3', 'model.alhpa', /did you mean 'alpha'/],
      ['model.base.width=17', 'model.base.width', /multiple of 2 x heads/],
      ['model.base.widht=8', 'model.base.widht', /did you mean 'width'/],
      ['model.base.type=lora', 'model.base.type', /one of tiny-decoder, checkpoint/],
    ] as const) {
      const error = errorOf(() => resolve([override], { model: adapter }));
      expect(error.message).toMatch(message);
      expect(error.path).toBe(path);
    }
  });

  it('give adapters on checkpoints a warm start each, unless the recipe says otherwise', () => {
    const shareOf = (model: object, warmStart: object) =>
      resolve([], { model, warmStart } as Partial<Input>).warmStart?.share;
    const base = { type: 'checkpoint', path: './m' };
    expect(shareOf({ type: 'lora', base, rank: 2 }, { steps: 3 })).toBe('policy');
    expect(shareOf({ type: 'lora', base, rank: 2 }, { steps: 3, share: 'base' })).toBe('base');
    expect(shareOf(base, { steps: 3 })).toBe('base');
  });

  it('with null restore the default', () => {
    expect(resolve(['training.steps=null'], { training: { steps: 3 } }).training.steps).toBe(60);
    expect(resolve(['warmStart=null'], { warmStart: { steps: 3 } }).warmStart).toBeUndefined();
  });

  it.each([
    ['training.stepz', "unknown key 'stepz'; did you mean 'steps'?"],
    ['foo', "unknown key 'foo'"],
    ['loss.clop', "unknown key 'clop'; did you mean 'clip'?"],
    ['model.widht', "unknown key 'widht'; did you mean 'width'?"],
    ['agents.solvr', "the team has no agent 'solvr'; did you mean 'solver'?"],
    ['agents.solver.samplin', "unknown key 'samplin'; did you mean 'sampling'?"],
    ['policies.solver.clipNrm', "unknown key 'clipNrm'; did you mean 'clipNorm'?"],
    ['training.durationWeights', 'drmas has no such setting any more'],
  ])('with null refuse the unknown key %s as with another value', (path, message) => {
    const [ofNull, ofNumber] = ['null', '3'].map((value) => errorOf(() => resolve([`${path}=${value}`])));
    expect(ofNull?.message).toBe(ofNumber?.message);
    expect(ofNull?.message).toContain(`${path}: ${message}`);
  });

  it('with null refuse a key that the chosen type does not have', () => {
    expect(errorOf(() => resolve(['loss.type=gspo', 'loss.dualClip=null'])).path).toBe('loss.dualClip');
  });

  it('with null accept a known key that is absent, and remove an unknown one that is written', () => {
    const absent = ['training.filter', 'evaluation.by', 'loss.dualClip', 'policies.solver.kl', 'warmStart', 'sampler'];
    for (const path of absent) expect(resolve([`${path}=null`])).toEqual(resolve());
    const policies = { solver: { clipNorm: 2 }, verifier: { clipNorm: 3 } };
    const shared = resolve(['assign=shared', 'policies.solver=null', 'policies.verifier=null'], { policies });
    expect(Object.keys(shared.policies)).toEqual(['shared']);
    expect(resolve(['training.stepz=null'], { training: { stepz: 3 } } as object)).toEqual(resolve());
  });

  it('do not change the definition', () => {
    const definition = { type: 'recipe', input: { ...minimal, training: { steps: 3 } } } as const;
    resolveRecipe(definition, { overrides: ['training.steps=5', 'model.width=64'] });
    expect(definition.input.training.steps).toBe(3);
    expect(definition.input.model.width).toBe(16);
  });
});

describe('an error names the path', () => {
  it.each([
    ['trainign.steps=3', 'trainign', /did you mean 'training'/],
    ['modle.width=3', 'modle', /did you mean 'model'/],
    ['policies.solver.model.widht=3', 'policies.solver.model.widht', /did you mean 'width'/],
    ['training.stepz=3', 'training.stepz', /unknown key 'stepz'; did you mean 'steps'/],
    ['training.steps=-1', 'training.steps', /expected a number >= 0, got -1/],
    ['training.steps=many', 'training.steps', /expected a number, got "many"/],
    ['training.steps=1.5', 'training.steps', /expected an integer, got 1.5/],
    ['training.steps.x=1', 'training.steps', /.*/],
    ['training.failedEpisodes=zeroes', 'training.failedEpisodes', /one of exclude, zero, .*did you mean 'zero'/],
    ['agents.sovler.invalidPenalty=1', 'agents.sovler', /no agent 'sovler'; did you mean 'solver'/],
    ['policies.solvr.clipNorm=1', 'policies.solvr', /no agent is assigned to a policy 'solvr'; did you mean 'solver'/],
    ['assign=alone', 'assign', /one of separate, shared/],
    ['assign.solver=x', 'assign.verifier', /required/],
    ['assign={"solver":"Both","verifier":"both"}', 'assign', /'Both' and 'both' differ only by case/],
    [`assign={"solver":"${'x'.repeat(101)}","verifier":"x"}`, 'assign.solver', /./],
    ...Object.getOwnPropertyNames(Object.prototype)
      .filter((name) => !name.startsWith('_'))
      .map((name): [string, string, RegExp] => [
        `assign={"solver":"${name}","verifier":"x"}`,
        'assign.solver',
        /another name than those that every object has/,
      ]),
    ['advantage.type=drmass', 'advantage.type', /one of grpo, .*did you mean 'drmas'/],
    ['advantage.epsilom=1', 'advantage.epsilom', /did you mean 'epsilon'/],
    ['loss.clip=2', 'loss.clip', /expected a number < 1, got 2/],
    ['model.width=17', 'model.width', /multiple of 2 x heads/],
    ['model.tokenizer.type=words', 'model.tokenizer.type', /one of symbols, bytes/],
    ['tasks.train.fiel=x', 'tasks.train.fiel', /did you mean 'file'/],
    ['tasks.tset.file=x', 'tasks.tset.file', /did you mean 'test'/],
    ['training.steps', '', /path.to.key=value/],
    ['policies.solver.optimizer.type=adam', 'policies.solver.optimizer.type', /one of adamw, sgd, .*did you mean/],
    ['policies.solver.optimizer.momentum=0.9', 'policies.solver.optimizer.momentum', /unknown key 'momentum'/],
    ['policies.solver.kl.coefficient=0', 'policies.solver.kl.coefficient', /expected a number > 0, got 0/],
    ['policies.solver.kl.in=loss', 'policies.solver.kl.coefficient', /is required: a number/],
    ['policies.solver.kl.kind=k4', 'policies.solver.kl.kind', /one of k1, k2, k3, abs/],
    ['policies.solver.optimizer=5', 'policies.solver.optimizer', /expected/],
    ['policies.solver.schedule.type=cosin', 'policies.solver.schedule.type', /one of constant, linear, cosine/],
    [
      'policies.solver.schedule.updates=9',
      'policies.solver.schedule.type',
      /required: one of constant, linear, cosine/,
    ],
  ])('%s', (override, path, message) => {
    const error = errorOf(() => resolve([override]));
    expect(error.message).toMatch(message);
    expect(error.path).toBe(path);
    expect(error.exitCode).toBe(2);
  });

  it('names the setting that holds a function', () => {
    const training = { steps: 1, filter: { type: 'variance', keep: () => true } };
    expect(errorOf(() => resolve([], { training } as unknown as Partial<Input>))).toMatchObject({
      path: 'training.filter.keep',
    });
    const parts: Record<string, unknown>[] = Array.from({ length: 40 }, () => ({}));
    for (const part of parts) Object.assign(part, parts); // each holds all
    Object.assign(parts[7] as object, { keep: () => true });
    const path = errorOf(() =>
      resolve([], { training: { steps: 1, filter: parts[0] } } as unknown as Partial<Input>),
    ).path;
    expect(path).toMatch(/^training\.filter\.(\d+\.)+keep$/);
  });

  it('says in words what the schema of a task source refuses', () => {
    const knobs = z.strictObject({ low: z.number(), high: z.number().max(1) });
    const checked = (settings: Record<string, unknown>): TaskSource => ({
      ...source(settings),
      configure: (changed) => checked(knobs.parse(changed)),
    });
    const refused = (override: string) =>
      errorOf(() => resolve([override], { tasks: checked({ low: 4, high: 1 }) as Input['tasks'] }));
    expect(refused('tasks.train.high=8')).toMatchObject({ path: 'tasks.train.high', exitCode: 2 });
    expect(refused('tasks.test.low=few').message).toMatch(
      /^tasks\.test\.low: Invalid input: expected number, .*string$/,
    );
    const configure = () => {
      throw new TypeError('a mistake of the source');
    };
    const broken = { ...source({ low: 4 }), configure } as Input['tasks'];
    expect(() => resolve(['tasks.train.low=5'], { tasks: broken })).toThrow(TypeError);
  });

  it('reads a decimal without a digit before its point', () => {
    const clipOf = (text: string) => resolve([`policies.solver.clipNorm=${text}`]).policies.solver?.clipNorm;
    expect(clipOf('.5')).toBe(0.5);
    expect(clipOf('.25e1')).toBe(2.5);
    expect(errorOf(() => clipOf('.5.5')).message).toContain('expected a number, got ".5.5"');
  });

  it('an adaptive controller without a target', () => {
    const overrides = ['policies.solver.kl.coefficient=1', 'policies.solver.kl.controller.type=adaptive'];
    expect(errorOf(() => resolve(overrides)).path).toBe('policies.solver.kl.controller.target');
  });

  it('reports all errors at once', () => {
    const error = errorOf(() => resolve(['training.steps=-1', 'evaluation.level=2']));
    expect(error.message).toMatch(/training\.steps: .*\n {2}evaluation\.level: /);
  });

  it('asks for a model and a team', () => {
    const withoutModel = { type: 'recipe', input: { team, tasks: minimal.tasks } } as const;
    expect(errorOf(() => resolveRecipe(withoutModel)).path).toBe('model');
    const withoutTeam = { type: 'recipe', input: { tasks: minimal.tasks } as unknown as RecipeInput } as const;
    expect(errorOf(() => resolveRecipe(withoutTeam)).path).toBe('team');
    expect(errorOf(() => resolve([], { tasks: 5 as unknown as TaskSource })).path).toBe('tasks.train');
    const three = { train: minimal.tasks, test: minimal.tasks, validation: minimal.tasks } as Input['tasks'];
    expect(errorOf(() => resolve([], { tasks: three }))).toMatchObject({
      path: 'tasks.validation',
      message: expect.stringContaining("unknown key 'validation'"),
    });
  });
});
