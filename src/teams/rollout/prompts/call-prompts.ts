/** The prompt of a call, and whether it fits the model's context. */

import type { PlayableHandle, Sampling } from '@drmas/engine/contract';
import { DialectError, messageOf } from '@drmas/engine/errors';
import type { Message, Tool, ToolChoice, Turn } from '@drmas/engine/nouns';
import { thoughtTokens } from '@drmas/engine/tokens';
import type { Agent } from '../../team/agent.js';
import type { Agents, AskOptions } from '../../team/team.js';
import { checkedOptions, openingOf } from '../ask-options.js';
import { EpisodeFailure } from '../episode-failure.js';
import { promptMessages } from '../prompt-messages.js';
import type { AgentSpeaker, Question } from '../read-answer.js';
import type { ForeignAskOptions, PromptLimit, RolloutContext, TokenCounts } from '../rollout-context.js';
import { type Encoded, ExactConversations, isSameTokenizer } from './exact-ids.js';

/**
 * Characters of the longest tokens that vocabularies have (runs of spaces). A prompt that would be too long even in
 * tokens of this length is refused before it is tokenised, which takes seconds for megabytes.
 */
const LONGEST_TOKEN = 128;

export interface ConfiguredAgent extends AgentSpeaker {
  readonly sampling: Sampling;
}

/** The fields of a turn that are known before its answer. The prompt ends with the `opening` of the response. */
type TurnRequest = Pick<Turn, 'messages' | 'prompt' | 'cut' | 'observation' | 'envStep' | 'tools' | 'ignored'>;

export interface CallPrompt extends Omit<Question, 'id'> {
  readonly request: TurnRequest;
  readonly maxTokens: number;
  /** The source of the prompt's ids; absent for an endpoint. */
  readonly encoded?: Encoded;
}

export class CallPrompts implements TokenCounts {
  readonly #context: RolloutContext;
  readonly #team: Agents;
  readonly #turns: readonly Turn[];
  readonly #conversations = new ExactConversations();

  /** @param turns the episode's turns; the list grows */
  constructor(context: RolloutContext, team: Agents, turns: readonly Turn[]) {
    this.#context = context;
    this.#team = team;
    this.#turns = turns;
  }

  /**
   * Remembers the ids of a turn that was read from a prompt, for the prompts that repeat it. A later prompt continues
   * from the whole conversation, so the ids of a prompt that was cut are not remembered.
   */
  add(turn: Turn, { encoded, request }: Pick<CallPrompt, 'encoded' | 'request'>): void {
    if (encoded !== undefined && request.cut === undefined) this.#conversations.add(turn, encoded);
  }

  /**
   * Turns the input of a call into the agent's prompt. The response to a foreign call may use all the room in the
   * context.
   *
   * @throws EpisodeFailure if an option is wrong or the prompt is too long; DialectError for a foreign call whose
   *   prompt is too long or has a text that the tokenizer cannot represent
   */
  of(role: ConfiguredAgent, input: string | readonly Message[], options: ForeignAskOptions = {}): CallPrompt {
    const { name, agent, sampling, policy } = role;
    const { kept, maxTokens: most = sampling.maxTokens, toolChoice, responseSchema } = checkedOptions(role, options);
    const { foreign = false } = options;
    const messages = promptMessages(agent.system, input, responseSchema, foreign);
    const maxTokens = Math.min(most, sampling.maxTokens);
    const how = { toolChoice, responseSchema };
    if ('endpoint' in policy) return { request: { ...kept, messages, prompt: [] }, ...how, opening: [], maxTokens };
    const context = policy.context;
    const overlong = (length: string, needs: string) =>
      foreign
        ? new DialectError(
            400,
            'context_length_exceeded',
            `${name}'s context is ${context} tokens, and the messages are ${length}`,
          )
        : new EpisodeFailure('overlong', `${name}: a prompt of ${length} ${needs} the context of ${context}`);
    const characters = charactersOf(messages, kept.tools);
    if (characters > context * LONGEST_TOKEN) throw overlong(`${characters} characters`, 'exceeds');
    const { prompt, cut, opening, encoded } = this.#idsOf(
      { name, agent, policy },
      messages,
      { tools: kept.tools, toolChoice },
      foreign,
    );
    const room = context - prompt.length;
    if (room < (foreign ? 1 : maxTokens))
      throw overlong(`${prompt.length} tokens`, `and up to ${maxTokens} more exceed`);
    const request = { ...kept, messages, prompt, ...(cut === 0 ? {} : { cut }) };
    return { request, ...how, opening, maxTokens: Math.min(maxTokens, room), encoded };
  }

  /** As a call would count it. If the prompt cannot fit, a lower bound from its characters. */
  ofPrompt(name: string, input: readonly Message[], options: AskOptions): number | undefined {
    const agent = this.#team[name];
    const policy = this.#policyOf(name);
    if (agent === undefined || policy === undefined) return undefined;
    const messages = promptMessages(agent.system, input, options.responseSchema, true);
    const characters = charactersOf(messages, options.tools);
    if (characters > policy.context * LONGEST_TOKEN) return Math.ceil(characters / LONGEST_TOKEN);
    return this.#idsOf({ name, agent, policy }, messages, options, true).prompt.length;
  }

  ofThinking({ agent, reasoning, response }: Turn): number | undefined {
    const policy = this.#policyOf(agent);
    return policy === undefined || reasoning === undefined ? undefined : thoughtTokens(policy.tokenizer, response);
  }

  /** Undefined for an endpoint. */
  #policyOf(agent: string): PlayableHandle | undefined {
    const { policies, agents } = this.#context;
    const policy = policies[agents[agent]?.policy ?? ''];
    return policy === undefined || 'endpoint' in policy ? undefined : policy;
  }

  /**
   * The model's input ids for these messages within the agent's limit, with the beginning of the response if drmas
   * writes it.
   * @throws the tokenizer's error, or a DialectError for a foreign call
   */
  #idsOf(
    {
      name,
      agent,
      policy: { tokenizer },
    }: { readonly name: string; readonly agent: Agent; readonly policy: PlayableHandle },
    messages: readonly Message[],
    {
      tools,
      toolChoice,
    }: { readonly tools?: AskOptions['tools'] | undefined; readonly toolChoice?: ToolChoice | undefined },
    foreign: boolean,
  ) {
    const { agents } = this.#context;
    try {
      const opening = tokenizer.encode(openingOf(agent, toolChoice));
      const sameIds = this.#turns.filter((turn) => {
        const speaker = this.#policyOf(turn.agent);
        return speaker !== undefined && isSameTokenizer(speaker.tokenizer, tokenizer);
      });
      const encoded = this.#conversations.encode({ messages, tools }, sameIds, tokenizer);
      const limit = agents[name]?.promptLimit;
      const whole = opening.length === 0 ? encoded.ids : [...encoded.ids, ...opening];
      const prompt = limit === undefined ? whole : cutPrompt(whole, limit);
      return { prompt, cut: whole.length - prompt.length, opening, encoded };
    } catch (error) {
      if (!foreign) throw error;
      throw new DialectError(400, 'invalid_request', `${name} cannot read this: ${messageOf(error)}`);
    }
  }
}

/** The ids of a prompt within its limit, by the rules of verl (`postprocess_data`, verl/utils/torch_functional.py). */
export function cutPrompt(ids: readonly number[], { tokens, cut }: PromptLimit): readonly number[] {
  if (ids.length <= tokens) return ids;
  const kept = cut === 'left' ? 0 : tokens >> 1;
  return [...ids.slice(0, kept), ...ids.slice(ids.length - (tokens - kept))];
}

function charactersOf(messages: readonly Message[], tools: readonly Tool[] = []): number {
  const written = messages.reduce(
    (sum, { content, toolCalls = [] }) =>
      toolCalls.reduce((more, call) => more + call.name.length + call.arguments.length, sum + content.length),
    0,
  );
  return tools.reduce((sum, tool) => sum + JSON.stringify(tool).length, written);
}
