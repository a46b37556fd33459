/**
 * Tries everything on the GPU of this machine and writes one report for an issue: the output of `drmas doctor`, the
 * tests of the device, the contract of the kernels, the time to encode, the speed of products, and the bench.
 */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runProgram, UsageError } from './support/run-program.js';

const usage = `npm run test:gpu:device -- [options]

  --only doctor,...  some of the steps: doctor, tests, contract, encoding, products, bench, real, team
  --peers            the same work in PyTorch with PEFT and transformers, which are installed
  --software         go on where only a driver in software is there
  --out FILE         the report (default: gpu-report.md)
`;

/** Characters of a step's output that are kept, of its end. */
const KEPT = 20_000;

interface Step {
  readonly title: string;
  readonly words: readonly string[];
  /** Minutes after which it is ended. */
  readonly minutes: number;
}

const vitest = (...words: string[]) => [
  'vitest',
  'run',
  '--config',
  'test/suites.config.ts',
  '--mode',
  'gpu',
  ...words,
];
/** @param peers Words that each bench takes */
const stepsOf = (peers: readonly string[]): Readonly<Record<string, Step>> => ({
  doctor: { title: 'This machine', words: ['tsx', 'src/cli/main.ts', 'doctor'], minutes: 5 },
  tests: {
    title: 'The engine on the device',
    words: vitest('--exclude', 'test/gpu/contract.gpu.ts', '--exclude', 'test/gpu/*run.gpu.ts'),
    minutes: 30,
  },
  contract: { title: 'The contract of the kernels', words: vitest('test/gpu/contract.gpu.ts'), minutes: 60 },
  encoding: { title: 'Time to encode', words: ['tsx', 'research/bench/webgpu-encoding.ts'], minutes: 5 },
  products: { title: 'Speed of products', words: ['tsx', 'research/bench/webgpu-products.ts'], minutes: 5 },
  bench: {
    title: 'Speed',
    words: [
      ...['tsx', 'research/bench/main.ts', 'train', 'decode', '--device', 'gpu'],
      ...['--shapes', 'small,base,qwen05,qwen15', ...peers],
    ],
    minutes: 180,
  },
  real: {
    title: 'Speed with a pretrained model',
    words: ['tsx', 'research/bench/main.ts', 'real', '--device', 'gpu', ...peers],
    minutes: 60,
  },
  team: {
    title: 'A pretrained team',
    words: ['tsx', 'scripts/real.ts', '--device', 'gpu', '--steps', '4', '--to', 'runs/real-on-gpu'],
    minutes: 180,
  },
});

interface Outcome extends Step {
  readonly code: number | string;
  readonly seconds: number;
  readonly output: string;
}

/** Runs a step, with its output on the screen too; an empty VK_DRIVER_FILES leaves the driver to the machine. */
async function perform(step: Step): Promise<Outcome> {
  const began = performance.now();
  const { VK_DRIVER_FILES = '' } = process.env;
  const environment = { ...process.env, VK_DRIVER_FILES, NO_COLOR: '1' };
  const child = spawn('npx', step.words, { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      process.stdout.write(data);
      output = (output + data.toString()).slice(-KEPT);
    });
  const timer = setTimeout(() => child.kill(), 60_000 * step.minutes);
  const code = await new Promise<number | string>((done) => {
    child.on('error', (error) => done(error.message));
    child.on('close', (exit, signal) => done(exit ?? `${signal}`));
  });
  clearTimeout(timer);
  return { ...step, code, seconds: (performance.now() - began) / 1e3, output };
}

/** Removes private data of the machine. */
const shareable = (text: string) => text.replaceAll(resolve('.'), '.').replaceAll(homedir(), '~');

const reportOf = (outcomes: readonly Outcome[]): string =>
  [
    `# drmas on a GPU, ${new Date().toISOString().slice(0, 10)}`,
    ...outcomes.map(({ title, words, code, seconds, output }) =>
      [`## ${title}: ${code === 0 ? 'ended well' : `ended with ${code}`}, ${seconds.toFixed(0)} s`, '']
        .concat([`\`npx ${words.join(' ')}\``, '', '```', shareable(output).trim(), '```'])
        .join('\n'),
    ),
    '',
  ].join('\n\n');

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      peers: { type: 'boolean', default: false },
      software: { type: 'boolean', default: false },
      out: { type: 'string', default: 'gpu-report.md' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const steps = stepsOf(values.peers ? ['--peers'] : []);
  const names = values.only?.split(',') ?? Object.keys(steps);
  const chosen = names.map((name) => {
    const step = steps[name];
    if (step === undefined) throw new UsageError(`there is no step '${name}'`);
    return step;
  });
  const outcomes: Outcome[] = [];
  for (const step of chosen) {
    process.stdout.write(`\n== ${step.title}\n`);
    outcomes.push(await perform(step));
    await writeFile(values.out, reportOf(outcomes));
    if (step === steps.doctor && !values.software && lacksGpu(outcomes)) {
      process.stdout.write(
        '\nNo GPU of this machine can compute; the lines above give the reason. --software continues without one.\n',
      );
      break;
    }
  }
  process.stdout.write(`\nThe report: ${values.out}\n`);
  return outcomes.length === chosen.length && outcomes.every(({ code }) => code === 0) ? 0 : 1;
}

/** Reads the output of doctor, whose long lines are broken. */
const lacksGpu = (outcomes: readonly Outcome[]): boolean =>
  outcomes.some(({ output }) =>
    / gpu none| in software alone |none offers a GPU of its own/.test(output.replaceAll(/\s+/g, ' ')),
  );

await runProgram(usage, main);
