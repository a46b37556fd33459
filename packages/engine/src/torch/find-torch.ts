/** Looks for Python with PyTorch, and says which command installs what is missing. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isTorchProcessor } from '../contract/architecture.js';
import { BackendError, DeviceError } from '../errors.js';
import type { TorchDevice } from '../host.js';

const cardSchema = z.strictObject({
  name: z.string(),
  /** Bytes. */
  memory: z.number(),
  free: z.number(),
  /** Major and minor number of the compute capability. */
  capability: z.tuple([z.number(), z.number()]),
  /** Bytes per second of a copy, read and written; null if it was not measured. */
  bandwidth: z.number().nullable(),
  /** Why PyTorch cannot compute on it. */
  error: z.string().nullable(),
});

const reportSchema = z.strictObject({
  version: z.string(),
  torch: z.string().nullable(),
  /** The version of CUDA that this PyTorch was built for; null for a build without it. */
  cuda: z.string().nullable(),
  cards: z.array(cardSchema),
  mps: z.boolean(),
  /** Why PyTorch could not be imported. */
  error: z.string().nullable(),
  /** Why PyTorch cannot compile kernels for a card. */
  uncompiled: z.string().nullable(),
});

/** Python and its PyTorch. */
export interface PythonReport extends z.output<typeof reportSchema> {
  readonly python: string;
}

export interface FoundTorch extends PythonReport {
  readonly torch: string;
}

const LOOK = `
import sys
sys.path[:] = [path for path in sys.path if path]
import json
version = '%d.%d.%d' % sys.version_info[:3]
report = dict(version=version, torch=None, cuda=None, cards=[], mps=False, error=None, uncompiled=None)
def reason(error): return ('%s: %s' % (type(error).__name__, str(error).strip().partition(chr(10))[0]))[:300]
def measure(card, i):
    card['free'], card['memory'] = torch.cuda.mem_get_info(i)
    with torch.cuda.device(i):
        (torch.ones(1, device='cuda') + 1).item()
        if card['free'] > 2**30 and sys.argv[1:] == ['measure']:
            a, b = (torch.empty(2**28, dtype=torch.uint8, device='cuda') for _ in range(2))
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            b.copy_(a)
            start.record()
            for _ in range(20): b.copy_(a)
            end.record()
            torch.cuda.synchronize()
            card['bandwidth'] = 20 * 2 * 2**28 / (start.elapsed_time(end) / 1000)
def compiles():
    import torch._dynamo, triton
    torch._dynamo.eval_frame.check_if_dynamo_supported()
    # The first use of this lets a C compiler make what launches kernels; later ones find it in Triton's cache.
    triton.runtime.driver.active.get_current_target()
try:
    import torch, numpy
    report['torch'], report['cuda'] = str(torch.__version__), torch.version.cuda
    report['mps'] = bool(getattr(torch.backends, 'mps', None) and torch.backends.mps.is_available())
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(i)
        card = dict(name=about.name, capability=[about.major, about.minor], bandwidth=None, error=None)
        card.update(memory=about.total_memory, free=0)
        try: measure(card, i)
        except Exception as error: card['error'] = reason(error)
        report['cards'].append(card)
except Exception as error:
    report['error'] = reason(error)
if report['cards']:
    try: compiles()
    except AttributeError: pass # another Triton
    except Exception as error: report['uncompiled'] = reason(error)
sys.stdout.write('drmas:' + json.dumps(report) + chr(10))
`;

const LEAST_PYTHON = [3, 10];
const LEAST_TORCH = [2, 8];
/** The most time that an import of PyTorch may take. The first one reads gigabytes. */
export const IMPORT_MS = 300_000;

/** The commands that install PyTorch. */
const INSTALL_TORCH = 'uv pip install torch numpy, or python -m pip install torch numpy';

/** The programs that may be Python, in the order of the search. */
function candidates(environment: NodeJS.ProcessEnv): string[] {
  const named = environment.DRMAS_PYTHON;
  if (named !== undefined && named !== '') return [named];
  const folder = process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];
  const inEnvironment = [environment.VIRTUAL_ENV, environment.CONDA_PREFIX]
    .filter((home) => home !== undefined && home !== '')
    .map((home) => join(home as string, ...folder))
    .filter((path) => existsSync(path));
  return [...inEnvironment, ...(process.platform === 'win32' ? ['python'] : ['python3', 'python'])];
}

interface LookOptions {
  /** Whether to measure how fast each card copies; the start of an engine need not wait for it. */
  readonly measure?: boolean;
  /** The most time that a program has for its answer. */
  readonly waitMs?: number;
}

/** The answers so far: a look imports PyTorch, which takes seconds. */
const looks = new Map<string, Promise<PythonReport | undefined>>();

/** The first Python of the search and its packages; one with PyTorch comes first. Undefined if there is no Python. */
export function lookForTorch(
  environment: NodeJS.ProcessEnv = process.env,
  { measure = false, waitMs = IMPORT_MS }: LookOptions = {},
): Promise<PythonReport | undefined> {
  const key = JSON.stringify([candidates(environment), environment.PATH, measure]);
  const known = looks.get(key) ?? firstWithTorch(environment, measure, waitMs);
  looks.set(key, known);
  return known;
}

async function firstWithTorch(
  environment: NodeJS.ProcessEnv,
  measure: boolean,
  waitMs: number,
): Promise<PythonReport | undefined> {
  let first: PythonReport | undefined;
  for (const python of candidates(environment)) {
    const report = await look(python, measure, waitMs);
    if (report === undefined) continue;
    if (report.torch !== null) return report;
    first ??= report;
  }
  return first;
}

/**
 * @throws BackendError when there is no Python of version 3.10 or later, or no PyTorch of version 2.8 or later in it
 */
export async function findTorch(environment: NodeJS.ProcessEnv = process.env): Promise<FoundTorch> {
  const found = await lookForTorch(environment);
  const problem = pythonProblem(found, environment);
  if (problem !== undefined) throw new BackendError(problem);
  return found as FoundTorch;
}

/** Why the engine cannot start in this Python; undefined if it can, and then there is a PyTorch. */
export function pythonProblem(
  found: PythonReport | undefined,
  environment: NodeJS.ProcessEnv = process.env,
): string | undefined {
  if (found === undefined) {
    const named = environment.DRMAS_PYTHON;
    const where = named ? `DRMAS_PYTHON is ${named}, which is none` : 'there is none on the PATH';
    return `the engine on PyTorch needs Python 3.10 or later, and ${where}; with one: ${INSTALL_TORCH}`;
  }
  const { python, version, torch, error } = found;
  if (isBefore(version, LEAST_PYTHON))
    return `the engine on PyTorch needs Python 3.10 or later, and ${python} is ${version}`;
  if (torch === null) {
    const missing = /No module named '(torch|numpy)'/.exec(error ?? '')?.[1];
    const name = missing === 'numpy' ? missing : 'PyTorch';
    const why = error === null || missing !== undefined ? '' : ` that works (${error})`;
    return `${python} has no ${name}${why}: ${INSTALL_TORCH}; DRMAS_PYTHON names another Python`;
  }
  if (isBefore(torch, LEAST_TORCH))
    return `the engine on PyTorch needs PyTorch 2.8 or later, and ${python} has ${torch}: ${INSTALL_TORCH}`;
  return undefined;
}

/** @throws DeviceError when this PyTorch has no such device */
export function requireDevice(found: FoundTorch, device: TorchDevice): void {
  const problem = deviceProblem(found, device);
  if (problem !== undefined) throw new DeviceError('absent', problem);
}

/** Why this PyTorch cannot compute on a device; undefined if it can. */
export function deviceProblem(
  { python, torch, cuda, cards, mps, uncompiled }: PythonReport,
  device: TorchDevice,
): string | undefined {
  if (isTorchProcessor(device)) return undefined;
  if (device === 'mps') return mps ? undefined : `PyTorch ${torch} finds no GPU of Apple here`;
  if (cuda === null)
    return (
      `PyTorch ${torch} of ${python} is a build without CUDA: install one with it, ` +
      'as https://pytorch.org/get-started/locally tells for your system'
    );
  if (cards.length === 0)
    return (
      `PyTorch ${torch} finds no card of NVIDIA: there is none, or its driver is too old for CUDA ${cuda} ` +
      '(`nvidia-smi` shows both)'
    );
  const card = cards[Number(device.split(':')[1] ?? 0)];
  if (card === undefined) return `there is no ${device}: PyTorch finds ${cards.length} (${cards[0]?.name})`;
  const [major] = card.capability;
  if (major < 8) return `${card.name} has no bfloat16: the engine needs a card of NVIDIA's Ampere or later`;
  if (card.error !== null) return `PyTorch ${torch} cannot compute on ${card.name}: ${card.error}`;
  if (uncompiled !== null)
    return (
      `PyTorch ${torch} of ${python} cannot compile kernels (${uncompiled}): it needs Triton, a C compiler and ` +
      "Python's headers, as `apt install gcc python3-dev` or a Python that uv installs bring them"
    );
  return undefined;
}

function isBefore(version: string, [major, minor]: readonly number[]): boolean {
  const [a = 0, b = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  return a < (major as number) || (a === major && b < (minor as number));
}

/** Asks a program for its report. Undefined if it is no Python. One that does not answer may be a Python. */
function look(python: string, measure: boolean, waitMs: number): Promise<PythonReport | undefined> {
  return new Promise((resolve) => {
    // Not the current folder: a file `torch.py` there must not be run.
    const child = spawn(python, ['-c', LOOK, ...(measure ? ['measure'] : [])], {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: waitMs,
    });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.once('error', () => resolve(undefined));
    child.once('close', () => {
      const line = text.split('\n').find((each) => each.startsWith('drmas:'));
      if (line === undefined) {
        const error = `no answer in ${waitMs / 1000} s`;
        const silent = { version: '', torch: null, cuda: null, cards: [], mps: false, error, uncompiled: null };
        return resolve(child.killed ? { python, ...silent } : undefined);
      }
      const report = reportSchema.safeParse(JSON.parse(line.slice('drmas:'.length)));
      resolve(report.success ? { python, ...report.data } : undefined);
    });
  });
}
