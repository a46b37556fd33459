/**
 * A policy with an adapter for each agent, on disk: its directory is the trunk, a whole model in the Hugging Face layout,
 * and `agents/<agent>` in it is the agent's adapter in PEFT's layout, whose base is the trunk. One file beside the trunk
 * holds the optimiser's state of all of them.
 */
import type { Files } from '../../base/host.js';
import type { AgentAdapters } from '../contract/weights-spec.js';
import { adapterParameterCount } from '../model/decoder/weights/adapter-tensors.js';
import { parameterCount } from '../model/decoder/weights/decoder-tensors.js';
import { writeIdentity } from './base-identity.js';
import {
  openAdapter,
  openOptimizer,
  openPolicy,
  type StoredAdapter,
  type StoredPolicy,
  writeAdapter,
  writeOptimizer,
  writePolicy,
} from './state-files.js';
import type { PolicyState } from './stored-state.js';

/** The directory of all adapters in the directory of their policy. */
export const AGENTS = 'agents';
/** The trunk's place as an adapter names it: relative to the adapter. */
export const TRUNK = '../..';

const agentDirectory = (directory: string, agent: string): string => `${directory}/${AGENTS}/${agent}`;

/** The name of an adapter's tensor among those of the whole policy. */
export const agentTensor = (agent: string, name: string): string => `agents.${agent}.${name}`;

/** A trunk with its agents' adapters, without the trunk's tokenizer. */
type Adapted = Pick<AgentAdapters, 'agents' | 'settings'>;

/**
 * Writes a trunk and the adapters into an existing directory.
 * @param policy Its weights are the trunk's, then those of the adapters in the order of the agents
 * @param hash The hash of the trunk's weights
 */
export async function writeTrunk(
  files: Files,
  directory: string,
  policy: StoredPolicy<PolicyState>,
  { agents, settings }: Adapted,
  hash: string,
): Promise<void> {
  const { config, tokenizer, state } = policy;
  const [own, each] = [parameterCount(config), adapterParameterCount(config, settings)];
  const trunk = { weights: state.weights.subarray(0, own) };
  await writePolicy(files, directory, { config, tokenizer, state: trunk });
  for (const [i, agent] of agents.entries()) {
    const place = agentDirectory(directory, agent);
    const weights = state.weights.subarray(own + i * each, own + (i + 1) * each);
    await files.makeDirectory(place);
    await writeAdapter(files, place, { settings, state: { weights } }, policy, TRUNK);
    await writeIdentity(files, place, hash);
  }
  await writeOptimizer(files, directory, state);
}

/** A trunk in files, with the adapters whose tensors its state has too. */
interface StoredTrunk extends StoredPolicy {
  readonly adapters: readonly (StoredAdapter & { readonly directory: string })[];
}

/** Opens a trunk with the adapters of these agents. @throws CheckpointError naming file, tensor, expectation */
export async function openTrunk(
  files: Files,
  directory: string,
  { agents, settings }: Adapted,
  { optimizer, chatTemplate }: { readonly optimizer: boolean; readonly chatTemplate?: string | undefined },
): Promise<StoredTrunk> {
  const trunk = await openPolicy(files, directory, { optimizer: false, chatTemplate });
  const { config } = trunk;
  const tensors = [...trunk.state.tensors];
  const adapters: StoredTrunk['adapters'][number][] = [];
  for (const agent of agents) {
    const place = agentDirectory(directory, agent);
    const adapter = await openAdapter(files, place, config, { optimizer: false });
    adapters.push({ ...adapter, directory: place });
    for (const tensor of adapter.state.tensors) tensors.push({ ...tensor, name: agentTensor(agent, tensor.name) });
  }
  const parameters = parameterCount(config) + agents.length * adapterParameterCount(config, settings);
  const opened = optimizer ? { optimizer: await openOptimizer(files, directory, parameters) } : {};
  return { ...trunk, state: { tensors, ...opened }, adapters };
}
