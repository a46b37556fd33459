/** The trained agents of a run, or an exported one, opened on one engine so that all of them answer together. */
import { basename, join } from 'node:path';
import { EmbeddedBackend } from '../backends/embedded/embedded-backend.js';
import { holdsAdapter, locateBase } from '../backends/embedded/state-files.js';
import { withLocalModels } from '../backends/hub/local-models.js';
import { modelDirectory } from '../backends/hub/model-directory.js';
import type { Voice } from '../backends/voice.js';
import { PRECISIONS, type Precision } from '../contract/architecture.js';
import type { ModelHandle } from '../contract/handles.js';
import type { BaseSpec, OwnWeights } from '../contract/weights-spec.js';
import { RunError } from '../core/errors.js';
import type { Files } from '../core/files.js';
import type { Host } from '../core/host.js';
import { isObject } from '../core/validation/objects.js';
import { readAgentProfile } from '../model/agent-profile.js';
import { readTemplate } from '../model/formats/tokenizer-files.js';
import { suggestion } from '../recipe/explain.js';
import { agentsOfRun, checkpointOf } from '../run/request.js';
import { isNoOptimizer, requireWhole } from '../store/files/digests.js';
import { RunDirectory } from '../store/run-directory.js';
import { RECIPE } from '../store/run-files.js';
import { commitsOf } from '../training/checkpoint.js';

export interface VoicesRequest {
  /** The directory of a run or of a model, or a model's name on a hub. */
  readonly from: string;
  /** The checkpoint of a run, `step-000004` or `4`; by default the last. */
  readonly checkpoint?: string | undefined;
  /** The only agent that is wanted; by default all that were trained. */
  readonly agent?: string | undefined;
  /** Open what the agent's weights were before training too. */
  readonly untrained?: boolean | undefined;
  /** Load the recipe of a run of an earlier version although its code has changed. */
  readonly acceptChanges?: boolean | undefined;
}

/** Agents that can be spoken to. Whoever opened them disposes of them. */
export interface OpenVoices {
  /** The agents by name. */
  readonly voices: ReadonlyMap<string, Voice>;
  /** The same agents with the weights from before training, where they were asked for. */
  readonly untrained: ReadonlyMap<string, Voice>;
  /** Where the weights come from, for people. */
  readonly origin: string;
  dispose(): Promise<void>;
}

/** An agent's place on disk. */
interface Place {
  readonly directory: string;
  readonly voice: Pick<Voice, 'agent'> & { readonly name: string };
  /** The precision that a run trained it in. */
  readonly precision?: Precision | undefined;
  /** The model's settings in the recipe with directories for names, where a run trained it and they are asked for. */
  readonly model?: unknown;
}

/**
 * Opens agents. Nothing of the recipe's code runs, but for runs of versions that did not record their agents.
 * @throws RunError when there is no such run, checkpoint or agent, or a server keeps its weights; CheckpointError and
 *   HubError when the weights cannot be read
 */
export async function openVoices(request: VoicesRequest, host: Host): Promise<OpenVoices> {
  const { files, threads, notify } = host;
  const isRun = await files.exists(join(request.from, RECIPE));
  const { places, origin } = isRun ? await placesOfRun(request, host) : await placesOfModel(request, host);
  const backend = await EmbeddedBackend.start({ threads, files, onProgress: notify });
  try {
    const opened = new Map<string, Promise<ModelHandle>>();
    /** Agents that share a policy share its weights. */
    const open = (key: string, spec: () => Promise<OwnWeights>) => {
      const handle = opened.get(key) ?? spec().then((weights) => publish(backend, weights, key));
      opened.set(key, handle);
      return handle;
    };
    const voices = new Map<string, Voice>();
    const untrained = new Map<string, Voice>();
    for (const { directory, model, precision, voice } of places) {
      const { name, agent } = voice;
      const trained = async () => ({ ...(await trainedWeights(host, directory)), precision });
      voices.set(name, { agent, model: await open(directory, trained) });
      if (request.untrained !== true) continue;
      const first = { ...(await untrainedWeights(host, directory, model)), precision };
      untrained.set(name, { agent, model: await open(JSON.stringify(first), async () => first) });
    }
    for (const handle of opened.values()) for (const warning of (await handle).warnings) notify(warning);
    return { voices, untrained, origin, dispose: () => backend.dispose() };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

async function publish(backend: EmbeddedBackend, weights: OwnWeights, name: string): Promise<ModelHandle> {
  const handle = await backend.open(weights, 'frozen', name);
  await handle.publish();
  return handle;
}

async function placesOfRun(
  { from, agent, acceptChanges, ...request }: VoicesRequest,
  { files, signal, notify }: Host,
): Promise<{ places: Place[]; origin: string }> {
  const run = await RunDirectory.open(from);
  const { backend, assign, policies } = run.record.resolved;
  const trained = Object.entries(isObject(assign) ? assign : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  const names = trained.map(([name]) => name);
  if (agent !== undefined && !names.includes(agent))
    throw new RunError(`${from} has no trained agent '${agent}'${suggestion(agent, names)}`);
  const checkpoint = await checkpointOf(run, request.checkpoint, 'answer from');
  const { directory } = checkpoint;
  const wanted = trained.filter(([name]) => agent === undefined || name === agent);
  for (const [name, policy] of wanted) {
    const settings = isObject(policies) ? policies[policy] : undefined;
    const holder = (isObject(settings) ? settings.backend : undefined) ?? backend;
    if (isObject(holder) && holder.type !== 'embedded')
      throw new RunError(
        `a server keeps the weights of ${name} in ${from}: drmas export --format peft brings an agent's adapter here, which a server of such models plays; --agent names one whose weights are here`,
      );
  }
  const folders = wanted.map(([, policy]) => `${policy}/`);
  await requireWhole(
    files,
    directory,
    (file) => isNoOptimizer(file) && folders.some((folder) => file.startsWith(folder)),
  );
  const agents = await agentsOfRun(run, acceptChanges);
  const options = { commits: await commitsOf(files, checkpoint), signal, onProgress: notify };
  const { settings: models } = await withLocalModels(request.untrained === true ? policies : {}, options);
  const places = wanted.map(([name, policy]) => {
    const settings = isObject(models) ? models[policy] : undefined;
    return {
      directory: join(directory, policy),
      precision: precisionOf(isObject(policies) ? policies[policy] : undefined),
      voice: { name, agent: agents[name] },
      model: isObject(settings) ? settings.model : undefined,
    };
  });
  return { places, origin: `${from}, ${basename(directory)}` };
}

/** The precision in a policy's recorded settings; undefined in those of runs that had none. */
const precisionOf = (settings: unknown): Precision | undefined =>
  PRECISIONS.find((precision) => isObject(settings) && settings.precision === precision);

/** An exported agent, or any other model, which then answers without a system prompt under its directory's name. */
async function placesOfModel(
  { from, checkpoint, agent: wanted }: VoicesRequest,
  { files, notify, signal }: Host,
): Promise<{ places: Place[]; origin: string }> {
  const directory = await modelDirectory(from, { signal, onProgress: notify });
  const isModel = (await holdsAdapter(files, directory)) || (await files.exists(join(directory, 'config.json')));
  if (!isModel) throw new RunError(`${from} is neither a run nor a model: it has no recipe.json and no config.json`);
  if (checkpoint !== undefined) throw new RunError(`${from} is no run, so it has no checkpoint '${checkpoint}'`);
  const agent = await readAgentProfile(files, directory);
  const name = agent?.name ?? wanted ?? basename(from);
  if (wanted !== undefined && name !== wanted) throw new RunError(`${from} is the agent '${name}', not '${wanted}'`);
  if (agent === undefined) notify(`${from} says nothing of an agent: no system prompt, temperature 1`);
  return { places: [{ directory, voice: { name, agent } }], origin: from };
}

async function trainedWeights({ files }: Host, directory: string): Promise<OwnWeights> {
  if (!(await holdsAdapter(files, directory))) return { type: 'directory', directory };
  return { type: 'saved-adapter', base: await baseWeights(files, directory), directory };
}

/** The base of an adapter, with the chat template that lies beside the adapter. */
async function baseWeights(files: Files, directory: string): Promise<BaseSpec> {
  const chatTemplate = await readTemplate(files, directory);
  return { type: 'directory', directory: await locateBase(files, directory), chatTemplate };
}

/** @throws RunError where the weights before training were random */
async function untrainedWeights({ files }: Host, directory: string, model: unknown): Promise<OwnWeights> {
  if (await holdsAdapter(files, directory)) return baseWeights(files, directory);
  if (isObject(model) && model.type === 'checkpoint' && typeof model.path === 'string') {
    const chatTemplate = typeof model.chatTemplate === 'string' ? model.chatTemplate : undefined;
    return { type: 'directory', directory: model.path, chatTemplate };
  }
  throw new RunError(`the weights that ${directory} began with are kept nowhere: they were random, or it is no run`);
}
