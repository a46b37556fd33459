/** A served agent over HTTP: tokens a second and the time to the first one, by how many clients stream at once. */
import { join } from 'node:path';
import { startEmbedded } from '@drmas/engine/internal/embedded/start-embedded';
import { RandomStream } from '@drmas/engine/math';
import { listen, nodeFiles } from '@drmas/engine/platform';
import { createTokenizer } from '@drmas/engine/tokens';
import OpenAI from 'openai';
import { modelServer } from '../../../src/serve/models/model-server.js';
import { ggufBeside } from '../checkpoint.js';
import { attempt, type Context, forShape, noteRows, noteSkipped, schedule, withDirectory } from '../context.js';
import { type Contestant, interleave, type Work } from '../measure/interleave.js';
import { processorTime } from '../measure/processor-time.js';
import { type LlamaServer, startLlamaServer } from '../peers/llama-server.js';
import { DRMAS, type Ratio, type Row, rowsOf } from '../results.js';
import { decoderConfig, type Shape } from '../workload.js';

const PART = 'serve';
const STREAMS = [1, 8, 64] as const;
/** The tokens of a prompt and the most of an answer. */
const TOKENS = { prompt: 96, answer: 96 };
const CONTEXT = 256;
/** The seconds for all numbers of streams of one shape together. */
const BUDGET_SECONDS = { alone: 30, beside: 120 };
const LLAMA = "llama.cpp's server";
/** The greedy tokens that both servers must share, as a check of the model. */
const CHECKED_TOKENS = 24;

/** Measures on the largest number of threads. Our server and all clients are one process and share its time. */
export async function benchServe(context: Context): Promise<void> {
  for (const shape of context.options.shapes)
    await withDirectory((directory) => benchShape(forShape(context, PART, shape), shape, directory));
}

async function benchShape(context: Context, shape: Shape, directory: string): Promise<void> {
  const { options, results } = context;
  const threads = Math.max(...options.threads);
  const backend = await startEmbedded({ threads, files: nodeFiles });
  const symbols = Array.from({ length: shape.vocabSize }, (_, id) => `<${id}>`);
  const tokenizer = createTokenizer({
    type: 'symbols',
    symbols,
    stop: '<1>',
    endOfUser: '<2>',
    endOfAssistant: '<1>',
  });
  const spec = { type: 'random', config: decoderConfig(shape, CONTEXT), tokenizer, seed: 1 } as const;
  const model = await backend.open(spec, 'policy', 'bench');
  await model.publish();
  const server = modelServer({ agentModels: new Map([['bench', { model, agent: undefined }]]), most: 1000 });
  const port = await listen(server, { host: '127.0.0.1', port: 0 });
  const ours = chatting(clientOf(`${port.url}/v1`));
  let llama: LlamaServer | undefined;
  try {
    const first = await ours(prompt(shape, -1), 0, CHECKED_TOKENS);
    llama = await attempt(context, `${PART} ${shape.name}: ${LLAMA}`, async () => {
      const program = options.llamaServer;
      if (program === undefined) throw new Error('name its program with --llama-server');
      const folder = join(directory, 'model');
      await nodeFiles.makeDirectory(folder);
      await model.save(folder);
      const file = await ggufBeside(folder);
      const slots = Math.max(...STREAMS);
      const started = await startLlamaServer(file, { program, threads, slots, context: CONTEXT });
      const { text } = await completing(clientOf(started.baseURL))(prompt(shape, -1), 0, CHECKED_TOKENS);
      if (text === first.text) return started;
      await started.stop();
      throw new Error(`it computes another model than we do: ${text} where we have ${first.text}`);
    });
    const contestants = STREAMS.map((streams) => clients(DRMAS, ours, shape, streams, threads));
    if (llama !== undefined) {
      const theirs = completing(clientOf(llama.baseURL));
      for (const streams of STREAMS) contestants.push(clients(LLAMA, theirs, shape, streams, threads, llama.pid));
    }
    const budget = BUDGET_SECONDS[llama === undefined ? 'alone' : 'beside'];
    const series = await interleave(contestants, schedule(context, `${PART} ${shape.name}`, budget));
    noteSkipped(context, PART, shape.name, series);
    const rows = rowsOf(PART, shape.name, series);
    noteRows(context, shape, rows);
    results.ratios.push(...STREAMS.flatMap((streams) => ratioOf(rows, streams)));
  } finally {
    await llama?.stop();
    await port.close();
    await backend.dispose();
  }
}

const named = (server: string, streams: number) => `${server}, ${streams} stream${streams === 1 ? '' : 's'}`;

/** Our tokens a second over the tokens a second of llama.cpp's server. */
function ratioOf(rows: readonly Row[], streams: number): Ratio[] {
  const [ours, theirs] = [DRMAS, LLAMA].map((server) => rows.find(({ engine }) => engine === named(server, streams)));
  if (ours === undefined || theirs === undefined) return [];
  const what = `${ours.engine} / ${LLAMA}`;
  const clean = ours.clean === false || theirs.clean === false ? false : ours.clean;
  return [{ part: PART, shape: ours.shape, what, value: ours.median / theirs.median, clean }];
}

const clientOf = (baseURL: string) => new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });

interface Answer {
  readonly firstMs: number;
  readonly tokens: number;
  readonly text: string;
}

/** Streams an answer to a prompt of token ids. */
type Stream = (prompt: readonly number[], temperature: number, maxTokens: number) => Promise<Answer>;

function clients(
  server: string,
  stream: Stream,
  shape: Shape,
  streams: number,
  threads: number,
  pid?: number,
): Contestant {
  let sent = 0;
  const pids = pid === undefined ? [] : [pid];
  return {
    name: named(server, streams),
    threads,
    unit: 'tok',
    ...(pid === undefined ? {} : { pid }),
    async repeat(): Promise<Work> {
      const before = processorTime(pids).measured;
      const started = performance.now();
      const answers = await Promise.all(
        Array.from({ length: streams }, () => stream(prompt(shape, sent++), 1, TOKENS.answer)),
      );
      const seconds = (performance.now() - started) / 1e3;
      const firsts = answers.map(({ firstMs }) => firstMs).sort((a, b) => a - b);
      const at = (share: number) =>
        firsts[Math.min(firsts.length - 1, Math.floor(share * firsts.length))] ?? Number.NaN;
      const amount = answers.reduce((sum, { tokens }) => sum + tokens, 0);
      return {
        amount,
        seconds,
        details: {
          'first token, median ms': at(0.5),
          '95 % within ms': at(0.95),
          'processor ms a token, clients included': (1e3 * (processorTime(pids).measured - before)) / amount,
        },
      };
    },
  };
}

/** A prompt of random tokens that no other request begins with. */
function prompt({ vocabSize }: Shape, seed: number): number[] {
  const random = new RandomStream('bench serve', vocabSize, seed);
  return Array.from({ length: TOKENS.prompt }, () => random.integer(3, vocabSize - 1));
}

const common = { model: 'bench', stream: true, stream_options: { include_usage: true } } as const;

/** Our server. It gets ids as the texts of symbols. */
const chatting =
  (client: OpenAI): Stream =>
  async (ids, temperature, max_tokens) => {
    const messages = [{ role: 'user' as const, content: ids.map((id) => `<${id}>`).join('') }];
    const body = { ...common, temperature, max_tokens, messages };
    return read(client.chat.completions.create(body), ({ delta }) => delta.content ?? '');
  };

/** llama.cpp's server. It gets token ids, with the end of a user's message that our template adds. */
const completing =
  (client: OpenAI): Stream =>
  async (ids, temperature, max_tokens) => {
    const whole = { top_k: 0, top_p: 1, min_p: 0 }; // it samples from the whole distribution then, as we do
    const body = { ...common, ...whole, temperature, max_tokens, prompt: [...ids, 2] };
    return read(client.completions.create(body), ({ text }) => text);
  };

interface Chunk<Choice> {
  readonly choices: readonly Choice[];
  readonly usage?: { readonly completion_tokens: number } | null | undefined;
}

async function read<Choice>(
  chunks: PromiseLike<AsyncIterable<Chunk<Choice>>>,
  textOf: (choice: Choice) => string,
): Promise<Answer> {
  const started = performance.now();
  let answer: Answer = { firstMs: Number.NaN, tokens: 0, text: '' };
  for await (const { choices, usage } of await chunks) {
    const [choice] = choices;
    const text = choice === undefined ? '' : textOf(choice);
    const firstMs = text !== '' && answer.text === '' ? performance.now() - started : answer.firstMs;
    answer = { firstMs, tokens: usage?.completion_tokens ?? answer.tokens, text: answer.text + text };
  }
  return answer;
}
