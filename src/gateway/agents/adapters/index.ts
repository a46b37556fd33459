/** The adapters for the clients of other frameworks, one row each. Their types are in `AgentWays` and `EpisodeWays`. */
import { aiSdkModels } from '../ai-sdk-model.js';
import type { AgentAdapter } from '../attribution.js';
import { openaiClients } from '../openai.js';

export const adapters: readonly AgentAdapter[] = [aiSdkModels, openaiClients];
