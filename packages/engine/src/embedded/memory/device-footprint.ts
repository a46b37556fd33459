/** The memory that the engine needs on a GPU: it runs on a simulated device that only counts the memory. */

import type { Footprint, MemoryPlan, PlannedPolicy } from '../../backends/backend-declaration.js';
import type { DecoderConfig } from '../../contract/architecture.js';
import { DeviceError } from '../../errors.js';
import { batchRows } from '../../model/decoder/layer/layer-buffers.js';
import type { TrainingSample } from '../../nouns.js';
import { type CountingKernels, type DeviceLimits, devicePackage } from '../../tensor/device-package.js';
import { Engine } from '../thread/engine.js';
import { packSamples } from '../thread/sample-batch.js';
import { cacheFootprint, policyFootprint } from './footprint.js';

/** Requests that are sampled together: at most as many as fit into the cache. */
const REQUESTS = 128;

interface Sized extends PlannedPolicy {
  readonly config: DecoderConfig;
}

interface DeviceRun {
  readonly recompute: boolean;
  /** Tokens of the longest sequence. */
  readonly longest: number;
  /** The largest share of a sequence's tokens that are trained on, above 0. */
  readonly written: number;
}

/** Memory of a run on the GPU of this machine; without one, on a GPU that has room for everything. */
export async function deviceMemoryPlan(
  options: DeviceRun,
  planned: readonly PlannedPolicy[],
  find?: () => Promise<DeviceLimits>,
): Promise<MemoryPlan> {
  const { findAdapter, countingKernels } = await devicePackage();
  const sized = planned.filter((policy): policy is Sized => policy.config !== undefined);
  const all = sized.length === planned.length;
  const [adapter, absent] = await (find ?? findAdapter)().then(
    (there) => [there, undefined] as const,
    (error: unknown) => [undefined, messageOfDevice(error)] as const,
  );
  const planOf = ({ policies, ...total }: Counted, note: string) => ({
    policies,
    notes: [`memory is a GPU's, ${note}`],
    ...(all ? { total } : {}),
  });
  const anywhere = () => counted(options, sized, countingKernels());
  if (adapter === undefined) return planOf(await anywhere(), `and there is none here: ${absent}`);
  try {
    const there = await counted(options, sized, countingKernels(adapter));
    return planOf(there, `and ${adapter.name} has buffers as large; how much it has in all, WebGPU does not tell`);
  } catch (error) {
    return planOf(await anywhere(), `and the run does not fit ${adapter.name}: ${messageOfDevice(error)}`);
  }
}

function messageOfDevice(error: unknown): string {
  if (error instanceof DeviceError) return error.message;
  throw error;
}

type Counted = Pick<MemoryPlan, 'policies'> & NonNullable<MemoryPlan['total']>;

async function counted(
  { recompute, longest, written }: DeviceRun,
  planned: readonly Sized[],
  kernels: CountingKernels,
): Promise<Counted> {
  const engine = new Engine(kernels, { recompute });
  const grown = growthOf(kernels);
  const policies: Record<string, Footprint> = {};
  const bases = new Map<string, number>();
  const cached = new Set<string>();
  let [id, baseBytes, cacheBytes] = [0, 0, 0];
  for (const policy of planned) {
    const { name, config, adapter: adapted, precision = 'float32', optimizer, agents, versions } = policy;
    if (adapted !== undefined && !bases.has(adapted.base)) {
      bases.set(adapted.base, id);
      engine.createBase(id++, config, adapted.kept);
      baseBytes += grown();
    }
    const base = adapted && (bases.get(adapted.base) as number);
    const shape = adapted === undefined ? config : { base: base as number, adapter: adapted.settings };
    const [policyId, tokens] = [id++, Math.max(2, Math.min(longest, config.context))];
    const settings = { config, adapter: adapted?.settings, precision, optimizer, agents, versions, longest, recompute };
    const { gradients, optimizer: moments } = policyFootprint(settings);
    engine.createPolicy(policyId, { name, shape, precision });
    let weights = grown();
    engine.publish(policyId, versions);
    const rows = batchRows(config, adapted?.settings, recompute);
    for (let agent = 0; agent < Math.min(2, agents); agent++) await train(engine, policyId, tokens, written, rows);
    let activations = grown() - gradients;
    await engine.optimStep(policyId, { optimizer, clipNorm: 1 });
    for (let version = 0; version < versions; version++) engine.publish(policyId, versions);
    weights += grown() - moments;
    const shared = `${base} ${precision}`;
    const caches = adapted === undefined ? versions : cached.has(shared) ? 0 : 1;
    cached.add(shared);
    await play(engine, policyId, tokens, config.vocabSize, adapted === undefined ? versions : 1);
    const cache = caches * cacheFootprint(config, tokens);
    cacheBytes += cache;
    activations += grown() - cache;
    policies[name] = { weights, gradients, optimizer: moments, activations };
  }
  return { policies, bases: baseBytes, cache: cacheBytes, total: kernels.counts.mostBytes };
}

/** A function that returns the growth of a device's memory since its last call. Bytes. */
function growthOf(kernels: CountingKernels): () => number {
  let before = 0;
  return () => {
    const { bytes } = kernels.counts;
    const growth = bytes - before;
    before = bytes;
    return growth;
  };
}

/** Trains on as many sequences as a batch of `rows` holds. No two share a row. */
async function train(engine: Engine, policy: number, length: number, written: number, rows: number): Promise<void> {
  const first = Math.max(1, Math.floor((1 - written) * length));
  const samples = Array.from(
    { length: Math.max(1, Math.floor(rows / (length - 1))) },
    (_, i): TrainingSample => ({
      tokens: new Int32Array(length).fill(i, 0, 1),
      mask: new Uint8Array(length).fill(1, first),
      behaviourLogprobs: new Float32Array(length),
      advantages: new Float32Array(length).fill(1),
      temperature: 1,
      policyVersion: 0,
      agent: '',
    }),
  );
  await engine.forwardBackward(policy, packSamples(samples), { loss: { type: 'demonstrations' }, normalizer: 1 });
}

/** Samples one token after long prompts that share no prefix, with each kept version. */
async function play(
  engine: Engine,
  policy: number,
  length: number,
  vocabulary: number,
  versions: number,
): Promise<void> {
  const last = engine.publish(policy, versions);
  const rest = new Array(length - 2).fill(0);
  const sampling = { stopTokens: [], maxTokens: 1, temperature: 1, topP: 1, topK: 0, key: [0, 0] as const };
  for (let version = last; version > last - versions; version--)
    for (let request = 0; request < REQUESTS; request++)
      engine.submit(request, policy, { ...sampling, prompt: [request % vocabulary, ...rest], version });
  while (engine.busy) await engine.tick();
}
