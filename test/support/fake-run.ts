import type {
  Backend,
  ForwardBackwardResult,
  OptimStepResult,
  OptimStepSettings,
  PolicyHandle,
  StateOptions,
} from '@drmas/engine/contract';
import { EMBEDDED_CAPABILITIES } from '@drmas/engine/embedded';
import type { ForwardBackwardOptions } from '@drmas/engine/loss';
import type { TrainingSample } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import { assignmentOf } from '../../src/method/recipe/assignment.js';
import type { Recipe } from '../../src/method/recipe/recipe.js';
import { rolloutSettings } from '../../src/method/training/run/playing.js';
import { runSettings } from '../../src/method/training/run/run-settings.js';
import { firstWeights, trainedModels } from '../../src/method/training/run/trained-models.js';
import { trainingRun } from '../../src/method/training/signals/training-run.js';
import { firstProgress, type Progress } from '../../src/method/training/state/progress.js';
import { prepareTasks } from '../../src/runs/run/open/prepare-tasks.js';
import { scriptedContext } from '../../src/runs/testing/play-scripted.js';
import { type Script, scriptedSampler } from '../../src/runs/testing/scripted-sampler.js';
import { inProcessExecutor } from '../../src/teams/rollout/executor.js';
import { createRun } from './tiny-run.js';

interface Submitted {
  readonly policy: string;
  readonly samples: readonly TrainingSample[];
  readonly options: ForwardBackwardOptions;
}

/** The scripts of a fake run's models, by their names. */
export interface FakeModels {
  logprobs(policy: string, samples: readonly TrainingSample[]): Promise<Float32Array[]>;
  forwardBackward(
    policy: string,
    samples: readonly TrainingSample[],
    options: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult>;
  discardGradient(policy: string): Promise<void>;
  optimStep(policy: string, settings: OptimStepSettings): Promise<OptimStepResult>;
  publish(policy: string, versions?: number): Promise<number>;
  copyFrom(policy: string, from: string): Promise<void>;
  resetOptimizer(policy: string): Promise<void>;
  save(policy: string, directory: string, options: StateOptions): Promise<void>;
  load(policy: string, directory: string, options: StateOptions): Promise<void>;
}

/**
 * A run whose policies follow the script and learn nothing: the samples submitted to them are kept. The log-probs of
 * request n are -n, -n - 1/8, -n - 2/8 ..., so that each can be told from all others. Norms are 1.
 */
export async function fakeRun(root: string, recipe: Recipe, script: Script, changes: Partial<FakeModels> = {}) {
  const specs = Object.values(recipe.policies).map(({ model }) => model);
  const spec = specs[0];
  if (spec?.type !== 'tiny-decoder') throw new Error('a fake run needs tiny decoders');
  const tokenizer = createTokenizer(spec.tokenizer);
  const sampler = scriptedSampler(script, tokenizer);
  const submitted: Submitted[] = [];
  const steps: { readonly policy: string; readonly settings: OptimStepSettings }[] = [];
  const fake: FakeModels = {
    logprobs: async (_, samples) => samples.map(({ tokens }) => new Float32Array(tokens.length)),
    async forwardBackward(policy, samples, options) {
      submitted.push({ policy, samples, options });
      const metrics = {
        tokens: samples.length,
        units: samples.length,
        clipFraction: 0,
        clipFractionLower: 0,
        approxKl: 0,
        entropy: 1,
        maxRatioDeviation: 0,
        logprobGap: 0,
      };
      return { loss: 0.5, gradientNorm: 1, metrics, tokens: samples.length };
    },
    discardGradient: async () => {},
    async optimStep(policy, settings) {
      steps.push({ policy, settings });
      return { applied: true, norm: 1 };
    },
    publish: async () => 3,
    copyFrom: async () => {},
    resetOptimizer: async () => {},
    save: async () => {},
    load: async () => {},
    ...changes,
  };
  const handle = (name: string): PolicyHandle => {
    const scripted = sampler.policy(name, spec.context);
    return {
      ...scripted,
      name,
      warnings: [],
      async generate(request, signal) {
        const n = sampler.calls.length + 1;
        const generation = await scripted.generate(request, signal);
        return { ...generation, logprobs: generation.tokens.map((_, i) => -n - i / 8) };
      },
      logprobs: (samples) => fake.logprobs(name, samples),
      forwardBackward: (samples, options) => fake.forwardBackward(name, samples, options),
      discardGradient: () => fake.discardGradient(name),
      optimStep: (settings) => fake.optimStep(name, settings),
      version: 3,
      publish: (versions) => fake.publish(name, versions),
      copyFrom: (from) => fake.copyFrom(name, from.name),
      resetOptimizer: () => fake.resetOptimizer(name),
      save: (directory, options = { optimizer: false }) => fake.save(name, directory, options),
      load: (directory, options) => fake.load(name, directory, options),
    };
  };
  const hardware = { kernels: 'none', isa: 'none' };
  const backend: Backend = {
    capabilities: EMBEDDED_CAPABILITIES,
    hardware,
    open: () => Promise.reject(new Error('all models are open')),
    dispose: async () => {},
  };
  const log = await createRun(root, recipe);
  const assignment = assignmentOf(recipe);
  const policies = Object.fromEntries(assignment.models.map(({ name }) => [name, handle(name)]));
  const context = scriptedContext(recipe.team, sampler, {
    agents: rolloutSettings(recipe, assignment).agents,
    policies,
    seed: recipe.seed,
  });
  const backends = Object.fromEntries(assignment.models.map(({ name }) => [name, backend]));
  const opened = { assignment, backends, weights: firstWeights(recipe, assignment, assignment) };
  const run = trainingRun({
    ...runSettings(recipe),
    ...opened,
    tasks: await prepareTasks(recipe),
    models: policies,
    trained: trainedModels(recipe, { ...opened, policies }, () => 'fake'),
    executor: inProcessExecutor(context),
    commits: {},
    warnings: [],
    host: nodeHost({ warn: (code, message) => void log.emit({ type: 'warning', code, message }) }),
    dispose: () => backend.dispose(),
  });
  const progress: Progress = { ...firstProgress(run), evaluated: 0 };
  return { run, progress, log, submitted, steps, tokenizer };
}
