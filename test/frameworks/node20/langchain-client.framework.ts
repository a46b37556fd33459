/** LangChain's client in unusual cases. */
import { ChatOpenAI } from '@langchain/openai';
import { clientContract } from '../client-contract.js';

clientContract('LangChain', async ({ model, apiKey, ...configuration }, { stream, signal }) => {
  const llm = new ChatOpenAI({ model, apiKey, configuration, streaming: false });
  const options = signal === undefined ? {} : { signal };
  if (!stream) return (await llm.invoke('Hi', options)).text;
  let text = '';
  for await (const piece of await llm.stream('Hi', options)) text += piece.text;
  return text;
});
