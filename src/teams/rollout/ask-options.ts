import { copyWithSource, isObject, messageOf, parseAt } from '@drmas/engine/errors';
import type { JsonSchema, Tool, ToolChoice, Turn } from '@drmas/engine/nouns';
import { toolFormat } from '@drmas/engine/tool-calls';
import { z } from 'zod';
import type { Agent } from '../team/agent.js';
import type { AskOptions } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import type { AgentSpeaker } from './read-answer.js';
import type { ForeignAskOptions } from './rollout-context.js';

const jsonSchema = z.custom<JsonSchema>(
  (value) => isObject(value) && isPlain(value),
  'expected a JSON schema as plain data; zod writes one of its schemas by z.toJSONSchema(schema)',
);

/** Schemas of libraries are instances of classes, or objects with functions. */
function isPlain(value: Record<string, unknown>): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  const isInstance = prototype !== null && Object.getPrototypeOf(prototype) !== null;
  return !isInstance && Object.values(value).every((inner) => typeof inner !== 'function');
}

const toolChoice = z.custom<ToolChoice>(
  (value) => ['auto', 'none', 'required'].includes(value as string) || (isObject(value) && 'name' in value),
  "expected 'auto', 'none', 'required' or { name }",
);

/** Other fields of a tool are the program's own, such as the function that runs it. */
const tool = z.object({
  name: z.string().min(1),
  description: z.string().optional(),
  parameters: jsonSchema,
  strict: z.boolean().optional().catch(undefined), // OpenAI's own tools may have null
} satisfies Record<keyof Tool, z.ZodType>);

const optionsSchema = z
  .strictObject({
    observation: z.string(),
    envStep: z.int().min(0),
    tools: z.array(tool),
    toolChoice,
    maxTokens: z.int().min(1),
    signal: z.custom<AbortSignal>(isSignal, 'expected an AbortSignal'),
    responseSchema: jsonSchema,
  } satisfies Record<keyof AskOptions, z.ZodType>)
  .partial();

/** Whether a value is a signal, of any realm. */
export function isSignal(value: unknown): value is AbortSignal {
  return isObject(value) && typeof value.addEventListener === 'function';
}

export interface CallCounter {
  turns: number;
  namesSteps?: boolean;
}

/** @throws EpisodeFailure if a call names its step, and the other calls name none; or the other way round */
export function requireStep(name: string, { envStep }: AskOptions, counter: CallCounter): void {
  const names = envStep !== undefined;
  counter.namesSteps ??= names;
  if (counter.namesSteps !== names)
    throw new EpisodeFailure('error', `${name}: expected the envStep of every call of the episode, or of none`);
}

/** @throws EpisodeFailure for an agent that trains: its reply would have no reward */
export function requireJudge({ name, settings }: AgentSpeaker): void {
  if (settings.judges !== true)
    throw new EpisodeFailure('reward', `agent '${name}' trains; expected a frozen one to ask in the reward`);
}

interface CheckedOptions {
  /** Those that the call's turn keeps. An option that is not given is absent. */
  readonly kept: Pick<Turn, 'observation' | 'envStep' | 'tools' | 'ignored'>;
  readonly toolChoice: ToolChoice | undefined;
  readonly maxTokens: number | undefined;
  readonly responseSchema: JsonSchema | undefined;
}

/**
 * Checks the options of a call. A list without tools offers none. The lists of the result are copies.
 * @throws EpisodeFailure naming the agent and the option that is wrong
 */
export function checkedOptions({ name, agent, policy }: AgentSpeaker, options: ForeignAskOptions): CheckedOptions {
  const { foreign: _, ignored = [], probe: __, ...own } = options;
  const refuse = (message: string): never => {
    throw new EpisodeFailure('error', message);
  };
  let read: AskOptions;
  try {
    read = parseAt(optionsSchema, own, [name]) as AskOptions;
  } catch (error) {
    return refuse(messageOf(error));
  }
  const { observation, envStep, tools = [], toolChoice, maxTokens, responseSchema } = read;
  const names = tools.map((tool) => tool.name);
  if (names.length > 1 && new Set(names).size < names.length)
    refuse(`${name}: two tools have the same name: ${names.join(', ')}`);
  if (names.length > 0 && agent.tools === undefined && !('endpoint' in policy))
    refuse(
      `${name}: is offered tools, but has no format for calls; expected agent({ tools: 'plain' }) or another format`,
    );
  if (
    typeof toolChoice === 'object' ? !names.includes(toolChoice.name) : toolChoice === 'required' && names.length === 0
  )
    refuse(`${name}: toolChoice is ${JSON.stringify(toolChoice)}, but the tools are: ${names.join(', ') || 'none'}`);
  return {
    kept: {
      ...(observation === undefined ? {} : { observation }),
      ...(envStep === undefined ? {} : { envStep }),
      ...(names.length === 0
        ? {}
        : { tools: tools.map((tool): Tool => ({ ...tool, parameters: copyWithSource(tool.parameters) })) }),
      ...(ignored.length === 0 ? {} : { ignored }),
    },
    toolChoice: names.length === 0 ? undefined : toolChoice,
    maxTokens,
    responseSchema: responseSchema === undefined ? undefined : copyWithSource(responseSchema),
  };
}

/** The beginning of a response that must call a tool; else empty. */
export function openingOf({ tools: format }: Agent, toolChoice: ToolChoice | undefined): string {
  if (format === undefined || toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none') return '';
  return toolFormat(format).opening(toolChoice === 'required' ? undefined : toolChoice.name);
}
