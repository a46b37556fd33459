/** Decoding: useful tokens a second over requests of uneven lengths. */
import { join } from 'node:path';
import { ggufBeside } from '../checkpoint.js';
import {
  attempt,
  type Context,
  forShape,
  noteRows,
  noteSkipped,
  type Options,
  schedule,
  startPeers,
  withDirectory,
} from '../context.js';
import { DrmasEngine, warmUp } from '../drmas-engine.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { llamaPackage, pythonFor, pythonVariables, script } from '../peers/environment.js';
import type { Peer, PeerCommand } from '../peers/peer.js';
import { peerRatios, rowsOf, threadRatios } from '../results.js';
import {
  DECODE_CONTEXT,
  type DecodeRequest,
  decodeRequests,
  GPU_REQUESTS,
  type Shape,
  usefulTokens,
} from '../workload.js';

const PART = 'decode';
/** The number of requests in a comparison with peers. Without peers, the shape determines it. */
const PEER_REQUESTS = 256;
/** The seconds for all engines of one shape together. */
const BUDGET_SECONDS = { alone: 3, peers: 900 };
const STATIC_BATCHES = [64, 256];
const PARALLEL_SEQUENCES = [32, 128];
const TARGETS: Readonly<Record<string, Readonly<Record<string, number | undefined>>>> = {
  tiny: { transformers: 20, 'llama.cpp': 1.5 },
  small: { transformers: 15, 'llama.cpp': 1.5 },
  base: { transformers: undefined, 'llama.cpp': 1.5 },
};
/**
 * The number of greedy tokens after the first prompt that llama.cpp must share with this engine, as a check of the
 * model.
 */
const CHECKED_TOKENS = 24;

export async function benchDecode(context: Context): Promise<void> {
  const { options, say } = context;
  const { peers, device } = options;
  const python = peers ? await attempt(context, 'transformers', () => pythonFor(options, say)) : undefined;
  const llama = peers && device === 'cpu' ? await attempt(context, 'llama.cpp', () => llamaPackage(say)) : undefined;
  for (const shape of options.shapes)
    await withDirectory((directory) => benchShape(forShape(context, PART, shape), shape, { python, llama, directory }));
}

interface Places {
  readonly python: string | undefined;
  readonly llama: string | undefined;
  readonly directory: string;
}

async function benchShape(context: Context, shape: Shape, places: Places): Promise<void> {
  const { options, results } = context;
  const ofDevice = options.device === 'gpu' ? GPU_REQUESTS : options.peers ? PEER_REQUESTS : shape.requests;
  const requests = decodeRequests(shape, options.requests ?? ofDevice);
  const engines = await Promise.all(
    options.threads.map((threads) => DrmasEngine.start(shape, threads, DECODE_CONTEXT, { device: options.device })),
  );
  const peers: Peer[] = [];
  try {
    const some = requests.slice(0, Math.ceil(requests.length / 4));
    const mode = options.peers ? 'peers' : 'alone';
    for (const engine of engines) await warmUp(mode, () => engine.decode(some));
    if (options.peers && places.python !== undefined)
      peers.push(...(await startPeers(context, PART, generatePeers(shape, options, requests, places.python))));
    const [first] = engines;
    if (options.peers && places.llama !== undefined && first !== undefined)
      peers.push(...(await llamaPeers(context, first, requests, places.llama, places.directory)));
    const ours = engines.map((engine, i) => decodeContestant(engine, options.threads[i] as number, requests));
    const series = await interleave(
      [...ours, ...peers],
      schedule(context, `${PART} ${shape.name}`, BUDGET_SECONDS[mode]),
    );
    noteSkipped(context, PART, shape.name, series);
    const rows = rowsOf(PART, `${shape.name}, ${requests.length} requests`, series);
    noteRows(context, shape, rows);
    results.ratios.push(...threadRatios(rows), ...peerRatios(rows, TARGETS[shape.name] ?? {}));
  } finally {
    for (const peer of peers) await peer.stop();
    for (const engine of engines) await engine.dispose();
  }
}

function decodeContestant(engine: DrmasEngine, threads: number, requests: readonly DecodeRequest[]): Contestant {
  return {
    name: engine.nameIn('float32'),
    threads,
    unit: 'tok',
    async repeat() {
      return { amount: usefulTokens(requests), ...(await engine.measured(() => engine.decode(requests))) };
    },
  };
}

function generatePeers(
  shape: Shape,
  { threads, device, peerDevice }: Options,
  requests: readonly DecodeRequest[],
  python: string,
): PeerCommand[] {
  const batches = device === 'gpu' ? [requests.length] : STATIC_BATCHES;
  return batches.flatMap((batch) =>
    threads.map((count) => ({
      name: `transformers, batches of ${batch}`,
      threads: count,
      unit: 'tok',
      command: python,
      args: [script('hf_generate.py')],
      settings: { shape, context: DECODE_CONTEXT, threads: count, requests, batch, device: peerDevice },
      environment: pythonVariables(count),
    })),
  );
}

/** Starts llama.cpp on the weights of this engine. It is left out when it continues a prompt differently. */
async function llamaPeers(
  context: Context,
  engine: DrmasEngine,
  requests: readonly DecodeRequest[],
  llama: string,
  directory: string,
): Promise<Peer[]> {
  await engine.save(join(directory, 'model'));
  const model = await ggufBeside(join(directory, 'model'));
  const check = { prompt: requests[0]?.prompt ?? [], length: CHECKED_TOKENS };
  const expected = await engine.decode([check], 0);
  const commands = PARALLEL_SEQUENCES.flatMap((sequences) =>
    context.options.threads.map((threads) => ({
      name: `llama.cpp, ${sequences} sequences`,
      threads,
      unit: 'tok',
      command: process.execPath,
      args: [script('llama.mjs')],
      settings: { package: llama, model, threads, sequences, context: DECODE_CONTEXT, requests, checks: [check] },
    })),
  );
  const peers = await startPeers(context, PART, commands);
  const same = peers.filter(({ about }) => JSON.stringify(about.greedy) === JSON.stringify(expected));
  for (const peer of peers) {
    if (same.includes(peer)) continue;
    await peer.stop();
    context.results.skipped.push({ what: `${PART}: ${peer.name}`, reason: 'it computes another model than we do' });
  }
  return same;
}
