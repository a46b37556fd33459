import { copyWithSource, isObject } from '@drmas/engine/errors';
import type { JsonSchema, Tool, ToolChoice, Turn } from '@drmas/engine/nouns';
import { toolFormat } from '@drmas/engine/tool-calls';
import type { Agent } from '../team/agent.js';
import type { AskOptions } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import type { AgentSpeaker } from './read-answer.js';
import type { ForeignAskOptions } from './rollout-context.js';

export interface CallCounter {
  turns: number;
  namesSteps?: boolean;
}

/** Checks the step that a call names. @throws EpisodeFailure if it is invalid, or the other calls name none */
export function requireStep(name: string, { envStep }: AskOptions = {}, counter: CallCounter): void {
  if (envStep !== undefined && !(Number.isInteger(envStep) && envStep >= 0))
    throw new EpisodeFailure('error', `${name}: envStep is ${String(envStep)}, expected an integer >= 0`);
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
  const { observation, envStep, tools = [], toolChoice, maxTokens, responseSchema, ignored = [] } = options;
  const refuse = (message: string): never => {
    throw new EpisodeFailure('error', `${name}: ${message}`);
  };
  if (observation !== undefined && typeof observation !== 'string')
    refuse(`the observation is ${String(observation)}, expected a text`);
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens >= 1))
    refuse(`maxTokens is ${String(maxTokens)}, expected an integer >= 1`);
  if (responseSchema !== undefined && !isObject(responseSchema))
    refuse(`responseSchema is ${String(responseSchema)}, expected a JSON schema`);
  if (!Array.isArray(tools)) refuse(`tools is ${String(tools)}, expected a list`);
  for (const tool of tools)
    if (!isObject(tool) || typeof tool.name !== 'string' || !isObject(tool.parameters))
      refuse('expected tools of the form { name, description, parameters }');
  const names = tools.map((tool) => tool.name);
  if (names.length > 1 && new Set(names).size < names.length)
    refuse(`two tools have the same name: ${names.join(', ')}`);
  if (names.length > 0 && agent.tools === undefined && !('endpoint' in policy))
    refuse("is offered tools, but has no format for calls; expected agent({ tools: 'plain' }) or another format");
  if (
    typeof toolChoice === 'object' ? !names.includes(toolChoice.name) : toolChoice === 'required' && names.length === 0
  )
    refuse(`toolChoice is ${JSON.stringify(toolChoice)}, but the tools are: ${names.join(', ') || 'none'}`);
  return {
    kept: {
      ...(observation === undefined ? {} : { observation }),
      ...(envStep === undefined ? {} : { envStep }),
      ...(names.length === 0 ? {} : { tools: tools.map(copyOf) }),
      ...(ignored.length === 0 ? {} : { ignored }),
    },
    toolChoice: names.length === 0 ? undefined : toolChoice,
    maxTokens,
    responseSchema: responseSchema === undefined ? undefined : copyWithSource(responseSchema),
  };
}

const copyOf = (tool: Tool): Tool => ({ ...structuredClone(tool), parameters: copyWithSource(tool.parameters) });

/** The beginning of a response that must call a tool; else empty. */
export function openingOf({ tools: format }: Agent, toolChoice: ToolChoice | undefined): string {
  if (format === undefined || toolChoice === undefined || toolChoice === 'auto' || toolChoice === 'none') return '';
  return toolFormat(format).opening(toolChoice === 'required' ? undefined : toolChoice.name);
}
