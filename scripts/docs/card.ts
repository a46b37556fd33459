/** What `python3 bench/card/card.py` measured on cards: docs/card.jsonl has the lines of each run one after another. */
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
