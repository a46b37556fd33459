// @module-tag verify
/** Every loss and every term of it in whole runs on the engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import type { AgentStep, Step } from '../../src/base/core/events.js';
import { temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

/** One step on policy, so that every ratio is 1. A test that needs more overrides this. */
const changes = {
  training: { steps: 1, tasksPerStep: 2, groupSize: 4 },
  evaluation: { every: 1, tasks: 1, samples: 1 },
};
/** Two steps of two mini-batches each. The first mini-batch is on policy. */
const twice = [
  ...['training.steps=2', 'policies.solver.miniBatches=2', 'policies.verifier.miniBatches=2'],
  'policies.solver.optimizer.learningRate=0.1', // far enough for ratios to be clipped
];

async function stepsOf(overrides: readonly string[]): Promise<Step[]> {
  const run = await trainTiny(root, tinyRecipe(changes, overrides));
  return (await run.events()).filter((event) => event.type === 'step');
}
const ofAgent = (steps: readonly Step[], agent: string): AgentStep[] =>
  steps.flatMap(({ agents }) => agents[agent] ?? []);
/** A metric that the loss itself declares. */
const metricOf = (step: AgentStep | undefined, name: string) =>
  (step as unknown as Readonly<Record<string, unknown>>)?.[name];
const gradients = (steps: readonly Step[]) => ofAgent(steps, 'solver').map(({ gradientNorm }) => gradientNorm);
const lossOf = (type: string) =>
  // GSPO has no choice: it averages the tokens of a sequence, then the sequences.
  `policies.solver.loss=${JSON.stringify({ type, ...(type === 'gspo' ? {} : { aggregate: 'seq-mean-token-mean' }) })}`;

describe('a run', () => {
  let onPolicy: Step[];
  let offPolicy: Step[];
  beforeAll(async () => {
    onPolicy = await stepsOf([lossOf('ppo-clip')]);
    offPolicy = await stepsOf([...twice, lossOf('ppo-clip')]);
    expect(gradients(onPolicy)[0]).toBeGreaterThan(0);
  });

  it.each(['turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo'])(
    'has the gradient of ppo-clip on policy and another one off it: %s',
    async (type) => {
      expect(gradients(await stepsOf([lossOf(type)]))).toEqual(gradients(onPolicy));
      const steps = await stepsOf([...twice, lossOf(type)]);
      expect(steps).toHaveLength(2);
      expect(gradients(steps)[0]).not.toBe(gradients(offPolicy)[0]);
      for (const each of ofAgent(steps, 'solver')) {
        expect(each.gradientNorm).toBeGreaterThan(0);
        expect('clippingBias' in each).toBe(type === 's-ppo' || type === 'st-ppo');
      }
      // The other policy learns by its loss as before.
      expect(ofAgent(steps, 'verifier')[0]).toEqual(ofAgent(offPolicy, 'verifier')[0]);
    },
  );

  it('has a quarter of beta of it with kto, and measures from the KL off policy', async () => {
    const loss = 'policies.solver.loss={"type":"kto","beta":0.5}';
    const summed = 'policies.solver.loss={"type":"ppo-clip","aggregate":"seq-mean-token-sum"}';
    const [of, plain] = [await stepsOf([loss]), await stepsOf([summed])].map(gradients);
    expect(of?.[0]).toBeCloseTo((0.5 / 4) * (plain?.[0] as number), 4);
    const [first, second] = ofAgent(await stepsOf([...twice, loss]), 'solver');
    for (const each of [first, second]) expect(metricOf(each, 'klBaseline')).toBeGreaterThan(0); // the second update
    expect(ofAgent(onPolicy, 'solver')[0]).not.toHaveProperty('klBaseline');
  });

  it('learns by the cross-entropy of the episodes that rejection accepts', async () => {
    const steps = await stepsOf([...twice, 'loss.type=cross-entropy', 'advantage={"type":"rejection","keep":"best"}']);
    for (const each of [...ofAgent(steps, 'solver'), ...ofAgent(steps, 'verifier')]) {
      expect(each.loss).toBeGreaterThan(0);
      expect(each.maxAbsAdvantage).toBe(1);
    }
  });

  it('finds an importance of exactly 1 in what its engine wrote', async () => {
    const [plain, corrected] = [await stepsOf(twice), await stepsOf([...twice, 'loss.importanceCorrection={"cap":1}'])];
    for (const agent of ['solver', 'verifier']) {
      for (const each of ofAgent(corrected, agent))
        expect(each).toMatchObject({ importanceWeight: 1, importanceBeyond: 0 });
      const numbers = (steps: readonly Step[]) =>
        ofAgent(steps, agent).map(({ loss, gradientNorm }) => [loss, gradientNorm]);
      expect(numbers(corrected)).toEqual(numbers(plain));
    }
  });

  it('takes the bonus for entropy off the loss', async () => {
    const rewarded = await stepsOf([...twice, lossOf('ppo-clip'), 'policies.solver.entropyCoefficient=10']);
    const entropies = (steps: readonly Step[]) => ofAgent(steps, 'solver').map(({ entropy }) => entropy);
    expect(ofAgent(rewarded, 'solver')[0]?.loss).toBeLessThan((ofAgent(offPolicy, 'solver')[0]?.loss ?? 0) - 1);
    expect(entropies(rewarded)[1]).toBeGreaterThan(entropies(offPolicy)[1] ?? Number.NaN);
    expect(ofAgent(rewarded, 'verifier')[0]).toEqual(ofAgent(offPolicy, 'verifier')[0]);
  });
});
