/** The memory that the engine on PyTorch needs, from the sizes of models alone. */

import type { Footprint, MemoryPlan, PlannedPolicy } from '../backends/backend-declaration.js';
import {
  type AdapterSettings,
  type DecoderConfig,
  isTorchProcessor,
  type Precision,
} from '../contract/architecture.js';
import type { TorchDevice } from '../host.js';
import { slotFloats } from '../model/decoder/sampling/key-value-cache.js';
import { adapterParameterCount } from '../model/decoder/weights/adapter-tensors.js';
import { MATRICES, matrixShapes, parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { usedBuffers } from '../model/optimizers/index.js';
import { deviceProblem, lookForTorch, pythonProblem } from './find-torch.js';
import { SIZES } from './torch-sizes.js';

const FLOAT = 4;
const BYTES: Readonly<Record<Precision, number>> = { float32: 4, bfloat16: 2, int8: 4 };

/** Logits that exist at a time: `BLOCK_LOGITS` of head.py. */
const BLOCK_LOGITS = 2 ** 26;
/** The fewest requests at once for which the worker makes room in its cache, `ROWS` of attention.py. */
const FEWEST_SLOTS = 8;
/** The bytes that CUDA, its libraries and the graphs of ticks take. */
const CONTEXT_BYTES = 1.2e9;

interface TorchRun {
  readonly device: TorchDevice;
  readonly recompute: boolean;
  /** Tokens of the longest sequence. */
  readonly longest: number;
}

/** The memory of a run on a card, or of the worker's process, with a note about the card that is here. */
export async function torchMemoryPlan(run: TorchRun, planned: readonly PlannedPolicy[]): Promise<MemoryPlan> {
  const memory = torchMemory(run, planned);
  if (!run.device.startsWith('cuda') || memory.total === undefined) return memory;
  return { ...memory, ...(await besideCard(run.device, memory.total)) };
}

/** @param mostRows The rows of a micro-batch, by default those that the worker gets */
export function torchMemory(
  { device, recompute, longest }: TorchRun,
  planned: readonly PlannedPolicy[],
  mostRows?: number,
): MemoryPlan {
  const onCard = device.startsWith('cuda');
  const sizes = SIZES[onCard ? 'card' : 'processor'];
  const [slots, rows] = [sizes.slots, mostRows ?? sizes.rows];
  const policies: Record<string, Footprint> = {};
  const bases = new Map<string, number>();
  const caches = new Map<string, number>();
  // Policies train one after another, in the same memory.
  let [trained, mostActive] = [0, 0];
  for (const { name, config, adapter, agentAdapters, precision, optimizer, agents, versions } of planned) {
    if (config === undefined) continue;
    const bytes = BYTES[precision ?? (isTorchProcessor(device) ? 'float32' : 'bfloat16')];
    const ofAgents = agentAdapters === undefined ? 0 : agents * adapterParameterCount(config, agentAdapters);
    const whole = parameterCount(config);
    const count = adapter === undefined ? whole + ofAgents : adapterParameterCount(config, adapter.settings);
    const settings = adapter?.settings ?? agentAdapters;
    const ofLayer = layerBytes(config, settings, bytes);
    const batch = Math.max(rows, longest) * config.layers * (recompute ? bytes * config.width : ofLayer);
    // Products of a whole model read copies of its matrices, which the backward pass reads too.
    const copies = adapter === undefined && bytes < FLOAT && !recompute ? bytes * whole : 0;
    const logits = 3 * FLOAT * Math.min(BLOCK_LOGITS, rows * config.vocabSize);
    policies[name] = {
      weights: FLOAT * count + versions * bytes * count,
      gradients: FLOAT * count * (agents > 1 ? 2 : 1),
      optimizer: FLOAT * count * usedBuffers(optimizer).length,
      activations: batch + ofLayer * rows + logits + copies,
    };
    const { activations, ...kept } = policies[name] as Footprint;
    trained += Object.values(kept).reduce((sum, each) => sum + each, 0);
    mostActive = Math.max(mostActive, activations);
    const key = adapter === undefined ? name : `${adapter.base} ${bytes} ${JSON.stringify(adapter.settings)}`;
    const owners = adapter === undefined ? versions : 1;
    const positionFloats = slotFloats(config, 1, config.kvHeads * config.headDim);
    caches.set(key, owners * slots * longest * positionFloats * bytes);
    if (adapter !== undefined) bases.set(`${adapter.base} ${bytes}`, bytes * whole);
  }
  if (planned.some(({ config }) => config === undefined)) return { policies };
  const sum = (sizes: Iterable<number>) => [...sizes].reduce((total, size) => total + size, 0);
  const [ofBases, cache] = [sum(bases.values()), sum(caches.values())];
  const total = trained + mostActive + ofBases + cache + (onCard ? CONTEXT_BYTES : 0);
  return { policies, total: { bases: ofBases, cache, total } };
}

/** The numbers that a layer keeps of a row for the backward pass: inputs of norms, of products and of attention. */
function layerBytes(config: DecoderConfig, adapter: AdapterSettings | undefined, bytes: number): number {
  const { width, heads, kvHeads, headDim, feedForward } = config;
  const [q, kv] = [heads * headDim, kvHeads * headDim];
  const shapes = matrixShapes(config, 0);
  const ranks =
    adapter === undefined ? 0 : MATRICES.reduce((sum, name) => sum + shapes[name].parts.length, 0) * adapter.rank;
  const narrow = 4 * width + 3 * (q + 2 * kv) + q + 4 * feedForward + ranks;
  return bytes * narrow + FLOAT * (2 + heads); // the inverse norms, and attention's sums of exponentials
}

/** The forecast beside the card that is here. */
async function besideCard(
  device: TorchDevice,
  { total, cache }: NonNullable<MemoryPlan['total']>,
): Promise<Pick<MemoryPlan, 'notes' | 'fits'>> {
  const found = await lookForTorch();
  const problem = pythonProblem(found) ?? (found && deviceProblem(found, device));
  const card = found?.cards[Number(device.split(':')[1] ?? 0)];
  if (problem !== undefined || card === undefined)
    return { notes: [`memory is that of a card; the run cannot start here: ${problem}`] };
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  const least = total - cache * (1 - FEWEST_SLOTS / SIZES.card.slots);
  const fits = least <= card.free;
  const verdict =
    total <= card.free
      ? 'so the run fits'
      : fits
        ? 'so the run fits with fewer requests at once'
        : 'so the run does not fit';
  const note = `memory is that of a card: ${device}, ${card.name}, has ${gigabytes(card.free)} free, ${verdict}`;
  return { notes: [note], fits };
}
