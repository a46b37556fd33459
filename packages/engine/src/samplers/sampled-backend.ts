/** A backend whose policies are sampled by a separate engine and trained by another backend. */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import pLimit from 'p-limit';
import type { BackendDeclaration } from '../backends/backend-declaration.js';
import type { Backend } from '../contract/backend.js';
import type { Capabilities, Hardware } from '../contract/capabilities.js';
import type { Handles, PolicyHandle, Role } from '../contract/handles.js';
import type { OwnWeights, WeightsSpec } from '../contract/weights-spec.js';
import { BackendError } from '../errors.js';
import type { Host } from '../host.js';
import { Secret } from '../host.js';
import { EngineHttp } from './engine-http.js';
import { type EngineConnection, SampledPolicy, trainedOf } from './sampled-policy.js';
import { SAMPLER_KEY, type SamplerSpec } from './sampler-spec.js';
import type { PushedWeights, SamplingEngine } from './sampling-engine.js';
import { SglangEngine } from './sglang-engine.js';
import { VllmEngine } from './vllm-engine.js';

const engines: { readonly [Type in SamplerSpec['type']]: (http: EngineHttp) => SamplingEngine } = {
  vllm: (http) => new VllmEngine(http),
  sglang: (http) => new SglangEngine(http),
};

/** The weights that each type of engine can load while it runs: adapters or whole models. */
const POLICIES: { readonly [Type in SamplerSpec['type']]: readonly WeightsSpec['type'][] } = {
  vllm: ['adapter', 'saved-adapter', 'like'],
  sglang: ['adapter', 'saved-adapter', 'directory', 'like'],
};

/**
 * The capabilities of a backend whose policies an engine samples. The engine gives the log-prob of the sampled token at
 * temperature 1. It samples one version of a whole model at a time.
 * @param weights The first weights of the policies, if they are known
 */
export function sampledCapabilities(
  can: Capabilities,
  { type }: Pick<SamplerSpec, 'type'>,
  weights: readonly WeightsSpec[] = [],
): Capabilities {
  const policy = can.roles.policy.filter((each) => POLICIES[type].includes(each));
  return {
    ...can,
    roles: { ...can.roles, policy },
    bases: can.bases.filter((base) => base === 'directory'),
    distribution: 'sampled',
    agentAdapters: false,
    keepsVersions: weights.every((each) => each.type !== 'directory'),
  };
}

export interface SampledOptions {
  readonly host: Pick<Host, 'notify' | 'warn'>;
  /** The declaration of the backend that trains. */
  readonly row: Pick<BackendDeclaration, 'prepareExport'>;
  /** The recipe's key for the server that trains. */
  readonly trainerKey?: Secret | undefined;
  /** First weights of the policies that will be opened. */
  readonly weights: readonly WeightsSpec[];
  readonly environment?: NodeJS.ProcessEnv;
  /** Milliseconds before the first retry of a request. */
  readonly backOffMs?: number;
}

export class SampledBackend implements Backend {
  readonly capabilities: Capabilities;
  readonly #trainer: Backend;
  readonly #spec: SamplerSpec;
  readonly #engine: SamplingEngine;
  readonly #options: SampledOptions;
  #folder: Promise<string> | undefined;
  readonly #closing = new AbortController();
  readonly #limit: EngineConnection['limit'];
  /** The first weights of each policy. A model of type `like` has its policy's. */
  readonly #origins = new WeakMap<PolicyHandle, WeightsSpec>();
  readonly #policies: SampledPolicy[] = [];
  #wholePolicy: string | undefined;
  #disposed: Promise<void> | undefined;

  private constructor(trainer: Backend, spec: SamplerSpec, engine: SamplingEngine, options: SampledOptions) {
    this.#trainer = trainer;
    this.#spec = spec;
    this.#engine = engine;
    this.#options = options;
    this.#limit = pLimit(spec.concurrency);
    this.capabilities = sampledCapabilities(trainer.capabilities, spec, options.weights);
  }

  /**
   * Connects. This backend takes over the trainer and disposes of it at the end.
   * @throws BackendError when the engine cannot be reached, or serves another model than the policies begin with
   */
  static async connect(trainer: Backend, spec: SamplerSpec, options: SampledOptions): Promise<SampledBackend> {
    const { environment = process.env, backOffMs } = options;
    const key = environment[SAMPLER_KEY];
    const { url } = spec;
    const apiKey = spec.apiKey ?? (key ? new Secret(key) : undefined);
    const engine = engines[spec.type](new EngineHttp({ url, apiKey }, backOffMs));
    const served = await engine.served();
    for (const weights of options.weights) requireServed(spec, served, weights);
    return new SampledBackend(trainer, spec, engine, options);
  }

  get hardware(): Hardware {
    const { type, url } = this.#spec;
    const { server, ...hardware } = this.#trainer.hardware;
    return { ...hardware, server: { ...server, sampler: { type, url } } };
  }

  async open<R extends Role>(weights: WeightsSpec, role: R, name: string): Promise<Handles[R]> {
    if (this.#disposed !== undefined) throw new BackendError('the backend was disposed of');
    const unwrapped = weights.type === 'like' ? { ...weights, policy: trainedOf(weights.policy) } : weights;
    // Models that are not trained are sampled by the trainer.
    const handles: { readonly [Name in Role]: () => Promise<Handles[Name]> } = {
      frozen: () => this.#trainer.open(unwrapped, 'frozen', name),
      policy: async () => this.#sampled(await this.#trainer.open(unwrapped, 'policy', name), unwrapped, name),
      critic: () => this.#trainer.open(unwrapped, 'critic', name),
    };
    return handles[role]();
  }

  #sampled(policy: PolicyHandle, opened: WeightsSpec, name: string): SampledPolicy {
    const { type, url } = this.#spec;
    const weights = opened.type === 'like' ? (this.#origins.get(opened.policy) ?? opened) : opened;
    this.#origins.set(policy, weights);
    const kind = weights.type === 'adapter' || weights.type === 'saved-adapter' ? 'adapter' : 'whole';
    if (!this.#engine.kinds.includes(kind))
      throw new BackendError(`policy '${name}': ${type} takes adapters while it runs, and this is a whole model`);
    if (kind === 'whole') {
      if (this.#wholePolicy !== undefined)
        throw new BackendError(`policy '${name}': the engine at ${url} plays the whole model '${this.#wholePolicy}'`);
      this.#wholePolicy = name;
    }
    const sampled = new SampledPolicy(policy, {
      engine: this.#engine,
      limit: this.#limit,
      closed: this.#closing.signal,
      warn: (message) => this.#options.host.warn('sampler.recovered', message),
      write: (handle, version) => this.#write(handle, version, kind, weights),
      remove: ({ directory }) => rm(directory, { recursive: true, force: true }),
    });
    this.#policies.push(sampled);
    return sampled;
  }

  async #write(
    policy: PolicyHandle,
    version: number,
    kind: PushedWeights['kind'],
    weights: WeightsSpec,
  ): Promise<PushedWeights> {
    const directory = await this.#directory(`${policy.name.replaceAll(/[^\w-]/g, '-')}-${version}-`);
    const name = `drmas-${basename(directory)}`;
    if (this.#trainer.capabilities.weights === 'here') await policy.save(directory);
    else await this.#fetch(policy, weights, directory);
    return { name, directory, kind };
  }

  /** Downloads the weights first if the trainer keeps them on a server. */
  async #fetch(policy: PolicyHandle, weights: WeightsSpec, directory: string): Promise<void> {
    const { row, trainerKey, environment = process.env, host } = this.#options;
    if (weights.type !== 'adapter') throw new BackendError(`policy '${policy.name}': expected an adapter`);
    const { base, adapter } = weights;
    if (base.type !== 'directory') throw new BackendError(`policy '${policy.name}': expected a base in a directory`);
    const from = await this.#directory('saved-');
    try {
      await policy.save(from);
      const { directory: path, chatTemplate } = base;
      const settings = { model: { type: 'lora', base: { path, chatTemplate }, targets: adapter.targets } };
      const request = { policy: policy.name, from, format: 'peft', settings, environment } as const;
      const apiKey = async () => trainerKey;
      const requireServer = async () => {}; // the weights are from this run, not from a stored one
      const prepared = await row.prepareExport({ ...request, apiKey, requireServer, tell: (why) => host.notify(why) });
      await prepared.write(directory);
    } finally {
      await rm(from, { recursive: true, force: true });
    }
  }

  async #directory(prefix: string): Promise<string> {
    this.#folder ??= this.#temporary(this.#spec.folder ?? tmpdir(), 'drmas-weights-');
    return this.#temporary(await this.#folder, prefix);
  }

  /** A new directory. In the recipe's folder, the engine may run as another user, so all users may read it. */
  async #temporary(folder: string, prefix: string): Promise<string> {
    await mkdir(folder, { recursive: true });
    const path = await mkdtemp(join(folder, prefix));
    if (this.#spec.folder !== undefined) await chmod(path, 0o755);
    return path;
  }

  dispose(): Promise<void> {
    this.#disposed ??= this.#dispose();
    return this.#disposed;
  }

  async #dispose(): Promise<void> {
    this.#closing.abort(new BackendError('the backend was disposed of'));
    await this.#trainer.dispose();
    await Promise.all(this.#policies.map((policy) => policy.release()));
    if (this.#folder !== undefined) await rm(await this.#folder, { recursive: true, force: true });
  }
}

/** @throws BackendError when the engine serves another model than the model of these first weights */
function requireServed(spec: SamplerSpec, served: readonly string[], weights: WeightsSpec): void {
  const base = baseOf(weights);
  if (base === undefined) return;
  const names = spec.model === undefined ? [base.name ?? base.directory, base.directory] : [spec.model];
  if (names.some((name) => served.includes(name))) return;
  throw new BackendError(
    `the engine at ${spec.url} serves ${served.join(', ')}, not ${names[0]}; \`model\` of the sampler says its name there`,
  );
}

function baseOf(weights: WeightsSpec): Extract<OwnWeights, { type: 'directory' }> | undefined {
  if (weights.type === 'directory') return weights;
  if (weights.type !== 'adapter' && weights.type !== 'saved-adapter') return undefined;
  return weights.base.type === 'directory' ? weights.base : undefined;
}
