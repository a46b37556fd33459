/** What an agent is besides a function, for code that was written for other frameworks and calls models its own way. */
import type { LanguageModel } from './language-model.js';

/** What `new OpenAI({ ... })` takes to reach a team's agents in this process, without a socket. */
export interface OpenAIConnection {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
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
