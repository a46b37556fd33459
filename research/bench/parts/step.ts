/** A whole reinforcement step of the calculator task: real runs of the real command, timed by their own event logs. */
import { join } from 'node:path';
import type { RunEvent } from '@drmas/engine/events';
import { median } from '@drmas/engine/math';
import { tasksOfStep } from '../../../src/method/training/play/step-tasks.js';
import { train } from '../../../src/runs/run/api.js';
import {
  calculatorRecipe,
  calculatorTasks,
  GROUP_SIZE,
  LEARNING_RATE,
  MAX_TOKENS,
  symbols,
  TASKS_PER_STEP,
} from '../calculator.js';
import { attempt, type Context, noteSkipped, schedule, startPeers, withDirectory } from '../context.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { pythonFor, pythonVariables, script } from '../peers/environment.js';
import type { PeerCommand } from '../peers/peer.js';
import { DRMAS, peerRatios, rowsOf, threadRatios } from '../results.js';

const PART = 'step';
const SHAPE = 'calculator';
/**
 * The steps before the measured ones. In the first three, buffers grow and moments are fresh. V8 compiles the code of
 * a step while the run goes on. So the first steps of a run take longer than its hundreds of others, and beside peers
 * more steps come before the measured ones.
 */
const WARM = { alone: 3, peers: 33 };
/** The steps from 4 to 23, whose median stands beside the result. */
const EARLY = [3, 23] as const;
/** The measured steps of a repetition. */
const STEPS = { alone: 10, peers: 20 };
const BUDGET_SECONDS = { alone: 8, peers: 900 };
/**
 * The steps of the warm start, which is cached; beside peers long enough that as many answers are right as in the
 * recipe.
 */
const WARM_START_STEPS = { alone: 600, peers: 1400 };
const TARGETS = { TRL: 6, 'plain PyTorch': 4 };

/** A step, and the seconds from the end of the step before it to its end: episodes are written in them too. */
type TimedStep = Extract<RunEvent, { type: 'step' }> & { readonly wall: number };

export async function benchStep(context: Context): Promise<void> {
  const { options, results, say } = context;
  const mode = options.peers ? 'peers' : 'alone';
  await withDirectory(async (directory) => {
    say(`${PART}: warm start (kept in the cache, not counted)`);
    // One step changes little, since its learning rate is a fifth of the full one.
    const first = join(directory, 'first');
    await train(calculatorRecipe(1, WARM_START_STEPS[mode]), { run: first, threads: Math.max(...options.threads) });
    const weights = join(first, 'checkpoints', 'step-000001', 'solver');
    const python = options.peers ? await attempt(context, 'TRL, PyTorch', () => pythonFor(options, say)) : undefined;
    const commands = python === undefined ? [] : await stepPeers(options.threads, python, weights);
    const peers = await startPeers(context, PART, commands);
    try {
      const ours = options.threads.map((threads) => drmasContestant(threads, mode, directory));
      const series = await interleave([...ours, ...peers], schedule(context, PART, BUDGET_SECONDS[mode]));
      noteSkipped(context, PART, SHAPE, series);
      const rows = rowsOf(PART, SHAPE, series);
      results.rows.push(...rows);
      results.ratios.push(...threadRatios(rows), ...peerRatios(rows, TARGETS));
    } finally {
      for (const peer of peers) await peer.stop();
    }
  });
}

function drmasContestant(threads: number, mode: 'alone' | 'peers', directory: string): Contestant {
  let repetition = 0;
  return {
    name: DRMAS,
    threads,
    unit: 'step',
    async repeat() {
      repetition++;
      const run = join(directory, `${threads}-${repetition}`);
      const recipe = calculatorRecipe(WARM[mode] + STEPS[mode], WARM_START_STEPS[mode]);
      const steps: TimedStep[] = [];
      let last = performance.now();
      const write = (event: RunEvent) => {
        if (event.type !== 'step') return;
        const now = performance.now();
        steps.push({ ...event, wall: (now - last) / 1e3 });
        last = now;
      };
      await train(recipe, { run, threads, seed: repetition, sinks: [{ write }] });
      const measured = steps.slice(WARM[mode]);
      const middle = (of: (step: TimedStep) => number) => median(measured.map(of));
      return {
        amount: 1,
        seconds: middle(({ wall }) => wall),
        details: {
          'ms rollout': 1e3 * middle(({ phaseSeconds }) => phaseSeconds.rollout),
          'ms update': 1e3 * middle(({ phaseSeconds }) => phaseSeconds.update),
          'tokens sampled': middle(({ tokens }) => tokens.sampled),
          reward: middle(({ reward }) => reward?.mean ?? Number.NaN),
          ...(mode === 'peers' && {
            'ms step 4 to 23': 1e3 * median(steps.slice(...EARLY).map(({ wall }) => wall)),
          }),
        },
      };
    },
  };
}

/** TRL with both caches of generate, and the plain loop, from the same weights and on the same tasks. */
async function stepPeers(threads: readonly number[], python: string, weights: string): Promise<PeerCommand[]> {
  const tasks = await calculatorTasks.load('train');
  const drawn = Array.from({ length: WARM.peers + STEPS.peers }, (_, step) =>
    tasksOfStep(tasks, 1, step + 1, TASKS_PER_STEP).map(({ data }) => data),
  );
  const common = {
    weights,
    symbols,
    tasks: drawn,
    warm: WARM.peers,
    early: EARLY,
    group: GROUP_SIZE,
    maxTokens: MAX_TOKENS,
    learningRate: LEARNING_RATE,
  };
  const peers = [
    { name: 'TRL, dynamic cache', file: 'grpo_trl.py', settings: { cache: 'dynamic' } },
    { name: 'TRL, static cache', file: 'grpo_trl.py', settings: { cache: 'static' } },
    { name: 'plain PyTorch', file: 'grpo_plain.py', settings: { microBatchTokens: 1024 } },
  ];
  return peers.flatMap(({ name, file, settings }) =>
    threads.map((count) => ({
      name,
      threads: count,
      unit: 'step',
      command: python,
      args: [script(file)],
      settings: { ...common, ...settings, threads: count },
      environment: pythonVariables(count),
    })),
  );
}
