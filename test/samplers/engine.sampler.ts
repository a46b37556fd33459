/**
 * A team learns from the samples of a real vLLM or SGLang, whose address is in the environment: `DRMAS_TEST_VLLM`,
 * `DRMAS_TEST_SGLANG`. It serves a model in a directory of this machine, with adapters of rank 4 and more.
 */
import { join } from 'node:path';
import { type SamplerInput, sglang, vllm } from '@drmas/engine/endpoints';
import { checkpoint, lora } from '@drmas/engine/model';
import { loadPolicy } from '@drmas/engine/node';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { RecipeInput } from '../../src/method/recipe/define.js';
import { stopwatch } from '../support/time-and-chance.js';
import { stepsOf, temporaryRoot, tinyRecipe, trainTiny } from '../support/tiny-run.js';

const root = temporaryRoot();
const engines = [
  ['vLLM', process.env.DRMAS_TEST_VLLM, vllm, '/v1/models'],
  ['SGLang', process.env.DRMAS_TEST_SGLANG, sglang, '/model_info'],
] as const;
const served = z.union([
  z.object({ data: z.tuple([z.object({ root: z.string() })]).rest(z.unknown()) }).transform(({ data }) => data[0].root),
  z.object({ model_path: z.string() }).transform(({ model_path }) => model_path),
]);

describe.each(engines)('a team sampled by %s', (name, url, sampler, path) => {
  it('learns from the log-probs that its trainer computes', async ({ skip }) => {
    if (url === undefined) {
      console.log(`SKIPPED: the test on ${name}, because DRMAS_TEST_${name.toUpperCase()} names no server`);
      return skip('no server');
    }
    const base = served.parse(await (await fetch(`${url}${path}`)).json());
    const recipe = (engine: SamplerInput) =>
      tinyRecipe({
        model: lora(checkpoint(base), { rank: 4 }),
        warmStart: undefined,
        sampler: engine,
        training: { steps: 4, tasksPerStep: 2, groupSize: 4, checkpointEvery: 1 },
        policies: { solver: { optimizer: { learningRate: 1e-2 } }, verifier: { optimizer: { learningRate: 1e-2 } } },
      } as unknown as Partial<RecipeInput>);
    const seconds = stopwatch();
    const run = await trainTiny(root, recipe(sampler({ url })));
    const steps = await stepsOf(run);
    const gaps = steps.map(({ agents }) => Object.values(agents).map(({ logprobGap = Number.NaN }) => logprobGap));
    console.log(
      `${name}: gaps of ${steps.length} steps ${gaps.map((each) => each.map((gap) => gap.toExponential(1)).join('/')).join(', ')}; ` +
        `${seconds().toFixed(0)} s`,
    );
    for (const gap of gaps.flat()) expect(gap).toBeLessThan(1e-3);
    // Samples of the weights that the run began with would have been further off.
    const [before, after] = await Promise.all(
      [base, join(run.path, 'checkpoints', 'step-000003', 'solver')].map(async (directory) => {
        const policy = await loadPolicy(directory, { threads: 1 });
        const logprobs = await policy.logprobs([1, 2, 3], [65, 66, 67, 68, 69, 70]);
        await policy.dispose();
        return logprobs;
      }),
    );
    const moved = (after ?? []).map((logprob, t) => Math.abs(logprob - (before?.[t] ?? 0)));
    console.log(`the solver's log-probs moved by up to ${Math.max(...moved).toExponential(1)} in three updates`);
    expect(Math.max(...moved)).toBeGreaterThan(2e-3);
  });
});
