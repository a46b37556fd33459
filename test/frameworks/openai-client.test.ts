import OpenAI from 'openai';
import { clientContract } from './client-contract.js';

clientContract("OpenAI's client", async ({ model, ...connection }, { stream, signal }) => {
  const client = new OpenAI(connection);
  const messages = [{ role: 'user' as const, content: 'Hi' }];
  const options = signal === undefined ? {} : { signal };
  if (!stream) {
    const { choices } = await client.chat.completions.create({ model, messages }, options);
    return choices[0]?.message.content ?? '';
  }
  let text = '';
  for await (const { choices } of await client.chat.completions.create({ model, messages, stream }, options))
    text += choices[0]?.delta.content ?? '';
  if (signal?.aborted) throw signal.reason; // its streams end silently
  return text;
});
