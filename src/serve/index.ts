/** Door of `serve`: trained agents as models of a server. */
export { answerStream } from './models/answer-stream.js';
export { Chat } from './models/chat.js';
export { followRun } from './models/follow-run.js';
export { type ModelServerOptions, modelServer } from './models/model-server.js';
export {
  type AgentModelsRequest,
  agentsOfTraining,
  type OpenAgentModels,
  openAgentModels,
} from './models/open-agent-models.js';
export { type TrainedAgents, type TrainedAgentsOptions, trainedAgents } from './models/trained-agents.js';
export { trainedSchemas } from './models/trained-schemas.js';
