/**
 * Tries the engine on PyTorch on the card of this machine, in eight minutes: `npm run test:card`. It measures speed and
 * the gap between sampler and trainer in bfloat16, trains a team from nothing (`math`, which needs no network), runs
 * the contract of backends in float32, and trains `words` with both estimators. Each part has its share of the time;
 * the report has what was done until then.
 */
import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { TorchDevice } from '@drmas/engine/host';
import { findTorch, requireDevice } from '@drmas/engine/internal/torch/find-torch';
import { runProgram, UsageError } from './support/run-program.js';

const usage = `npm run test:card -- [options]

  --out FOLDER       new: the report card-report.md, and card.jsonl with the measurements (default: card)
  --seconds N        the most seconds of all parts together (default: 480)
  --shapes a,b       shapes of the bench (default: smollm2-135m,qwen2.5-0.5b,qwen2.5-1.5b,qwen3-4b)
  --only a,b         some of the parts: bench, math, contract, words
  --device NAME      (default: cuda; torch-cpu rehearses it)
`;

interface Part {
  readonly title: string;
  readonly program: string;
  readonly words: readonly string[];
  /** The share of the seconds that are left when it begins. */
  readonly share: number;
  readonly environment?: NodeJS.ProcessEnv;
}

/** The share of the bench, which ends by itself before it is stopped: Python takes some seconds to start. */
const BENCH_SHARE = 0.5;
const START_SECONDS = 5;

/** The last characters of a part's output that the report keeps. */
const KEPT = 6000;

function run({ program, words, environment }: Part, seconds: number): Promise<{ code: string; output: string }> {
  return new Promise((done) => {
    const child = spawn(program, words, { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output = `${output}${chunk}`.slice(-KEPT);
        process.stdout.write(chunk);
      });
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      // Processes that it has started may live on, and would keep the pipes open.
      for (const stream of [child.stdout, child.stderr]) stream.destroy();
    }, 1000 * seconds);
    child.once('error', (error) => done({ code: error.message, output }));
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      done({ code: signal === null ? `code ${code}` : 'stopped at its limit', output });
    });
  });
}

await runProgram(usage, async () => {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: 'card' },
      seconds: { type: 'string', default: '480' },
      shapes: { type: 'string', default: 'smollm2-135m,qwen2.5-0.5b,qwen2.5-1.5b,qwen3-4b' },
      only: { type: 'string', default: 'bench,math,contract,words' },
      device: { type: 'string', default: 'cuda' },
    },
  });
  const device = values.device as TorchDevice;
  const torch = await findTorch();
  requireDevice(torch, device);
  const out = resolve(values.out);
  await mkdir(out, { recursive: true });
  // Runs begin anew, and measurements would be added to those of another time.
  if ((await readdir(out)).length > 0) throw new UsageError(`${out} is not empty: name a new folder with --out`);
  const begun = performance.now();
  const most = Number(values.seconds);
  if (!(most > 0)) throw new UsageError(`--seconds: expected a number above 0, found '${values.seconds}'`);
  const left = () => most - (performance.now() - begun) / 1000;
  const train = (recipe: string, estimator: string, ...more: string[]): Part => ({
    title: `${recipe}, ${estimator}`,
    program: process.execPath,
    words: [
      ...['--import', 'tsx', 'src/cli/main.ts', 'train', recipe, '--run', join(out, `${recipe}-${estimator}`)],
      ...['--device', device, '--set', `advantage.type=${estimator}`, ...more],
    ],
    share: 0.5,
  });
  const parts: Readonly<Record<string, (seconds: number) => Part[]>> = {
    contract: () => [
      {
        title: 'the contract of backends, in float32',
        program: process.execPath,
        words: [
          ...['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/suites.config.ts', '--mode', 'torch'],
          // Tests are named as they end, so the report of a part that is stopped tells how far it came.
          ...['contract', '--reporter', 'verbose'],
        ],
        share: 0.35,
        environment: { DRMAS_TEST_TORCH_DEVICE: device, DRMAS_PYTHON: torch.python },
      },
    ],
    bench: (seconds) => [
      {
        title: 'speed, memory and the gap',
        program: torch.python,
        words: [
          ...[
            'research/bench/card/card.py',
            '--out',
            out,
            '--shapes',
            values.shapes,
            '--seconds',
            String(Math.floor(BENCH_SHARE * seconds) - START_SECONDS),
          ],
          ...['--device', device === 'torch-cpu' ? 'cpu' : device],
        ],
        share: BENCH_SHARE,
      },
    ],
    math: () => [train('math', 'drmas', '--set', 'training.steps=20')],
    words: () => [train('words', 'drmas'), train('words', 'grpo')],
  };
  const card = torch.cards[0];
  const lines = [
    '# The engine on PyTorch on this machine',
    '',
    `PyTorch ${torch.torch}, ${card === undefined ? 'no card' : `${card.name}, ${(card.memory / 1e9).toFixed(0)} GB`}`,
  ];
  const names = values.only.split(',');
  const unknown = names.find((name) => parts[name] === undefined);
  if (unknown !== undefined) throw new UsageError(`--only: there is no part '${unknown}'`);
  for (const name of names) {
    for (const part of parts[name]?.(left()) ?? []) {
      const seconds = Math.max(20, part.share * left());
      console.log(`\n== ${part.title} (at most ${Math.round(seconds)} s)`);
      const at = performance.now();
      const { code, output } = await run(part, seconds);
      const took = Math.round((performance.now() - at) / 1000);
      lines.push('', `## ${part.title}: ${code}, ${took} s`, '', '```text', output.trim(), '```');
      await writeFile(join(out, 'card-report.md'), `${lines.join('\n')}\n`);
    }
  }
  const measured = await readFile(join(out, 'card.jsonl'), 'utf8').catch(() => '');
  console.log(`\n${measured.split('\n').length - 1} measurements are in ${join(out, 'card.jsonl')}`);
});
