/** Training: tokens a second of whole steps on each shape, and their share of the machine's multiply-add peak. */
import {
  attempt,
  type Context,
  forShape,
  noteRows,
  noteSkipped,
  type Options,
  schedule,
  startPeers,
  type TrainPrecision,
} from '../context.js';
import { DrmasEngine, warmUp } from '../drmas-engine.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { nativeKernels, peakContestant } from '../measure/peak.js';
import { pythonFor, pythonVariables, script } from '../peers/environment.js';
import type { PeerCommand } from '../peers/peer.js';
import { DRMAS, drmasIn, peerRatios, precisionRatios, rowsOf, threadRatios } from '../results.js';
import { type Shape, trainingFlops, trainingName } from '../workload.js';

const PART = 'train';
/** The seconds of a repetition, which has as many steps as fit, at least one. */
const SECONDS = { alone: 0.4, peers: 2 };
/** The seconds for all engines of one shape together. */
const BUDGET_SECONDS = { alone: 5, peers: 600 };
/** The targets of each precision: the ratio to PyTorch at its best number of threads, eager or compiled. */
const PEER_TARGETS: Readonly<Record<TrainPrecision, Readonly<Record<string, number>>>> = {
  float32: { tiny: 2, small: 2.3, base: 2.3 },
  bfloat16: { small: 1.5, base: 1.5, qwen05: 1.5 },
};
/** PyTorch with products in a precision, as the first word of its variants' names. */
const TORCH: Readonly<Record<TrainPrecision, string>> = { float32: 'PyTorch', bfloat16: 'PyTorch autocast' };
/** The precision of training an adapter: base and products in bfloat16. The command line does not change it. */
const TORCH_PEFT = 'PyTorch + PEFT';
const PEAK_TARGETS: Readonly<Record<string, number>> = { base: 0.6 };
const THREADS_TARGET = 1.8;
/** The targets for products in bfloat16, compared with products in float32. */
const PRECISION_TARGETS: Readonly<Record<string, number>> = { base: 1.5, qwen05: 4 };

export async function benchTrain(context: Context): Promise<void> {
  const { options, say } = context;
  const python = options.peers ? await attempt(context, 'PyTorch', () => pythonFor(options, say)) : undefined;
  for (const shape of options.shapes) await benchShape(forShape(context, PART, shape, true), shape, python);
}

async function benchShape(context: Context, shape: Shape, python: string | undefined): Promise<void> {
  const { options, results } = context;
  const mode = options.peers ? 'peers' : 'alone';
  const engines = await Promise.all(
    options.precisions.flatMap((precision) =>
      options.threads.map(async (threads) => {
        const engine = await DrmasEngine.start(shape, threads, shape.sequence, { precision, device: options.device });
        return { engine, name: engine.nameIn(precision), threads };
      }),
    ),
  );
  const ofProcessor = options.device === 'cpu' ? options.threads : [];
  const peakKernels = await Promise.all(ofProcessor.map((threads) => nativeKernels(threads)));
  const peersOf = options.device === 'gpu' || shape.adapterRank !== undefined ? torchOnDevice : torchPeers;
  const commands = options.peers && python !== undefined ? peersOf(shape, options, python) : [];
  const peers = await startPeers(context, PART, commands);
  try {
    const some = Math.max(shape.sequence, shape.stepTokens / 4);
    for (const { engine } of engines) await warmUp(mode, () => engine.trainStep(some));
    const ours = engines.map((one) => trainContestant(one, shape, SECONDS[mode]));
    const contestants = [...ours, ...peakKernels.map(peakContestant), ...peers];
    const series = await interleave(contestants, schedule(context, `${PART} ${shape.name}`, BUDGET_SECONDS[mode]));
    noteSkipped(context, PART, shape.name, series);
    const rows = rowsOf(PART, trainingName(shape), series, trainingFlops(shape, engines[0]?.engine.parameters ?? 0));
    noteRows(context, shape, rows);
    results.ratios.push(...threadRatios(rows, THREADS_TARGET));
    results.ratios.push(...precisionRatios(rows, PRECISION_TARGETS[shape.name]));
    for (const precision of options.precisions) {
      const target = PEER_TARGETS[precision][shape.name];
      const targets = { [TORCH[precision]]: target, ...(precision === 'bfloat16' ? { [TORCH_PEFT]: target } : {}) };
      results.ratios.push(...peerRatios(rows, targets, drmasIn(precision)));
    }
    const best = rows.filter(({ engine }) => engine === DRMAS).at(-1);
    const target = PEAK_TARGETS[shape.name];
    if (target !== undefined && best?.peakShare !== undefined) {
      const what = `share of the multiply-add peak, ${best.threads} threads`;
      results.ratios.push({ part: PART, shape: shape.name, what, value: best.peakShare, target, clean: best.clean });
    }
  } finally {
    for (const peer of peers) await peer.stop();
    for (const kernels of peakKernels) kernels.dispose();
    for (const { engine } of engines) await engine.dispose();
  }
}

/** This package's engine with products in one precision. */
interface NamedEngine {
  readonly engine: DrmasEngine;
  readonly name: string;
  readonly threads: number;
}

function trainContestant({ engine, ...named }: NamedEngine, shape: Shape, seconds: number): Contestant {
  return {
    ...named,
    unit: 'tok',
    async repeat() {
      let steps = 0;
      const measured = await engine.measured(async () => {
        const until = performance.now() + 1e3 * seconds;
        do {
          await engine.trainStep();
          steps++;
        } while (performance.now() < until);
      });
      return { amount: steps * shape.stepTokens, ...measured };
    },
  };
}

/** PyTorch on the device. To train an adapter it uses PEFT, with the base in bfloat16 and the adapter in float32. */
function torchOnDevice(shape: Shape, { device, peerDevice, threads }: Options, python: string): PeerCommand[] {
  const count = device === 'gpu' ? 1 : Math.max(...threads);
  const adapted = shape.adapterRank !== undefined;
  const ways = { compile: false, autocast: adapted, threads: count, device: peerDevice };
  const settings = { shape, tokens: shape.stepTokens, seconds: SECONDS.peers, ...ways };
  return [
    {
      name: adapted ? TORCH_PEFT : 'PyTorch, eager',
      threads: count,
      unit: 'tok',
      command: python,
      args: [script('torch_train.py')],
      settings,
      environment: pythonVariables(count),
    },
  ];
}

/** Starts one process for each number of threads, since compiled code has its number built in. */
function torchPeers(shape: Shape, { threads, precisions }: Options, python: string): PeerCommand[] {
  return precisions.flatMap((precision) =>
    [false, true].flatMap((compile) =>
      threads.map((count) => ({
        name: `${TORCH[precision]}, ${compile ? 'compiled' : 'eager'}`,
        threads: count,
        unit: 'tok',
        command: python,
        args: [script('torch_train.py')],
        settings: {
          shape,
          compile,
          autocast: precision === 'bfloat16',
          device: 'cpu',
          threads: count,
          tokens: shape.stepTokens,
          seconds: SECONDS.peers,
        },
        environment: pythonVariables(count),
      })),
    ),
  );
}
