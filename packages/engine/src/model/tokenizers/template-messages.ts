/** Messages and tools in the form that chat templates of Hugging Face expect. */
import { exactJson, jsonObject } from '../../errors.js';
import { randomKey } from '../../math.js';
import type { Message, Tool } from '../../nouns.js';
import { readJson } from '../jinja/json.js';

/** Templates of Mistral refuse ids of calls of any other length. */
const ID_LENGTH = 9;

const templateId = (id: string) =>
  randomKey(id)
    .map((word) => word.toString(36).padStart(7, '0'))
    .join('')
    .slice(-ID_LENGTH);

/** A message with its calls' arguments as the objects that templates write in their own way. */
export function templateMessage({ role, content, reasoning, toolCalls = [], toolCallId, name }: Message) {
  const calls = toolCalls.map(({ id, name, arguments: text }) => ({
    id: templateId(id),
    type: 'function',
    function: { name, arguments: jsonObject(text) === undefined ? text : readJson(text) },
  }));
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(toolCallId === undefined ? {} : { tool_call_id: templateId(toolCallId) }),
    ...(name === undefined ? {} : { name }),
  };
}

/** A tool whose schema has its numbers and the order of its keys as a client wrote them. */
export const templateTool = ({ name, description = '', parameters }: Tool) => ({
  type: 'function',
  function: { name, description, parameters: readJson(exactJson(parameters)) },
});
