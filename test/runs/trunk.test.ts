// @module-tag verify
import { join } from 'node:path';
import { RecipeError } from '@drmas/engine/errors';
import type { EventBody } from '@drmas/engine/events';
import { lora } from '@drmas/engine/model';
import { loadPolicy } from '@drmas/engine/node';
import { nodeHost } from '@drmas/engine/platform';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RunDirectory } from '../../src/method/store/run-directory.js';
import { openAgentModels } from '../../src/serve/models/open-agent-models.js';
import { expectFirstRatios } from '../support/expectations.js';
import {
  eventsOf,
  filesOf,
  resumedTiny,
  stepsOf,
  temporaryRoot,
  tinyModel,
  tinyRecipe,
  trainTiny,
} from '../support/tiny-run.js';

const root = temporaryRoot();
const recipeOf = (overrides: readonly string[] = []) =>
  tinyRecipe({ assign: 'shared', training: { steps: 2, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 } }, [
    'policies.shared.agentAdapters={"rank":2}',
    'training.keepFirst=true',
    ...overrides,
  ]);
const recipe = recipeOf();
let trained: RunDirectory;
beforeAll(async () => {
  trained = await trainTiny(root, recipe, { threads: 1 });
});
const hashOf = (files: Record<string, string>, step: number, name: string) =>
  files[join('checkpoints', `step-00000${step}`, 'shared', name)];

describe('two agents on a trunk that both train, each with its own adapter', () => {
  it('begin alike, and change the trunk and both adapters', async () => {
    const files = await filesOf(trained);
    for (const name of ['model', 'agents/solver/adapter_model', 'agents/verifier/adapter_model']) {
      const hashes = [0, 1, 2].map((step) => hashOf(files, step, `${name}.safetensors`));
      expect(new Set(hashes.filter((hash) => hash !== undefined)).size, name).toBe(3);
    }
  });

  it.each([[[]], [['policies.shared.precision=bfloat16']], [['policies.shared.kl={"coefficient":0.1}']]])(
    'play and train with the same log-probs (%s)',
    async (overrides) => {
      for (const { agents } of await stepsOf(await trainTiny(root, recipeOf(overrides))))
        for (const agent of Object.values(agents)) {
          expectFirstRatios(agent);
          expect(agent.gradientNorm).toBeGreaterThan(0);
        }
    },
  );

  it('come out the same at another number of threads, and when they go on from a checkpoint', async () => {
    const [events, files] = [await eventsOf(trained), await filesOf(trained)];
    for (const run of [await trainTiny(root, recipe, { threads: 2 }), await resumedTiny(root, recipe, 1)]) {
      expect(await eventsOf(run)).toEqual(events);
      expect(await filesOf(run)).toEqual(files);
    }
  });

  it('have the warm start of a policy without adapters', async () => {
    const plain = tinyRecipe({ assign: 'shared', training: recipe.training }, ['training.keepFirst=true']);
    const [ofPlain, adapted] = [await trainTiny(root, plain), trained];
    const begin = (events: readonly EventBody[]) =>
      events.filter((event) => event.type === 'warmup' || (event.type === 'evaluation' && event.step === 0));
    expect(begin(await eventsOf(ofPlain))).toEqual(begin(await eventsOf(adapted)));
    const name = 'model.safetensors';
    expect(hashOf(await filesOf(ofPlain), 0, name)).toBe(hashOf(await filesOf(adapted), 0, name));
  });

  it('train adapters alone at a trunk rate of 0', async () => {
    const files = await filesOf(await trainTiny(root, recipeOf(['policies.shared.agentAdapters.trunkRate=0'])));
    const [first, last] = [0, 2].map((step) => hashOf(files, step, 'model.safetensors'));
    expect(last).toBe(first);
    const adapter = 'agents/solver/adapter_model.safetensors';
    expect(hashOf(files, 2, adapter)).not.toBe(hashOf(files, 0, adapter));
  });

  it('are opened from a checkpoint, each with its own adapter', async () => {
    const place = join(trained.path, 'checkpoints', 'step-000002', 'shared');
    const tokens = [1, 2, 3, 4, 5];
    const logits: Float32Array[] = [];
    for (const directory of [place, join(place, 'agents', 'solver'), join(place, 'agents', 'verifier')]) {
      const policy = await loadPolicy(directory, { threads: 1 });
      logits.push(await policy.logits(tokens));
      await policy.dispose();
    }
    expect(new Set(logits.map((row) => row.join())).size).toBe(3);
    const host = nodeHost({ threads: 1 });
    const { agentModels, dispose } = await openAgentModels({ from: trained.path, acceptChanges: true }, host);
    expect([...agentModels.keys()]).toEqual(['solver', 'verifier']);
    expect(new Set([...agentModels.values()].map(({ model }) => model)).size).toBe(2);
    await dispose();
  });
});

describe('adapters of agents are refused', () => {
  const refused = async (overrides: readonly string[], message: RegExp, changes = {}) => {
    const wrong = tinyRecipe({ assign: 'shared', ...changes }, [
      'policies.shared.agentAdapters={"rank":2}',
      ...overrides,
    ]);
    const failed = trainTiny(root, wrong);
    await expect(failed).rejects.toThrow(RecipeError);
    await expect(failed).rejects.toThrow(message);
  };

  it('on a GPU, on an adapter, in int8, with critics', async () => {
    const path = 'policies.shared.agentAdapters';
    await refused(['backend.device=gpu'], new RegExp(`${path}: .*on the processor and on PyTorch only`));
    await refused([], new RegExp(`${path}: .*whole model.*got 'lora'`), { model: lora(tinyModel, { rank: 2 }) });
    await refused(['policies.shared.precision=int8'], /policies.shared.precision: 'int8' is for adapters/);
    await refused(['advantage.type=gae'], new RegExp(`${path}: there are no critics`));
  });
});
