/**
 * `npm run verify`: the slow tests, which `npm test` leaves out. With names it runs other checks instead: against real
 * servers, frameworks, devices and tools. Other words go on to the last named check.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Check {
  readonly does: string;
  /** The command, without `npx`. */
  readonly words: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Needs the compiled package. */
  readonly build?: true;
}

const suite = (folder: string, ...words: string[]) => [
  ...['vitest', 'run', '--config', 'test/suites.config.ts', '--mode', folder],
  ...words,
];
const WITHOUT_SLOW_GPU = ['--exclude', 'test/gpu/contract.gpu.ts', '--exclude', 'test/gpu/*run.gpu.ts'];

export const checks: Readonly<Record<string, Check>> = {
  slow: { does: 'the slow tests (default)', words: ['vitest', 'run', '--mode', 'verify'] },
  package: {
    does: 'the packed package in five kinds of projects, and a page as a reader types it',
    words: ['tsx', 'scripts/check-package.ts'],
    build: true,
  },
  wasm: { does: 'whether the WebAssembly module is up to date', words: ['tsx', 'scripts/wasm.ts', 'check'] },
  prebuilt: { does: 'whether the prebuilt addons are up to date', words: ['tsx', 'scripts/prebuilt.ts', 'check'] },
  sanitizers: { does: 'the kernels under sanitizers (g++)', words: ['tsx', 'scripts/sanitizers.ts'] },
  arm: {
    does: 'the kernels on an emulated ARM processor (g++-aarch64-linux-gnu, qemu-user)',
    words: ['tsx', 'scripts/arm.ts'],
  },
  faults: {
    does: 'runs under signals, kills and full disks (--short: a sample)',
    words: ['tsx', 'scripts/faults/main.ts'],
    build: true,
  },
  long: {
    does: 'thousands of steps: memory, handles, time of a step',
    words: ['tsx', 'scripts/long-run.ts'],
    build: true,
  },
  frameworks: {
    does: 'teams of agent frameworks and scorers of others, with their packages from npm',
    words: ['tsx', 'scripts/frameworks.ts'],
  },
  bundlers: {
    does: 'a program on drmas/serve in Next.js, esbuild, Vite, Bun and Deno (npm)',
    words: suite('bundlers'),
    build: true,
  },
  evals: { does: 'Inspect and promptfoo evaluate a served agent', words: suite('evals') },
  exports: { does: 'exported models in transformers and llama.cpp', words: suite('exports') },
  real: { does: 'a real model in GGUF beside transformers and llama.cpp', words: suite('real') },
  site: {
    does: 'the documentation site: its build, links and pages (npm, Chromium)',
    words: ['vitest', 'run', '--mode', 'verify', 'test/browser/documents.test.ts'],
    environment: { DRMAS_TEST_SITE: '1' },
  },
  schemas: { does: "JSON schemas beside Python's jsonschema", words: suite('schemas') },
  tokenizers: { does: "real tokenizer.json beside Python's tokenizers", words: suite('tokenizers') },
  templates: { does: "real chat templates beside Python's jinja2", words: suite('templates') },
  servers: {
    does: 'a server whose clients disappear (DRMAS_TEST_MINUTES=10: 3,000 of them)',
    words: suite('servers'),
  },
  torch: { does: 'the engine on PyTorch: contract, parity, faults (Python; installs PyTorch)', words: suite('torch') },
  gateway: { does: 'agents in Python and in a shell script over the gateway', words: suite('gateway') },
  openworld: { does: 'environments of openenv and seats of verifiers, with their packages', words: suite('openworld') },
  samplers: { does: 'a team that vLLM or SGLang samples', words: suite('samplers') },
  tinker: { does: 'the official Tinker client on the server of drmas', words: suite('tinker-sdk') },
  remote: { does: "SkyRL's Tinker server", words: suite('remote') },
  trackers: { does: 'TensorBoard, MLflow and Trackio', words: suite('trackers') },
  queue: { does: 'rollouts on a queue (Redis)', words: suite('queue') },
  'queue-rate': {
    does: 'episodes per second of one and of four workers',
    words: suite('queue', '-t', '3.2 times'),
    environment: { DRMAS_TEST_EPISODES: '10000' },
  },
  hosts: { does: 'rollouts on several hosts (root, iproute2, redis-server)', words: suite('hosts') },
  ray: { does: 'a study on a Ray cluster', words: suite('ray') },
  s3: { does: 'runs that are killed and resume from an S3 server', words: suite('s3') },
  gpu: { does: 'the kernels in WGSL on a GPU driver in software', words: suite('gpu', ...WITHOUT_SLOW_GPU) },
  'gpu-short': {
    does: 'a part of gpu, in a few minutes',
    words: suite('gpu', ...WITHOUT_SLOW_GPU, '--tags-filter=!long'),
  },
  'gpu-run': { does: 'runs on a GPU driver in software', words: suite('gpu', 'run.gpu.ts') },
  'gpu-contract': {
    does: 'the contract of the kernels on a GPU driver in software',
    words: suite('gpu', 'test/gpu/contract.gpu.ts'),
  },
};

const usage = () => {
  const width = Math.max(...Object.keys(checks).map((name) => name.length));
  const rows = Object.entries(checks).map(([name, { does }]) => `  ${name.padEnd(width)}  ${does}`);
  return `npm run verify -- [NAME]... [words for the last NAME]\n\n${rows.join('\n')}\n`;
};

function run(words: readonly string[], environment: NodeJS.ProcessEnv = {}): number {
  const env = { ...environment, ...process.env };
  const { status, error } = spawnSync('npx', ['--no-install', ...words], { cwd: root, stdio: 'inherit', env });
  if (error) throw error;
  return status ?? 1;
}

/** Runs the named checks, and stops at the first that fails. Returns its exit code. */
export function verify(words: readonly string[], start: typeof run = run): number {
  const end = words.findIndex((word) => checks[word] === undefined);
  const names = end < 0 ? words : words.slice(0, end);
  const others = end < 0 ? [] : words.slice(end);
  if (names.length === 0 && others[0] !== undefined && !others[0].startsWith('-')) {
    console.error(`there is no check '${others[0]}'\n\n${usage()}`);
    return 2;
  }
  const chosen = (names.length === 0 ? ['slow'] : names).flatMap((name) => checks[name] ?? []);
  if (chosen.some(({ build }) => build)) {
    const code = start(['npm', 'run', '--silent', 'build']);
    if (code !== 0) return code;
  }
  for (const [i, { words: command, environment }] of chosen.entries()) {
    const code = start([...command, ...(i === chosen.length - 1 ? others : [])], environment);
    if (code !== 0) return code;
  }
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2);
  if (words.includes('--list') || words.includes('--help')) console.log(usage());
  else process.exitCode = verify(words);
}
