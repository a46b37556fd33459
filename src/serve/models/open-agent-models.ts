/** The trained agents of a run, or an exported one, opened on one engine so that all of them answer together. */

import { basename, dirname, join } from 'node:path';
import { type ModelHandle, type OwnWeights, PRECISIONS, type Precision, precisionsOf } from '@drmas/engine/contract';
import { isNoOptimizer, SEAL } from '@drmas/engine/disk';
import { type EmbeddedBackend, holdsAdapter } from '@drmas/engine/embedded';
import type { AgentModel } from '@drmas/engine/endpoints';
import { CheckpointError, HubError, isObject, RunError, suggestion } from '@drmas/engine/errors';
import { holdsModel, modelDirectory, withLocalModels } from '@drmas/engine/formats';
import { byteText, type Host } from '@drmas/engine/host';
import { kindOfType, readAgentProfile } from '@drmas/engine/model';
import { startEngine } from '@drmas/engine/node';
import { commitsOf, warmStartOf } from '../../method/checkpoints.js';

import { agentModelPath, type Checkpoint, missingRun, RECIPE, RunDirectory, runsBeside } from '../../method/store.js';
import { agentsOfRun, whileHeld } from '../../runs/index.js';
import { bytesOf, type FreshPolicy, storedWeights, weightsBefore } from './stored-weights.js';

export interface AgentModelsRequest {
  /** The directory of a run or of a model, or a model's name on a hub. */
  readonly from: string;
  /** The checkpoint of a run, `step-000004`, `4` or `best`; by default the last. */
  readonly checkpoint?: string | undefined;
  /** The only agent that is wanted; by default all that were trained. */
  readonly agent?: string | undefined;
  /** Also open the agent's weights from before reinforcement, if they are kept. */
  readonly untrained?: boolean | undefined;
  /** The most bytes of weights that may be opened; without it any number. */
  readonly mostBytes?: number | undefined;
  /** Take models of a hub from its cache alone. */
  readonly offline?: boolean | undefined;
  /** Refuse a checkpoint without digests: another program may still be writing it. */
  readonly sealed?: boolean | undefined;
  /** Load the recipe of a run of an earlier version although its code has changed. */
  readonly acceptChanges?: boolean | undefined;
}

/** Agents that can answer. The code that opens them disposes of them. */
export interface OpenAgentModels {
  readonly agentModels: ReadonlyMap<string, AgentModel>;
  /** The same agents with the weights from before reinforcement, if requested. */
  readonly untrained: ReadonlyMap<string, UntrainedAgentModel>;
  readonly bytes: number;
  /** The source of the weights, as a text for people. */
  readonly origin: string;
  dispose(): Promise<void>;
}

/**
 * An agent before reinforcement: `warm start`, `base model`, `random weights`, `step 20`. Without a model, the reason
 * why there is none.
 */
export interface UntrainedAgentModel {
  readonly what: string;
  readonly agentModel: AgentModel | undefined;
}

interface AgentPlace {
  readonly directory: string;
  readonly agentModel: Pick<AgentModel, 'agent'> & { readonly name: string };
  readonly precision?: Precision | undefined;
  /** The run's record of its first weights, if requested. */
  readonly begun?: FreshPolicy | undefined;
}

interface AgentPlaces {
  readonly places: readonly AgentPlace[];
  readonly origin: string;
}

/**
 * Opens agents. It runs code of the recipe only for runs of old versions that did not record their agents.
 * @throws RunError if there is no such run, checkpoint or agent, or if a server keeps its weights; CheckpointError and
 *   HubError if the weights cannot be read
 */
export async function openAgentModels(request: AgentModelsRequest, host: Host): Promise<OpenAgentModels> {
  const { from, checkpoint } = request;
  if (!(await host.files.exists(join(from, RECIPE))))
    return openPlaces(await placesOfModel(request, host), request, host);
  const run = await RunDirectory.open(from);
  return whileHeld(run, checkpoint, 'answer from', async (held) =>
    openPlaces(await placesOfRun(run, held, request, host), request, host),
  );
}

async function openPlaces(
  { places, origin }: AgentPlaces,
  request: AgentModelsRequest,
  host: Host,
): Promise<OpenAgentModels> {
  const { files, device, threads, notify } = host;
  const speakers: AgentToOpen[] = [];
  for (const place of places) speakers.push(await speakerAt(place, request, host));
  const specs = new Map(
    speakers.flatMap(({ trained, before }) =>
      [trained, before?.weights].flatMap((weights) => (weights ? [[JSON.stringify(weights), weights] as const] : [])),
    ),
  );
  let bytes = 0;
  for (const weights of specs.values()) bytes += await bytesOf(files, weights);
  const { mostBytes = Number.POSITIVE_INFINITY } = request;
  if (bytes > mostBytes)
    throw new RunError(`the weights take ${byteText(bytes)}, but the limit is ${byteText(mostBytes)}`);
  const backend = await startEngine({
    device,
    threads,
    files,
    onProgress: notify,
    precisions: precisionsOf([...specs.values()]),
  });
  try {
    /** Agents that share a policy share its weights. */
    const opened = new Map<string, ModelHandle>();
    for (const [key, weights] of specs) opened.set(key, await publish(backend, weights));
    const agentModelOf = ({ agent }: AgentToOpen, weights: OwnWeights | undefined): AgentModel | undefined => {
      const model = opened.get(JSON.stringify(weights));
      return model && { agent, model };
    };
    const agentModels = new Map(
      speakers.flatMap((speaker) => {
        const agentModel = agentModelOf(speaker, speaker.trained);
        return agentModel === undefined ? [] : [[speaker.name, agentModel] as const];
      }),
    );
    const untrained = new Map(
      speakers.flatMap((speaker) => {
        const { name, before } = speaker;
        if (before === undefined) return [];
        return [[name, { what: before.what, agentModel: agentModelOf(speaker, before.weights) }] as const];
      }),
    );
    for (const handle of opened.values()) for (const warning of handle.warnings) notify(warning);
    return { agentModels, untrained, bytes, origin, dispose: () => backend.dispose() };
  } catch (error) {
    await backend.dispose();
    throw error;
  }
}

interface AgentToOpen {
  readonly name: string;
  readonly agent: AgentModel['agent'];
  readonly trained: OwnWeights;
  readonly before: { readonly what: string; readonly weights: OwnWeights | undefined } | undefined;
}

async function speakerAt(place: AgentPlace, { untrained }: AgentModelsRequest, { files }: Host): Promise<AgentToOpen> {
  const { directory, precision, begun, agentModel } = place;
  const trained = { ...(await storedWeights(files, directory)), precision };
  if (untrained !== true) return { ...agentModel, trained, before: undefined };
  const before = await weightsBefore(files, directory, begun).then(
    ({ what, weights }) => ({ what, weights: { ...weights, precision } }),
    (error: unknown) => {
      if (!(error instanceof RunError)) throw error;
      return { what: error.message, weights: undefined };
    },
  );
  return { ...agentModel, trained, before };
}

async function publish(backend: EmbeddedBackend, weights: OwnWeights): Promise<ModelHandle> {
  const name = 'directory' in weights ? weights.directory : weights.type;
  const handle = await backend.open(weights, 'frozen', name);
  await handle.publish();
  return handle;
}

export interface TrainedAgent {
  readonly name: string;
  readonly policy: string;
  /** Whether its weights lie in the run; a server keeps them otherwise. */
  readonly here: boolean;
}

/** The agents of a run that train, except those whose models generate no text. */
export function agentsOfTraining({ record }: RunDirectory): TrainedAgent[] {
  const { backend, assign, policies } = record.resolved;
  return Object.entries(isObject(assign) ? assign : {}).flatMap(([name, policy]) => {
    if (typeof policy !== 'string') return [];
    const settings = isObject(policies) ? policies[policy] : undefined;
    const { backend: holder = backend, model } = isObject(settings) ? settings : {};
    if (isObject(model) && kindOfType(model.type) !== undefined) return [];
    return [{ name, policy, here: !isObject(holder) || holder.type === 'embedded' }];
  });
}

/**
 * The agents of a run that a request wants.
 * @throws RunError if there is no such agent, or if a server keeps the weights of one
 */
export function wantedAgents(run: RunDirectory, agent: string | undefined): TrainedAgent[] {
  const trained = agentsOfTraining(run);
  const names = trained.map(({ name }) => name);
  if (agent !== undefined && !names.includes(agent))
    throw new RunError(`${run.path} has no trained agent '${agent}'${suggestion(agent, names)}`);
  const wanted = trained.filter(({ name }) => agent === undefined || name === agent);
  for (const { name, here } of wanted)
    if (!here)
      throw new RunError(
        `a server keeps the weights of ${name} in ${run.path}: drmas export --format peft brings an agent's adapter here, which a server of such models plays; --agent names one whose weights are here`,
      );
  return wanted;
}

async function placesOfRun(
  run: RunDirectory,
  checkpoint: Checkpoint,
  { from, agent, acceptChanges, ...request }: AgentModelsRequest,
  { files, signal, notify }: Host,
): Promise<AgentPlaces> {
  const { policies, warmStart, seed } = run.record.resolved;
  const { directory } = checkpoint;
  const wanted = wantedAgents(run, agent);
  const folders = wanted.map(({ policy }) => `${policy}/`);
  const unchecked = await run.requireWhole(
    checkpoint,
    (file) => isNoOptimizer(file) && folders.some((folder) => file.startsWith(folder)),
  );
  if (unchecked !== undefined) {
    if (request.sealed === true)
      throw new CheckpointError(`${join(directory, SEAL)} is missing: the checkpoint is not whole yet`);
    notify(unchecked);
  }
  const agents = await agentsOfRun(run, acceptChanges);
  const settingsOf = (policy: string) => (isObject(policies) ? policies[policy] : undefined);
  const places = wanted.map(({ name, policy }) => ({
    directory: join(directory, agentModelPath(policies, policy, name)),
    precision: precisionOf(settingsOf(policy)),
    agentModel: { name, agent: agents[name] },
  }));
  const trainedPlaces = { places, origin: `${from}, ${basename(directory)}` };
  if (request.untrained !== true) return trainedPlaces;
  const [oldest] = await run.checkpoints();
  const shared = {
    warmStart: await warmStartOf(files, checkpoint),
    seed: warmStart === undefined && typeof seed === 'number' ? seed : undefined,
    oldest: oldest !== undefined && oldest.step < checkpoint.step ? oldest : undefined,
  };
  const environment = request.offline === true ? { ...process.env, HF_HUB_OFFLINE: '1' } : process.env;
  const options = { commits: await commitsOf(files, checkpoint), signal, onProgress: notify, environment };
  const begun = wanted.map(async ({ policy, name }): Promise<FreshPolicy> => {
    const settings = settingsOf(policy);
    const model = isObject(settings) ? settings.model : undefined;
    const named = isObject(model) && model.type === 'checkpoint'; // an adapter's files name its base
    return {
      path: agentModelPath(policies, policy, name),
      ...shared,
      model: named ? (await withLocalModels(model, options)).settings : model,
    };
  });
  const all = await Promise.all(begun);
  return { ...trainedPlaces, places: places.map((place, i) => ({ ...place, begun: all[i] })) };
}

/** The precision in a policy's recorded settings; undefined in runs that recorded none. */
const precisionOf = (settings: unknown): Precision | undefined =>
  PRECISIONS.find((precision) => isObject(settings) && settings.precision === precision);

/**
 * A name such as `runs/fisrt` also reads as a model of a hub. Beside runs of this disk it is a slip of the pen, and no
 * hub is asked.
 * @throws RunError with the runs that are there
 */
async function refuseMissingRun(files: Host['files'], from: string): Promise<void> {
  const folder = dirname(from);
  const isRunPath = from.split('/')[0] === 'runs'; // the folder of new runs
  if (folder === '.' || (await files.exists(from)) || !(isRunPath || (await files.exists(folder)))) return;
  if (isRunPath || (await runsBeside(files, from)).length > 0) throw await missingRun(files, from);
}

/** An exported agent, or any other model, which then answers without a system prompt under its directory's name. */
async function placesOfModel(
  { from, checkpoint, agent: wanted }: AgentModelsRequest,
  { files, notify, signal }: Host,
): Promise<AgentPlaces> {
  await refuseMissingRun(files, from);
  const directory = await modelDirectory(from, { signal, onProgress: notify }).catch((error: unknown) => {
    if (!(error instanceof HubError)) throw error;
    throw new HubError(error.reason, `there is no directory ${from}, and as a model of a hub: ${error.message}`);
  });
  const isModel = (await holdsAdapter(files, directory)) || (await holdsModel(files, directory));
  if (!isModel)
    throw new RunError(
      `${from} is neither a run nor a model: it has no recipe.json and no config.json, and is no GGUF file`,
    );
  if (checkpoint !== undefined) throw new RunError(`${from} is not a run, so it has no checkpoint '${checkpoint}'`);
  const agent = await readAgentProfile(files, directory);
  const name = agent?.name ?? wanted ?? basename(from);
  if (wanted !== undefined && name !== wanted) throw new RunError(`${from} is the agent '${name}', not '${wanted}'`);
  if (agent === undefined) notify(`${from} describes no agent: using no system prompt and temperature 1`);
  return { places: [{ directory, agentModel: { name, agent } }], origin: from };
}
