/** Connections to an agent for code that was written for other frameworks and makes its own model calls. */
import type { LanguageModel } from './language-model.js';

/**
 * Access to an episode's agents over HTTP, for programs in any language: OpenAI's chat completions and responses, and
 * Anthropic's messages. It closes with the episode. If the recipe has no `gateway`, its fields throw an ArgumentError.
 */
export interface GatewayConnection {
  /**
   * The address of the server. Its routes are `/v1/chat/completions`, `/v1/responses`, `/v1/messages` and `/v1/models`.
   * The model that a request names is the agent.
   */
  readonly url: string;
  /** The secret for `Authorization: Bearer` or `x-api-key`. It identifies the episode. */
  readonly secret: string;
  /** The address at which all requests go to one agent, for any model name. @throws ArgumentError */
  urlOf(agent: string): string;
  /**
   * Environment variables for a child process whose clients call the agents: OPENAI_BASE_URL, OPENAI_API_BASE,
   * OPENAI_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
   */
  readonly env: Readonly<Record<string, string>>;
  /** The same for a process that calls only one agent. @throws ArgumentError */
  envOf(agent: string): Readonly<Record<string, string>>;
}

/**
 * Connections to all agents of an episode. Each adapter adds its own in its file: `declare module` merges them into
 * this interface.
 */
// biome-ignore lint/suspicious/noEmptyInterface: adapters add the properties
export interface EpisodeWays {}

/** Connections to the agent in addition to calling it as a function. Each adapter adds its own, as above. */
export interface AgentWays {
  /** The agent as a model of AI SDK 6 and 7, Mastra, VoltAgent and, through `aisdk()`, OpenAI Agents. */
  readonly model: LanguageModel;
}
