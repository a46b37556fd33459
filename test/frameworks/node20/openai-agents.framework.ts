/** OpenAI Agents with a client that runs on Node 20. */
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { aisdk } from '@openai/agents-extensions/ai-sdk';
import OpenAI from 'openai';
import { openAIAgentsSuite } from './openai-agents-suite.js';

openAIAgentsSuite('OpenAI Agents 0.12', { Agent, OpenAIProvider, Runner, tool, aisdk, OpenAI });
