/** `npm run bench`: how fast the engine is here, against the machine's own limits and, with --peers, against others. */
import { appendFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Device } from '@drmas/engine';
import { DEVICES } from '@drmas/engine/internal/contract/architecture';
import { findAdapters } from '@drmas/webgpu/internal/kernels/open-device';
import { runProgram, UsageError } from '../../scripts/support/run-program.js';
import { type Context, type Options, TRAIN_PRECISIONS } from './context.js';
import { benchDecode } from './parts/decode.js';
import { benchEstimators } from './parts/estimators.js';
import { benchKernels } from './parts/kernels.js';
import { benchLoops } from './parts/loops.js';
import { benchReal, benchRealDecoding, benchRealTraining } from './parts/real.js';
import { benchServe } from './parts/serve.js';
import { benchStep } from './parts/step.js';
import { benchTrain } from './parts/train.js';
import { peersDirectory } from './peers/environment.js';
import { reportText } from './report.js';
import { type BenchRecord, machineText } from './results.js';
import { largeShapes, type Shape, shapes } from './workload.js';

const parts: Readonly<Record<string, (context: Context) => Promise<void>>> = {
  train: benchTrain,
  decode: benchDecode,
  step: benchStep,
  kernels: benchKernels,
  estimators: benchEstimators,
  loops: benchLoops,
  serve: benchServe,
  real: benchReal,
  'real-decode': benchRealDecoding,
  'real-train': benchRealTraining,
};
const DEFAULT_PARTS = ['train', 'decode', 'step'];
/** The parts that compute on a GPU. */
const GPU_PARTS = ['train', 'decode', 'real', 'real-decode', 'real-train'];

const names = (list: readonly Shape[]) => list.map(({ name }) => name).join(', ');

const usage = `npm run bench -- [${Object.keys(parts).join('|')}]... [options]

  Without a part: ${DEFAULT_PARTS.join(', ')}.

  --peers            the same work in PyTorch, transformers, llama.cpp and TRL, installed into a throw-away place
  --device gpu       train, decode and real on this machine's GPU through WebGPU (experimental; without a part:
                     train, decode); --peers are PyTorch with PEFT and transformers on the same GPU
  --peer-device cpu  the same peers on the processor, to try their scripts
  --python FILE      a Python that has the packages of the peers, which are not installed then
  --requests N       requests that are decoded (default: by shape; on a GPU 32)
  --threads 1,2      numbers of threads (default: 1 and all cores)
  --shapes tiny,...  of ${names(shapes)} (default: these), ${names(largeShapes)} (LoRA; a minute to begin;
                     with real random blocks in these sizes)
  --precision P,...  precisions of products in training, ours and PyTorch's: float32, bfloat16 (default: both)
  --repetitions N    clean repetitions wanted of each engine (default: 3, with --peers 5)
  --drmas DIR        a checkout of the paper's code (github.com/langfengQ/DrMAS), for estimators --peers
  --llama-server F   the program llama-server of llama.cpp, for serve: the same weights, the same requests
  --json             results as JSON on stdout, progress on stderr
  --record FILE      appends the results as a line of JSON, with the date and the machine; docs/benchmarks.jsonl is such
                     a file
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      peers: { type: 'boolean', default: false },
      device: { type: 'string', default: 'cpu' },
      'peer-device': { type: 'string' },
      python: { type: 'string' },
      requests: { type: 'string' },
      threads: { type: 'string' },
      shapes: { type: 'string' },
      precision: { type: 'string' },
      repetitions: { type: 'string' },
      drmas: { type: 'string' },
      'llama-server': { type: 'string' },
      json: { type: 'boolean', default: false },
      record: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return void process.stdout.write(usage);
  const device = deviceOf(values.device);
  const byDefault = device === 'gpu' ? DEFAULT_PARTS.filter((name) => GPU_PARTS.includes(name)) : DEFAULT_PARTS;
  const chosen = positionals.length === 0 ? byDefault : positionals;
  if (device === 'gpu' && (values.threads !== undefined || chosen.some((name) => !GPU_PARTS.includes(name))))
    throw new UsageError(`--device gpu measures ${GPU_PARTS.join(', ')}, without --threads`);
  if (values['peer-device'] !== undefined && (device === 'cpu' || !values.peers))
    throw new UsageError('--peer-device goes with --device gpu --peers');
  const benches = chosen.map((name) => {
    const bench = parts[name];
    if (bench === undefined) throw new UsageError(`there is no part '${name}'`);
    return bench;
  });
  const options: Options = {
    peers: values.peers,
    device,
    peerDevice: deviceOf(values['peer-device'] ?? device),
    python: values.python,
    requests: numbers('requests', values.requests)?.[0],
    threads: numbers('threads', values.threads) ?? (device === 'gpu' ? [1] : [...new Set([1, availableParallelism()])]),
    repetitions: numbers('repetitions', values.repetitions)?.[0] ?? (values.peers ? 5 : 3),
    shapes: values.shapes === undefined ? shapes : values.shapes.split(',').map(shapeOf),
    precisions: values.precision?.split(',').map(precisionOf) ?? (device === 'gpu' ? ['float32'] : TRAIN_PRECISIONS),
    drmas: values.drmas,
    llamaServer: values['llama-server'],
  };
  const { record } = values;
  const typed = process.argv.slice(2).filter((word, i, all) => word !== '--record' && all[i - 1] !== '--record');
  if (record !== undefined) await appendFile(record, ''); // a file that cannot be written is reported before the work
  const started = performance.now();
  const say = (message: string) => process.stderr.write(`${message}\n`);
  const context: Context = { options, say, results: { kernels: [], rows: [], ratios: [], skipped: [] } };
  const machine = machineText();
  const gpu = device === 'gpu' ? (await findAdapters())[0].name : undefined;
  say(`${[machine, gpu].filter(Boolean).join(', ')}, Node ${process.version}`);
  for (const bench of benches) await bench(context);
  say(`${((performance.now() - started) / 1e3).toFixed(0)} s\n`);
  if (record !== undefined) {
    const [date = ''] = new Date().toISOString().split('T');
    const line: BenchRecord = {
      date,
      machine,
      ...(gpu === undefined ? {} : { gpu }),
      node: [process.versions.node, process.env.NODE_OPTIONS ?? ''].join(' ').trim(),
      arguments: typed,
      results: context.results,
    };
    await appendFile(record, `${JSON.stringify(line)}\n`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(context.results, null, 2)}\n`);
  else process.stdout.write(`${reportText(context.results)}\n`);
  if (options.peers) say(`\nThe peers lie in ${peersDirectory()}; delete it when they are not needed any more.`);
}

function numbers(name: string, text: string | undefined): number[] | undefined {
  return text?.split(',').map((one) => {
    const value = Number(one);
    if (!Number.isInteger(value) || value < 1) throw new UsageError(`--${name}: expected whole numbers, got '${text}'`);
    return value;
  });
}

function deviceOf(name: string): Device {
  const device = DEVICES.find((one) => one === name);
  if (device === undefined) throw new UsageError(`there is no device '${name}'`);
  return device;
}

function precisionOf(name: string) {
  const precision = TRAIN_PRECISIONS.find((one) => one === name);
  if (precision === undefined) throw new UsageError(`there is no precision '${name}'`);
  return precision;
}

function shapeOf(name: string) {
  const shape = [...shapes, ...largeShapes].find((one) => one.name === name);
  if (shape === undefined) throw new UsageError(`there is no shape '${name}'`);
  return shape;
}

await runProgram(usage, main);
