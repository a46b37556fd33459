/** Every loss and every term of it in whole runs on the engine. */
import { describe, expect, it } from 'vitest';
import type { Step } from '../../src/core/events.js';
import { temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();

/** Two steps of two mini-batches each, the first of which is on policy. */
const twoSteps = { steps: 2, tasksPerStep: 2, groupSize: 4 };
const miniBatches = ['policies.solver.miniBatches=2', 'policies.verifier.miniBatches=2'];

async function stepsOf(overrides: readonly string[]): Promise<Step[]> {
  const run = await trainTiny(root, tinyRecipe({ training: twoSteps }, [...miniBatches, ...overrides]));
  const steps = (await run.events()).filter((event) => event.type === 'step');
  expect(steps).toHaveLength(2);
  for (const { agents } of steps)
    for (const { loss, gradientNorm } of Object.values(agents)) {
      expect(Number.isFinite(loss)).toBe(true);
      expect(gradientNorm).toBeGreaterThan(0);
    }
  return steps;
}
const own = (steps: readonly Step[], agent: string) => steps.flatMap(({ agents }) => agents[agent] ?? []);

describe('a run', () => {
  it.each(['turn-ppo', 's-ppo', 'st-ppo', 'cispo', 'gspo'])('learns by %s', async (type) => {
    const steps = await stepsOf([`loss.type=${type}`, 'policies.verifier.loss={"type":"ppo-clip"}']);
    const dampens = type === 's-ppo' || type === 'st-ppo';
    for (const each of own(steps, 'solver')) expect('clippingBias' in each).toBe(dampens);
    for (const each of own(steps, 'verifier')) expect(each).not.toHaveProperty('clippingBias');
  });

  it('learns by the cross-entropy of the episodes that rejection accepts', async () => {
    const steps = await stepsOf(['loss.type=cross-entropy', 'advantage={"type":"rejection","keep":"best"}']);
    for (const each of [...own(steps, 'solver'), ...own(steps, 'verifier')]) {
      expect(each.loss).toBeGreaterThan(0);
      expect(each.maxAbsAdvantage).toBe(1);
    }
  });

  it('finds an importance of exactly 1 in what its own engine wrote', async () => {
    const plain = await stepsOf([]);
    const corrected = await stepsOf(['loss.importanceCorrection={"cap":1}']);
    for (const agent of ['solver', 'verifier']) {
      for (const each of own(corrected, agent))
        expect(each).toMatchObject({ importanceWeight: 1, importanceBeyond: 0 });
      const numbers = (steps: readonly Step[]) =>
        own(steps, agent).map(({ loss, gradientNorm }) => [loss, gradientNorm]);
      expect(numbers(corrected)).toEqual(numbers(plain));
    }
  });

  it('takes the bonus for entropy off the loss', async () => {
    const [plain, rewarded] = [await stepsOf([]), await stepsOf(['policies.solver.entropyCoefficient=10'])];
    const entropies = (steps: readonly Step[]) => own(steps, 'solver').map(({ entropy }) => entropy);
    expect(own(rewarded, 'solver')[0]?.loss).toBeLessThan((own(plain, 'solver')[0]?.loss ?? 0) - 1);
    expect(entropies(rewarded)[1]).toBeGreaterThan(entropies(plain)[1] ?? Number.NaN);
    expect(own(rewarded, 'verifier')[0]).toEqual(own(plain, 'verifier')[0]);
  });
});
