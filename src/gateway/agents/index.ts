/** The exports of 'drmas/agents': agents in the place of the models of other programs. */

export type {
  AgentWays,
  ContentPart,
  FunctionTool,
  GatewayConnection,
  Json,
  LanguageModel,
  ModelCall,
  ModelFinish,
  ModelResult,
  ModelStreamPart,
  ModelUsage,
  ModelWarning,
  PromptMessage,
  PromptPart,
  ProviderData,
  ProviderOptions,
} from '../../teams/index.js';
export { boundFetch, type OpenAIConnection } from './openai.js';
export { type AnyLanguageModel, type TrainableOptions, trainable } from './trainable.js';
