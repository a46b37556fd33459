/**
 * Tables of the engine on PyTorch: the memory that it needs on a card, and the measurements of
 * research/bench/card/card.py. Its runs are one after another in docs/card.jsonl.
 */
import type { DecoderConfig } from '@drmas/engine/contract';
import { torchMemory } from '@drmas/engine/internal/torch/torch-footprint';
import { SIZES } from '@drmas/engine/internal/torch/torch-sizes';
import { rank16 } from '../../test/support/rank-16.js';
import { type Region, readPage, table } from './pages.js';

interface Line {
  readonly part: string;
  readonly shape?: string;
  readonly [name: string]: unknown;
}

/** The lines of each run; its first line tells of the machine. */
function cardRuns(): Line[][] {
  const runs: Line[][] = [];
  for (const text of readPage('docs/card.jsonl').trim().split('\n')) {
    const line = JSON.parse(text) as Line;
    if (line.part === 'machine') runs.push([line]);
    else runs.at(-1)?.push(line);
  }
  return runs;
}

const rounded = (value: unknown, digits = 0): string =>
  typeof value === 'number' ? value.toLocaleString('en-US', { maximumFractionDigits: digits }) : '–';

function tablesOf([machine, ...lines]: readonly Line[]): string[] {
  const of = (part: string, shape?: string, fits: (line: Line) => boolean = () => true) =>
    lines.filter(
      (line) => line.part === part && line.failed === undefined && (shape ?? line.shape) === line.shape && fits(line),
    );
  const refill = (line: Line) =>
    of('refill', line.shape, ({ rows }) => line.part === 'decode' && line.adapters !== 4 && rows === line.rows)[0];
  return [
    `${machine?.device}, PyTorch ${machine?.torch}, ${machine?.date}, at commit ${machine?.commit}.`,
    table(
      ['sampling', 'rows', 'ms a token of all rows', 'tokens a second', 'with new requests', 'ms by bandwidth'],
      [...of('decode'), ...of('transformers generate')].map((line) => [
        `${line.shape}${line.part === 'decode' ? '' : ', transformers'}`,
        `${line.rows}${line.part === 'decode' ? `, on ${line.adapters} adapter${line.adapters === 1 ? '' : 's'}` : ', no adapter'}`,
        rounded(line.ms, 1),
        rounded(line.tok_s),
        rounded(refill(line)?.tok_s),
        rounded(line.limit_ms, 2),
      ]),
    ),
    table(
      ['updates of an adapter of rank 16', 'rows', 'tokens', 'tokens computed', 'tokens a second', 'peak GB'],
      [...of('train'), ...of('PEFT')].map((line) => [
        `${line.shape}${line.part === 'PEFT' ? ', PEFT' : ''}`,
        `${line.rows}`,
        rounded(line.tokens),
        rounded(line.computed ?? line.tokens),
        rounded(line.tok_s),
        rounded(line.peak_GB, 1),
      ]),
    ),
  ];
}

export const card: Region = {
  name: 'card',
  render: () => cardRuns().flatMap(tablesOf).join('\n\n'),
};

/** Models as their authors publish them, without what memory does not depend on. */
const models: Readonly<Record<string, Partial<DecoderConfig>>> = {
  'SmolLM2-135M': { vocabSize: 49152, width: 576, layers: 30, heads: 9, kvHeads: 3, headDim: 64, feedForward: 1536 },
  'Qwen2.5-0.5B': { vocabSize: 151936, width: 896, layers: 24, heads: 14, kvHeads: 2, headDim: 64, feedForward: 4864 },
  'Qwen2.5-1.5B': {
    vocabSize: 151936,
    width: 1536,
    layers: 28,
    heads: 12,
    kvHeads: 2,
    headDim: 128,
    feedForward: 8960,
  },
  'Qwen2.5-3B': { vocabSize: 151936, width: 2048, layers: 36, heads: 16, kvHeads: 2, headDim: 128, feedForward: 11008 },
  'Qwen3-4B': { vocabSize: 151936, width: 2560, layers: 36, heads: 32, kvHeads: 8, headDim: 128, feedForward: 9728 },
  'Qwen3-8B': {
    ...{ vocabSize: 151936, width: 4096, layers: 36, heads: 32, kvHeads: 8, headDim: 128, feedForward: 12288 },
    untiedOutput: true,
  },
};

const CARDS = [16, 24, 48, 80];
const REQUESTS = 32;
const LONGEST = 2048;
/** A team of two agents, an adapter each, on one base. */
function needs(sizes: Partial<DecoderConfig>, recompute: boolean): { total: number; cache: number } {
  const config = { context: LONGEST, normEpsilon: 1e-6, ropeBase: 1e6, ...sizes } as DecoderConfig;
  const policies = ['planner', 'solver'].map((name) => ({ name, config, ...rank16, versions: 1 }));
  const { total = { total: 0, cache: 0 } } = torchMemory({ device: 'cuda', recompute, longest: LONGEST }, policies);
  const cache = (total.cache * REQUESTS) / SIZES.card.slots;
  return { cache, total: total.total - total.cache + cache };
}

const smallest = (bytes: number) => {
  const fits = CARDS.find((size) => bytes <= 0.95e9 * size);
  return fits === undefined ? 'none of these' : `${fits} GB`;
};

export const cardMemory: Region = {
  name: 'card-memory',
  render: () =>
    table(
      ['model', 'needs', 'smallest card', 'with `backend.recompute`', 'smallest card then', 'of it for 32 requests'],
      Object.entries(models).map(([name, sizes]) => {
        const [kept, again] = [needs(sizes, false), needs(sizes, true)];
        const gigabytes = (bytes: number) => `${rounded(bytes / 1e9, 1)} GB`;
        return [
          name,
          gigabytes(kept.total),
          smallest(kept.total),
          gigabytes(again.total),
          smallest(again.total),
          gigabytes(again.cache),
        ];
      }),
    ),
};
