/** What an agent is besides a function, for code that was written for other frameworks and calls models its own way. */
import type { LanguageModel } from './language-model.js';

/** What `new OpenAI({ ... })` takes to reach a team's agents in this process, without a socket. */
export interface OpenAIConnection {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
}

/**
 * How programs in any language reach an episode's agents over HTTP: OpenAI's chat completions and responses, and
 * Anthropic's messages. It ends with the episode. Where the recipe has no `gateway`, its fields throw an ArgumentError.
 */
export interface GatewayConnection {
  /**
   * The address. Below it lie `/v1/chat/completions`, `/v1/responses`, `/v1/messages` and `/v1/models`; the model that
   * a request names is the agent.
   */
  readonly url: string;
  /** What requests carry as `Authorization: Bearer` or `x-api-key`. It says which episode they belong to. */
  readonly secret: string;
  /** The address at which every request is for one agent, whichever model it names. @throws ArgumentError */
  urlOf(agent: string): string;
  /**
   * The environment of a child process whose clients are to find the agents: OPENAI_BASE_URL, OPENAI_API_BASE,
   * OPENAI_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
   */
  readonly env: Readonly<Record<string, string>>;
  /** The same for a process that speaks to one agent alone. @throws ArgumentError */
  envOf(agent: string): Readonly<Record<string, string>>;
}

/** The ways to an agent but for calling it. */
export interface AgentWays {
  /** The agent as a model of AI SDK 6 and 7, Mastra, VoltAgent and, through `aisdk()`, OpenAI Agents. */
  readonly model: LanguageModel;
  /**
   * The agent for clients of OpenAI's API. Every request is the agent's, whichever model it names; `model` is the
   * agent's name.
   */
  readonly openai: OpenAIConnection & { readonly model: string };
}
