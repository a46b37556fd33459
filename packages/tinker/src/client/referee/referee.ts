/**
 * The referee: rules of the Tinker protocol, each tried on a server with models of its own. Expected numbers come from
 * the server's own log-probs and the protocol's formulas, so that any base model will do.
 */
import { BackendError, messageOf } from '@drmas/engine/errors';
import type { Secret } from '@drmas/engine/host';
import { webRequest } from '@drmas/engine/platform';
import { probeServer } from '../probe/server-probe.js';
import { knownProfile, type ProfileName, type ServerProfile } from '../server-profile.js';
import { apiRoot, defaultTiming, type Timing } from '../wire/http.js';
import { TinkerClient } from '../wire/tinker-client.js';
import { isKind, TinkerError } from '../wire/tinker-failure.js';
import { keepingCases } from './keeping-cases.js';
import { numberCases } from './number-cases.js';
import {
  type BenchOptions,
  Differs,
  NoModel,
  NotOffered,
  RANK,
  RefereeBench,
  type RefereeCase,
} from './referee-bench.js';
import { requestCases } from './request-cases.js';
import { measureSpeed, type ServerSpeed } from './speed.js';

export const refereeCases: readonly RefereeCase[] = [...numberCases, ...keepingCases, ...requestCases];

/**
 * `known difference`: the case does not pass, and the server's profile says so. `not offered`: the server lacks the
 * request or the number that the case needs. `not run`: the time was used up,
 * or the case needs `hostile`.
 */
export type RefereeOutcome = 'pass' | 'differs' | 'refused' | 'not offered' | 'known difference' | 'not run';

export interface RefereeFinding extends Pick<RefereeCase, 'name' | 'area' | 'about'> {
  readonly core: boolean;
  readonly outcome: RefereeOutcome;
  /** The compared numbers, the difference, or the server's error. */
  readonly detail: string;
  readonly seconds: number;
}

export interface RefereeReport {
  readonly url: string;
  readonly model: string;
  readonly profile: string;
  readonly seconds: number;
  readonly findings: readonly RefereeFinding[];
  /** If it was asked for. */
  readonly speed?: ServerSpeed;
}

export interface RefereeRequest extends Pick<BenchOptions, 'reference'> {
  readonly url: string;
  readonly apiKey: Secret | undefined;
  /** `auto` measures the behaviour first. */
  readonly profile: 'auto' | ProfileName;
  /** The base model of the adapters. Default: the first one that the server lists. */
  readonly model?: string | undefined;
  /** Names of cases. Default: all. */
  readonly cases?: readonly string[] | undefined;
  /** Also runs the cases that can damage a server on which others train. */
  readonly hostile?: boolean | undefined;
  /** Also measures the speed, before the cases. */
  readonly speed?: boolean | undefined;
  /** Cases that have not begun after this time are not run. */
  readonly budgetSeconds: number;
  /** The largest difference of two log-probs that should be equal. Norms may differ by ten times this fraction. */
  readonly tolerance: number;
  readonly timing?: Partial<Timing> & { readonly patienceMs?: number };
  readonly signal?: AbortSignal | undefined;
  readonly onFinding?: (finding: RefereeFinding) => void;
}

const PATIENCE_MS = 10_000;
const TIMING: Timing = { ...defaultTiming, request: 45, total: 90, retries: 3 };

/** @throws BackendError if the server cannot be reached, lists no model, or there is no case of a name */
export async function referee(request: RefereeRequest): Promise<RefereeReport> {
  const { url, apiKey, budgetSeconds, tolerance, hostile = false, reference, signal, onFinding } = request;
  const { patienceMs = PATIENCE_MS, ...timing } = request.timing ?? {};
  const chosen = chosenCases(request.cases);
  const client = new TinkerClient({ url, apiKey, timing: { ...TIMING, ...timing } });
  const stop = () => client.close();
  signal?.addEventListener('abort', stop, { once: true });
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1000;
  try {
    const { names, isDrmas } = await client.baseModels();
    const baseModel = request.model ?? names[0];
    if (baseModel === undefined) throw new BackendError('the server lists no models; name one with --model');
    const profile = await profileOf(client, baseModel, isDrmas, request.profile);
    const raw = rawOf(url, apiKey);
    const findings: RefereeFinding[] = [];
    const newBench = () => new RefereeBench({ client, baseModel, profile, tolerance, patienceMs, reference, raw });
    // Before the cases: some servers keep the damage of a hostile one.
    const speed = request.speed === true ? await speedOf(newBench()) : undefined;
    for (const one of chosen) {
      signal?.throwIfAborted();
      const begun = seconds();
      const bench = newBench();
      const not =
        begun >= budgetSeconds ? `after ${budgetSeconds} s` : one.hostile && !hostile ? '--hostile runs it' : '';
      const [outcome, detail] = not !== '' ? (['not run', not] as const) : await tried(one, bench);
      const { name, area, about, core = false } = one;
      const finding = { name, area, core, about, outcome, detail, seconds: seconds() - begun };
      findings.push(finding);
      onFinding?.(finding);
    }
    return { url, model: baseModel, profile: profile.name, seconds: seconds(), findings, ...(speed && { speed }) };
  } finally {
    signal?.removeEventListener('abort', stop);
    client.close();
  }
}

function chosenCases(names: readonly string[] = []): readonly RefereeCase[] {
  const unknown = names.find((name) => refereeCases.every((one) => one.name !== name));
  if (unknown !== undefined)
    throw new BackendError(
      `there is no case '${unknown}'; the cases are ${refereeCases.map(({ name }) => name).join(', ')}`,
    );
  return names.length === 0 ? refereeCases : refereeCases.filter(({ name }) => names.includes(name));
}

async function profileOf(
  client: TinkerClient,
  baseModel: string,
  isDrmas: boolean,
  profile: RefereeRequest['profile'],
): Promise<ServerProfile> {
  if (profile !== 'auto') return knownProfile(profile);
  if (isDrmas) return knownProfile('drmas');
  return probeServer({ client, baseModel, rank: RANK }).catch((error: unknown) => {
    if (!isKind(error, 'refused', 'lost', 'failed', 'malformed', 'late')) throw error;
    return { ...knownProfile('drmas'), extended: false, name: 'unknown' }; // no difference is expected
  });
}

const rawOf =
  (url: string, secret: Secret | undefined): BenchOptions['raw'] =>
  async (path, body, signal) => {
    const headers = { 'content-type': 'application/json', ...(secret && { 'x-api-key': secret.reveal() }) };
    const limits = { mostBytes: 1e6, timeoutMs: PATIENCE_MS, secret, signal: signal ?? new AbortController().signal };
    try {
      return (await webRequest(`${apiRoot(url)}/${path}`, { method: 'POST', headers, body, ...limits })).status;
    } catch (error) {
      throw new TinkerError('unreachable', `${path}: no answer (${messageOf(error)})`);
    }
  };

async function speedOf(bench: RefereeBench): Promise<ServerSpeed> {
  try {
    return await measureSpeed(bench);
  } finally {
    await bench.close();
  }
}

/** Runs a case and gives its models back. */
async function tried(one: RefereeCase, bench: RefereeBench): Promise<readonly [RefereeOutcome, string]> {
  try {
    await one.run(bench);
    return ['pass', bench.numbers.join('; ')];
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    // Our own server must obey all rules. Its profile lacks only abilities that the client does not use.
    const isKnowable = !bench.profile.extended && !(error instanceof NoModel);
    const known = isKnowable ? one.known?.(bench.profile) : undefined;
    if (known === undefined) return [outcomeOf(error), error.message];
    return ['known difference', `${known} (${error.message})`];
  } finally {
    await bench.close();
  }
}

function outcomeOf(error: BackendError): RefereeOutcome {
  if (error instanceof NotOffered) return 'not offered';
  if (error instanceof NoModel) return 'refused';
  if (error instanceof Differs || !(error instanceof TinkerError)) return 'differs';
  // A missing route. A missing model is `lost`.
  if (error.status === 405 || (error.status === 404 && isKind(error, 'refused'))) return 'not offered';
  return isKind(error, 'refused', 'lost') ? 'refused' : 'differs';
}
