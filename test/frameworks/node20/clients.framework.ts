/** The clients of OpenAI Agents and LangChain with what is no ordinary answer. */

import { ChatOpenAI } from '@langchain/openai';
import { Agent, OpenAIProvider, Runner } from '@openai/agents';
import OpenAI from 'openai';
import { clientContract } from '../client-contract.js';

type ProviderOptions = NonNullable<ConstructorParameters<typeof OpenAIProvider>[0]>;

clientContract('OpenAI Agents', async ({ model, ...connection }, { stream, signal }) => {
  const client: unknown = new OpenAI(connection); // of its CommonJS types
  const openAIClient = client as NonNullable<ProviderOptions['openAIClient']>;
  const modelProvider = new OpenAIProvider({ openAIClient, useResponses: false });
  const runner = new Runner({ modelProvider, tracingDisabled: true });
  const agent = new Agent({ name: 'solver', instructions: '', model });
  const options = signal === undefined ? {} : { signal };
  if (!stream) return (await runner.run(agent, 'Hi', options)).finalOutput ?? '';
  const result = await runner.run(agent, 'Hi', { ...options, stream });
  let text = '';
  for await (const piece of result.toTextStream()) text += piece;
  await result.completed;
  if (signal?.aborted) throw signal.reason; // its streams end silently
  return text;
});

clientContract('LangChain', async ({ model, apiKey, ...configuration }, { stream, signal }) => {
  const llm = new ChatOpenAI({ model, apiKey, configuration, streaming: false });
  const options = signal === undefined ? {} : { signal };
  if (!stream) return (await llm.invoke('Hi', options)).text;
  let text = '';
  for await (const piece of await llm.stream('Hi', options)) text += piece.text;
  return text;
});
