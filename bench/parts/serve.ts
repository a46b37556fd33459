/** A served agent over HTTP: tokens a second and the time to the first one, by how many clients stream at once. */
import OpenAI from 'openai';
import { EmbeddedBackend } from '../../src/backends/embedded/embedded-backend.js';
import { RandomStream } from '../../src/core/random.js';
import { createTokenizer } from '../../src/model/tokenizers/create-tokenizer.js';
import { listen } from '../../src/platform/listen.js';
import { nodeFiles } from '../../src/platform/node-files.js';
import { modelServer } from '../../src/serve/model-server.js';
import { type Context, forShape, noteRows, noteSkipped, schedule } from '../context.js';
import { type Contestant, interleave, type Work } from '../measure/interleave.js';
import { rowsOf } from '../results.js';
import { decoderConfig, type Shape } from '../workload.js';

const PART = 'serve';
const STREAMS = [1, 16, 64];
/** The tokens of a prompt and the most of an answer. */
const TOKENS = { prompt: 96, answer: 96 };
const CONTEXT = 256;
/** The seconds for all numbers of streams of one shape together. */
const BUDGET_SECONDS = 30;

/** Measures on the largest number of threads. Server and clients are one process, whose clients take time too. */
export async function benchServe(context: Context): Promise<void> {
  for (const shape of context.options.shapes) await benchShape(forShape(context, PART, shape), shape);
}

async function benchShape(context: Context, shape: Shape): Promise<void> {
  const threads = Math.max(...context.options.threads);
  const backend = await EmbeddedBackend.start({ threads, files: nodeFiles });
  const symbols = Array.from({ length: shape.vocabSize }, (_, id) => `<${id}>`);
  const tokenizer = createTokenizer({
    ...{ type: 'symbols', symbols, stop: '<1>', endOfUser: '<2>', endOfAssistant: '<1>' },
  });
  const spec = { type: 'random', config: decoderConfig(shape, CONTEXT), tokenizer, seed: 1 } as const;
  const model = await backend.open(spec, 'frozen', 'bench');
  await model.publish();
  const server = modelServer({ voices: new Map([['bench', { model, agent: undefined }]]), most: 1000 });
  const port = await listen(server.app, { host: '127.0.0.1', port: 0 });
  const client = new OpenAI({ baseURL: `${port.url}/v1`, apiKey: 'none', maxRetries: 0 });
  try {
    await stream(client, shape, -1);
    const contestants = STREAMS.map((streams) => clients(client, shape, streams, threads));
    const series = await interleave(contestants, schedule(context, `${PART} ${shape.name}`, BUDGET_SECONDS));
    noteSkipped(context, PART, shape.name, series);
    noteRows(context, shape, rowsOf(PART, shape.name, series));
  } finally {
    await port.close();
    await backend.dispose();
  }
}

function clients(client: OpenAI, shape: Shape, streams: number, threads: number): Contestant {
  let sent = 0;
  return {
    ...{ name: streams === 1 ? '1 stream' : `${streams} streams`, threads, unit: 'tok' },
    async repeat(): Promise<Work> {
      const before = process.cpuUsage();
      const started = performance.now();
      const answers = await Promise.all(Array.from({ length: streams }, () => stream(client, shape, sent++)));
      const seconds = (performance.now() - started) / 1e3;
      const firsts = answers.map(({ firstMs }) => firstMs).sort((a, b) => a - b);
      const at = (share: number) =>
        firsts[Math.min(firsts.length - 1, Math.floor(share * firsts.length))] ?? Number.NaN;
      const { user, system } = process.cpuUsage(before);
      const amount = answers.reduce((sum, { tokens }) => sum + tokens, 0);
      return {
        ...{ amount, seconds },
        details: {
          'first token, median ms': at(0.5),
          '95 % within ms': at(0.95),
          'processor ms a token, clients included': (user + system) / 1e3 / amount,
        },
      };
    },
  };
}

/** One answer to a prompt of random tokens that no other request begins with. */
async function stream(client: OpenAI, { vocabSize }: Shape, seed: number) {
  const random = new RandomStream('bench serve', vocabSize, seed);
  const content = Array.from({ length: TOKENS.prompt }, () => `<${random.integer(3, vocabSize - 1)}>`).join('');
  const started = performance.now();
  let firstMs = Number.NaN;
  let tokens = 0;
  const body = {
    model: 'bench',
    max_tokens: TOKENS.answer,
    stream: true,
    stream_options: { include_usage: true },
  } as const;
  const chunks = await client.chat.completions.create({ ...body, messages: [{ role: 'user', content }] });
  for await (const { choices, usage } of chunks) {
    if (choices[0]?.delta.content && Number.isNaN(firstMs)) firstMs = performance.now() - started;
    tokens = usage?.completion_tokens ?? tokens;
  }
  return { firstMs, tokens };
}
