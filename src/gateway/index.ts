/** Door of `gateway`: agents as models of other people's frameworks and programs. */
import './agents/openai.js'; // adds its connections to the types of agents

export { agentModel } from './agents/ai-sdk-model.js';
export { type OpenGateway, openGateway } from './agents/gateway/open-gateway.js';
