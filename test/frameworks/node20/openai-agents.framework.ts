/** OpenAI Agents with a client that runs on Node 20. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import OpenAI from 'openai';
import { exampleTrains } from '../desk.js';
import { openAIAgentsSuite } from './openai-agents-suite.js';

const packages = { Agent, OpenAIProvider, Runner, tool, aisdk, OpenAI };
// It leaves out a text beside calls.
openAIAgentsSuite('OpenAI Agents 0.12', packages, { rewritten: ['parallel tools'] });
exampleTrains('openai-agents', import.meta.dirname, ['@openai/agents', '@openai/agents-extensions']);
