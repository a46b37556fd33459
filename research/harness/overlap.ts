/**
 * How far the contexts of the team `contexts` share weights after its warm start: the mean inner product of the
 * gradients of one code's log-prob in two different contexts, divided by the mean squared norm of such a gradient, both
 * over all codes. It is 0 if contexts share no weights, and 1 if they share all (research/plans/mechanism.md).
 *
 *     npx tsx research/harness/overlap.ts RECIPE --threads 1 --seed N --set warmStart.seed=N
 *
 * prints it as a line of JSON.
 */
import { parseArgs } from 'node:util';
import type { PolicyHandle } from '@drmas/engine/contract';
import { TokenizerError } from '@drmas/engine/errors';
import { type Tokenizer, type TrainingSample, user } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { runProgram } from '../../scripts/support/run-program.js';
import { startingWeights } from '../../src/runs/run/execute/starting-weights.js';
import { openRun } from '../../src/runs/run/open/open-run.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { requestRecipe } from '../../src/runs/run/request/new-run.js';
import { codes, contexts } from '../regimes/contexts.js';

const AGENT = 'expert';

/**
 * The overlap from norms of gradients: each context's, and the norm of the sum over all contexts.
 * @throws Error for fewer than two contexts
 */
export function overlapOf(rows: readonly { readonly each: readonly number[]; readonly sum: number }[]): number {
  let products = 0;
  let squares = 0;
  for (const { each, sum } of rows) {
    if (each.length < 2) throw new Error('an overlap is of at least two contexts');
    const own = each.reduce((total, norm) => total + norm ** 2, 0);
    // |sum of g|^2 = sum of |g|^2 + the inner products of all ordered pairs.
    products += (sum ** 2 - own) / (each.length * (each.length - 1));
    squares += own / each.length;
  }
  return products / squares;
}

/**
 * The token of a code. A table's token is the code alone; a decoder's symbols end with a space.
 * @throws Error if neither spelling is one token
 */
export function codeToken({ encode }: Pick<Tokenizer, 'encode'>, code: string): number {
  for (const text of [code, `${code} `]) {
    try {
      const [token, ...others] = encode(text);
      if (token !== undefined && others.length === 0) return token;
    } catch (error) {
      if (!(error instanceof TokenizerError)) throw error;
    }
  }
  throw new Error(`${code} is not one token`);
}

/** A code as the answer in a context: only the code's token counts. */
function sampleOf({ tokenizer }: PolicyHandle, context: string, code: string): TrainingSample {
  const prompt = tokenizer.chat([user(context)]);
  const answer = codeToken(tokenizer, code);
  const length = prompt.length + 1;
  return {
    tokens: Int32Array.from([...prompt, answer]),
    mask: new Uint8Array(length).fill(1, prompt.length),
    behaviourLogprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature: 1,
    policyVersion: 0,
    agent: AGENT,
  };
}

/** The norm of the gradient of the summed log-probs. */
async function normOf(policy: PolicyHandle, samples: readonly TrainingSample[]): Promise<number> {
  const options = { loss: { type: 'demonstrations' }, normalizer: 1 } as const;
  const { gradientNorm } = await policy.forwardBackward(samples, options);
  await policy.discardGradient();
  if (gradientNorm === undefined) throw new Error('the backend reports no gradient norm');
  return gradientNorm;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      threads: { type: 'string', default: '1' },
      seed: { type: 'string', default: '1' },
      set: { type: 'string', multiple: true, default: [] },
    },
  });
  const { recipe } = await requestRecipe(positionals[0] ?? '', { set: values.set, seed: Number(values.seed) });
  const host = nodeHost({ threads: Number(values.threads) });
  const run = await openRun(recipe, await prepareTasks(recipe), host);
  try {
    await startingWeights(run, recipe.warmStart, {});
    const policy = run.trained.find(({ name }) => name === AGENT)?.handle;
    if (policy === undefined) throw new Error(`${recipe.name} trains no ${AGENT}`);
    const rows = [];
    for (const code of codes) {
      const samples = contexts(recipe.tasks.train.settings).map((context) => sampleOf(policy, context, code));
      const each = [];
      for (const sample of samples) each.push(await normOf(policy, [sample]));
      rows.push({ each, sum: await normOf(policy, samples) });
    }
    process.stdout.write(`${JSON.stringify({ overlap: overlapOf(rows) })}\n`);
    return 0;
  } finally {
    await run.dispose();
  }
}

if (import.meta.url === `file://${process.argv[1]}`) await runProgram('', main);
