/** The profile of an agent: its name, prompt and sampling, in a small file beside its weights. */
import { z } from 'zod';
import { isGreedy, type Sampling } from '../contract/sampling.js';
import type { Files } from '../host.js';
import { isGguf } from './formats/gguf/gguf-checkpoint.js';
import { readStopTokens, writeStopTokens } from './formats/model-config.js';
import { formatJson, readJson } from './formats/tokenizer-files.js';
import { isThere, parseWith } from './formats/validated-json.js';
import { type ToolFormatName, toolFormatNames } from './tool-formats/index.js';

/** A trained agent without its weights. */
export interface AgentProfile {
  /** The agent's name in its team. */
  readonly name: string;
  /** The system prompt of every conversation; absent for an agent without one. */
  readonly system?: string | undefined;
  /** How the agent's answers were sampled when it was evaluated. */
  readonly sampling: Sampling;
  /** The format in which the agent writes calls of tools; absent for one that calls none. */
  readonly tools?: ToolFormatName | undefined;
}

export const agentProfileSchema = z.object({
  name: z.string().min(1),
  system: z.string().optional(),
  sampling: z.object({
    temperature: z.number().min(0),
    topP: z.number().gt(0).max(1),
    topK: z.int().min(0),
    maxTokens: z.int().min(1),
  }),
  tools: z.enum(toolFormatNames).optional(),
});

const AGENT = 'drmas-agent.json';
const GENERATION = 'generation_config.json';
const agentFile = z.object({ version: z.literal(1), ...agentProfileSchema.shape });

/**
 * The profile in a directory, or beside a GGUF file; undefined if there is none.
 * @throws CheckpointError naming the key that is wrong
 */
export async function readAgentProfile(files: Files, place: string): Promise<AgentProfile | undefined> {
  const file = (await isGguf(files, place)) ? place.replace(/[^/\\]*$/, AGENT) : `${place}/${AGENT}`;
  if (!(await isThere(files, file))) return undefined;
  const { version: _, ...profile } = parseWith(agentFile, await readJson(files, file), file);
  return profile;
}

/**
 * Writes an agent into the directory of its weights. A whole model also gets the sampling in the words of transformers
 * and of servers that read its files, with the ids that end a text, which are looked for there first.
 */
export async function writeAgentProfile(files: Files, directory: string, profile: AgentProfile): Promise<void> {
  await files.write(`${directory}/${AGENT}`, formatJson({ version: 1, ...profile }));
  const config = `${directory}/config.json`;
  if (!(await isThere(files, config))) return;
  const stopTokens = readStopTokens(await readJson(files, config), config);
  await files.write(`${directory}/${GENERATION}`, formatJson(generationConfig(profile.sampling, stopTokens)));
}

/** All fields are written: transformers keeps the 50 most probable tokens if a file does not say otherwise. */
function generationConfig(
  { temperature, topP, topK, maxTokens }: Sampling,
  stopTokens: readonly number[],
): Record<string, unknown> {
  const sampled = { do_sample: true, temperature, top_p: topP, top_k: topK };
  return {
    ...(isGreedy(temperature) ? { do_sample: false } : sampled),
    max_new_tokens: maxTokens,
    eos_token_id: writeStopTokens(stopTokens),
  };
}
