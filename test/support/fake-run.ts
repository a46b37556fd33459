import { EMBEDDED_CAPABILITIES } from '../../src/backends/embedded/embedded-backend.js';
import type { TrainBackend } from '../../src/contract/backend.js';
import type { OptimStepSettings } from '../../src/contract/optimizer.js';
import type { TrainingSample } from '../../src/core/sample.js';
import type { ForwardBackwardOptions } from '../../src/loss/objective/objective-options.js';
import { createTokenizer } from '../../src/model/tokenizers/create-tokenizer.js';
import { nodeHost } from '../../src/platform/node-host.js';
import { assignmentOf } from '../../src/recipe/assignment.js';
import type { Recipe } from '../../src/recipe/recipe.js';
import { inProcessExecutor } from '../../src/rollout/executor.js';
import { firstWeights } from '../../src/run/first-weights.js';
import { agentSettings, prepareTasks } from '../../src/run/open-run.js';
import { scriptedContext } from '../../src/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../src/testing/scripted-sampler.js';
import { firstProgress } from '../../src/training/checkpoint.js';
import type { Backend, OpenRun, Progress } from '../../src/training/run-state.js';
import { createRun } from './tiny-run.js';

interface Submitted {
  readonly policy: string;
  readonly samples: readonly TrainingSample[];
  readonly options: ForwardBackwardOptions;
}

/**
 * A run whose policies say what the script says and learn nothing: what is submitted to them is kept. The log-probs of
 * request n are -n, -n - 1/8, -n - 2/8 ..., so that each can be told from all others. Norms are 1.
 */
export async function fakeRun(root: string, recipe: Recipe, script: Script, changes: Partial<TrainBackend> = {}) {
  const models = Object.values(recipe.policies).map(({ model }) => model);
  const model = models[0];
  if (model?.type !== 'tiny-decoder') throw new Error('a fake run needs tiny decoders');
  const tokenizer = createTokenizer(model.tokenizer);
  const sampler = scriptedSampler(script, tokenizer);
  const submitted: Submitted[] = [];
  const steps: { readonly policy: string; readonly settings: OptimStepSettings }[] = [];
  const backend: Backend = {
    ...sampler,
    async generate(request, signal) {
      const n = sampler.calls.length + 1;
      const generation = await sampler.generate(request, signal);
      return { ...generation, logprobs: generation.tokens.map((_, i) => -n - i / 8) };
    },
    capabilities: EMBEDDED_CAPABILITIES,
    createPolicy: () => Promise.reject(new Error('policies exist already')),
    forward: async (_, samples) => samples.map(({ tokens }) => new Float32Array(tokens.length)),
    async forwardBackward(policy, samples, options) {
      submitted.push({ policy, samples, options });
      const metrics = {
        clipFraction: 0,
        clipFractionLower: 0,
        approxKl: 0,
        entropy: 1,
        maxRatioDeviation: 0,
        logprobGap: 0,
      };
      return { loss: 0.5, gradientNorm: 1, metrics, tokens: samples.length };
    },
    async optimStep(policy, settings) {
      steps.push({ policy, settings });
      return { gradientNorm: 1, applied: true };
    },
    publish: async () => ({ version: 3 }),
    copyWeights: async () => {},
    resetOptimizer: async () => {},
    save: async () => {},
    load: async () => {},
    dispose: async () => {},
    ...changes,
  };
  const log = await createRun(root, recipe);
  const assignment = assignmentOf(recipe);
  const context = scriptedContext(recipe.team, backend, {
    agents: agentSettings(recipe, assignment),
    policies: Object.fromEntries(assignment.models.map(({ name }) => [name, { tokenizer, context: model.context }])),
    seed: recipe.seed,
  });
  const info = { tokenizer, context: model.context };
  const specs = firstWeights(recipe, assignment, assignment);
  const run: OpenRun = {
    recipe,
    assignment,
    tasks: await prepareTasks(recipe),
    backend,
    hardware: { kernels: 'none', isa: 'none' },
    models: Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, { spec, info }])),
    executor: inProcessExecutor(context),
    commits: {},
    warnings: [],
    host: nodeHost({ warn: (code, message) => void log.emit({ type: 'warning', code, message }) }),
  };
  const progress: Progress = { ...firstProgress(recipe), evaluated: 0 };
  return { run, progress, log, submitted, steps, tokenizer };
}
