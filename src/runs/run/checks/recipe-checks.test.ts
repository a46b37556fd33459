import type { Capabilities } from '@drmas/engine/contract';
import { EMBEDDED_CAPABILITIES } from '@drmas/engine/embedded';
import type { EndpointOptions } from '@drmas/engine/endpoints';
import { RecipeError } from '@drmas/engine/errors';
import { checkpoint, lora, type ModelInput } from '@drmas/engine/model';
import type { Tokenizer } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { bytesTokenizer } from '@drmas/engine/tokens';
import type { ToolFormatName } from '@drmas/engine/tool-calls';
import { describe, expect, it } from 'vitest';
import { miniTokenizer } from '../../../../test/support/qwen3-mini.js';
import { tinyRecipe } from '../../../../test/support/tiny-run.js';
import { assignmentOf } from '../../../method/recipe/assignment.js';
import { frozen } from '../../../method/recipe/frozen.js';
import type { Recipe } from '../../../method/recipe/recipe.js';
import type { Agent } from '../../../teams/team/agent.js';
import { planRun } from '../../studies/plan/dry-run.js';
import { openRun } from '../open/open-run.js';
import { prepareTasks } from '../open/prepare-tasks.js';
import { checkBackends, type Purpose } from './backend-checks.js';
import { checkToolFormats } from './recipe-checks.js';

const check = (recipe: Recipe, can: Capabilities, purpose?: Purpose) =>
  checkBackends(recipe, assignmentOf(recipe), () => can, purpose);

const { roles } = EMBEDDED_CAPABILITIES;
const adaptersOnly: Capabilities['roles'] = { ...roles, policy: ['adapter'], frozen: ['adapter'] };
const fromDirectories: Capabilities['roles'] = { ...roles, policy: ['directory', 'adapter'] };

const refused = (
  overrides: readonly string[],
  changes: Partial<Capabilities>,
  message: string | RegExp,
  recipe: Parameters<typeof tinyRecipe>[0] = {},
) => expect(() => check(tinyRecipe(recipe, overrides), { ...EMBEDDED_CAPABILITIES, ...changes })).toThrow(message);

describe('what a backend cannot do', () => {
  it('is refused with its path and the reason', () => {
    refused([], { roles: adaptersOnly }, /^policies.solver.model: the backend 'embedded' trains adapters only/);
    refused([], { roles: fromDirectories, bases: ['directory'] }, /^policies.solver.model: .*no models from a seed/);
    refused(
      ['agents.verifier.sampling.temperature=0.5'],
      { distribution: 'sampled' },
      /^agents.verifier.sampling.temperature: .*temperature 1 only, got 0.5/,
    );
    refused(['loss.type=gspo'], { losses: ['ppo-clip', 'cispo'] }, /^loss.type: .*no 'gspo'; it has ppo-clip, cispo/);
    const sgd = 'policies.solver.optimizer.type=sgd';
    refused([sgd], { optimizers: ['adamw'] }, /^policies.solver.optimizer.type: .*no 'sgd'; it has adamw/);
    const coarse = 'policies.solver.precision=bfloat16';
    refused([coarse], { precisions: ['float32'] }, /^policies.solver.precision: .*'bfloat16' products; it has float32/);
    refused(
      ['policies.solver.precision=int8'],
      {},
      /^policies.solver.precision: 'int8' is for adapters.*got 'tiny-dec/,
    );
    const gspo = ['policies.verifier.loss={"type":"gspo"}'];
    refused(gspo, { losses: ['ppo-clip'] }, /^policies.verifier.loss.type: .*no 'gspo'/);
    const bonus = ['policies.solver.entropyCoefficient=0.01'];
    refused(bonus, { distribution: 'sampled' }, /^policies.solver.entropyCoefficient: .*no entropy bonus, got 0.01/);
    refused(['policies.solver.entropySchedule.type=linear'], {}, /^policies.solver.entropySchedule: .*above 0/);
    expect(() =>
      check(
        tinyRecipe({}, ['policies.solver.backend={"type":"tinker","url":"http://x"}', 'policies.solver.device=cuda:1']),
        EMBEDDED_CAPABILITIES,
      ),
    ).toThrow(/^policies.solver.device: the backend 'tinker' places no model on a device of its choice; expected none/);
    refused(['advantage.type=gae'], { roles: { ...roles, critic: [] } }, /^advantage.type: .*no critic/);
    refused(['training.spike.action=skip'], { gradientNorms: 'after' }, /^training.spike.action: /);
  });

  it('is refused of frozen models too, which need not sample as learners do', () => {
    const base = checkpoint('model');
    const solver = { model: lora(base, { rank: 1 }) };
    const on = (verifier: ModelInput) => ({
      policies: { solver },
      assign: { solver: 'solver', verifier: frozen(verifier) },
    });
    const path = /^assign.verifier.model: the backend 'embedded' holds adapters only.*got 'checkpoint'/;
    refused([], { roles: adaptersOnly }, path, on(base));
    refused(
      [],
      { roles: { ...roles, frozen: ['adapter'] } },
      /^assign.verifier.model.from: .*no saved adapters/,
      on(lora(base, { from: 'a' })),
    );
    const cool = tinyRecipe(on(base), ['agents.verifier.sampling.temperature=0.5', 'warmStart=null']);
    expect(() => check(cool, { ...EMBEDDED_CAPABILITIES, distribution: 'sampled' })).not.toThrow();
  });

  it('is let pass in evaluations, which may sample as they like', () => {
    const recipe = tinyRecipe({}, [
      'evaluation.sampling.temperature=0.6',
      'agents.solver.evaluationSampling.topP=0.95',
    ]);
    expect(() => check(recipe, { ...EMBEDDED_CAPABILITIES, distribution: 'sampled' })).not.toThrow();
  });

  it('is let pass where it is about learning, and nothing is to be learnt', () => {
    const cool = tinyRecipe({}, ['agents.verifier.sampling.temperature=0.5', 'warmStart=null']);
    const can = { ...EMBEDDED_CAPABILITIES, distribution: 'sampled' } as const;
    expect(() => check(cool, can)).toThrow(/trains at temperature 1 only/);
    expect(() => check(cool, can, 'evaluation')).not.toThrow();
  });

  it('is let pass where the recipe does not ask for it', () => {
    const least = { losses: ['ppo-clip'], distribution: 'sampled', gradientNorms: 'after' } as const;
    expect(() => check(tinyRecipe(), { ...EMBEDDED_CAPABILITIES, ...least })).not.toThrow();
  });
});

describe('an estimator that plays turns again', () => {
  const prepared = (verifier: ModelInput | EndpointOptions, advantage: string) => {
    const assign = { solver: 'solver', verifier: frozen(verifier) };
    return prepareTasks(tinyRecipe({ policies: { solver: {} }, assign }, [`advantage.type=${advantage}`]));
  };
  const endpoint = { url: 'http://127.0.0.1:9/v1', model: 'judge' };

  it('is refused where an endpoint speaks for an agent, which may answer otherwise', async () => {
    await expect(prepared(endpoint, 'counterfactual')).rejects.toThrow(
      /^advantage.type: 'counterfactual' plays turns again in their context, and the endpoint of verifier may answer/,
    );
  });

  it('is let pass beside models that are held here, and other estimators beside endpoints', async () => {
    await expect(prepared(checkpoint('model'), 'counterfactual')).resolves.toBeDefined();
    await expect(prepared(endpoint, 'drmas')).resolves.toBeDefined();
  });
});

describe('an agent that calls tools', () => {
  const tooled = (tools: ToolFormatName) => {
    const recipe = tinyRecipe({});
    const { solver } = recipe.team.agents;
    const agents = { ...recipe.team.agents, solver: { ...solver, tools } as Agent };
    return { ...recipe, team: { ...recipe.team, agents } };
  };
  const refusal = (tools: ToolFormatName, tokenizer: Tokenizer) => {
    const recipe = tooled(tools);
    const models = { solver: { tokenizer }, verifier: { tokenizer: bytesTokenizer() } };
    return expect(() => checkToolFormats(recipe.team, assignmentOf(recipe), models));
  };

  it('is refused where its model writes calls in another format, or in none that is read', () => {
    refusal('plain', bytesTokenizer()).not.toThrow();
    refusal('hermes', miniTokenizer()).not.toThrow();
    const path = "agents.solver: calls tools in the format 'hermes', but its model's chat template writes";
    refusal('hermes', bytesTokenizer()).toThrow(`${path} them as 'plain': write agent({ tools: 'plain' })`);
    const unknown = miniTokenizer("{% if tools %}{{ '<tool_call>' + name + '<arg_key>' }}{% endif %}");
    refusal('hermes', unknown).toThrow(`${path} calls in none of the formats that drmas reads (hermes, qwen-coder, `);
    refusal('hermes', unknown).toThrow(RecipeError);
  });

  it('is refused before a run begins, and by a dry run', async () => {
    const recipe = tooled('llama');
    const tasks = await prepareTasks(recipe);
    await expect(openRun(recipe, tasks, nodeHost())).rejects.toThrow(
      /^agents.solver: calls tools in the format 'llama'/,
    );
    await expect(planRun(recipe, tasks)).rejects.toThrow(/^agents.solver: calls tools in the format 'llama'/);
  });
});

describe('a rule that ends a run early', () => {
  it.each([
    ['training.stopWhen={}', /^training.stopWhen: has no rule/],
    ['training.stopWhen.minimumGain=0.1', /^training.stopWhen: has no rule/],
    ['training.stopWhen.score=90', /^training.stopWhen.score: 'averageAtK' is between 0 and 1/],
    ['training.stopWhen.cost=5', /^training.stopWhen.cost: no policy and no endpoint has a price/],
    ['training.bestBy=reward', /^training.bestBy: nothing compares evaluations/],
    ['training.stopWhen={"score":1,"minimumGain":0.1}', /^training.stopWhen.minimumGain: belongs to patience/],
    ['training.stopWhen={"patience":2,"minimumGain":1}', /^training.stopWhen.minimumGain: 'averageAtK' is between/],
    ['training.stopWhen.patience=0', /^training.stopWhen.patience: .*>=1|^training.stopWhen.patience/],
    ['training.stopWhen.minutes=-1', /^training.stopWhen.minutes/],
    ['training.stopWhen.wordBudget=1', /wordBudget/],
  ])('is refused before the run: %s', async (override, message) => {
    const refused = (async () => prepareTasks(tinyRecipe({}, [override])))();
    await expect(refused).rejects.toThrow(RecipeError);
    await expect(refused).rejects.toThrow(message);
  });

  it('is refused with a score of several samples whose number changes, and with rollouts ahead', async () => {
    const changing = ['training.keepBest=true', 'training.bestBy=passAtK', 'evaluation.samplesDuring=1'];
    await expect(prepareTasks(tinyRecipe({}, changing))).rejects.toThrow(/^training.bestBy: 'passAtK' depends on/);
    const ahead = ['training.keepBest=true', 'rollout.staleness=1', 'evaluation.every=1'];
    await expect(prepareTasks(tinyRecipe({}, ahead))).rejects.toThrow(/^training.keepBest: rollouts that begin ahead/);
    const priced = { policies: { solver: { price: { read: 1, write: 1 } } } };
    await expect(prepareTasks(tinyRecipe(priced, ['training.stopWhen.cost=5']))).resolves.toBeDefined();
  });
});

describe('more episodes, tasks or updates at once than memory holds', () => {
  const refill = ['training.filter.type=equal-outcomes', 'training.filter.refill.maxRounds=1e9'];
  it.each([
    [['training.groupSize=1e9'], /^training.groupSize: a step would have \d{10,} episodes, expected at most 1000000$/],
    [['training.tasksPerStep=1e9'], /^training.tasksPerStep: a step would have 4000000000 episodes/],
    [refill, /^training.filter.refill.maxRounds: a step would have 1000000000 rounds/],
    [['training.curriculum.by=level', 'training.curriculum.candidates=1e9'], /^training.curriculum.candidates: a step/],
    [['advantage.type=counterfactual', 'advantage.alternatives=1e9'], /^advantage.alternatives: a step would play/],
    [['policies.solver.epochs=1e9'], /^policies.solver.epochs: a step would have 1000000000 updates/],
    [['policies.solver.miniBatches=1e9'], /^policies.solver.miniBatches: a step would have 1000000000 updates/],
    [['advantage.type=gae', 'policies.solver.critic.epochs=1e9'], /^policies.solver.critic.epochs: a step would/],
    [['warmStart.batch=1e9'], /^warmStart.batch: a step would have 1000000000 demonstrations/],
    [['evaluation.tasks=1e9'], /^evaluation.tasks: an evaluation would have/],
    [['evaluation.samples=1e9'], /^evaluation.samples: an evaluation would have/],
    [['evaluation.samplesDuring=1e9'], /^evaluation.samplesDuring: an evaluation would have/],
  ])('are refused before the run: %s', async (overrides, message) => {
    await expect(prepareTasks(tinyRecipe({}, overrides))).rejects.toThrow(message);
  });

  it('leave room for many rounds of which few are played', async () => {
    const large = ['training.tasksPerStep=1024', 'training.groupSize=128', 'training.filter.refill.maxRounds=10'];
    const recipe = tinyRecipe({}, ['training.filter.type=equal-outcomes', ...large]);
    await expect(prepareTasks(recipe)).resolves.toBeDefined();
  });
});

it('a curriculum that can have no effect is refused in training alone: stored runs can be evaluated', async () => {
  const idle = tinyRecipe({}, ['training.curriculum={"by":"absent"}']);
  await expect(prepareTasks(idle)).rejects.toThrow(/^training.curriculum/);
  await expect(prepareTasks(idle, 'evaluation')).resolves.toBeDefined();
});
