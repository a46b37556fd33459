/** OpenAI Agents as it is on npm, on the Node that its client wants. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import OpenAI from 'openai';
import { openAIAgentsSuite, type Packages } from '../node20/openai-agents-suite.js';

const packages: unknown = { Agent, OpenAIProvider, Runner, tool, aisdk, OpenAI };
openAIAgentsSuite('OpenAI Agents 0.20', packages as Packages, { throwsAtLength: true }); // the types of 0.12
