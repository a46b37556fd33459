/** The world of one episode: an environment that has been reset, and is stepped by the team. */
import { isObject, jsonObject, WorldError } from '@drmas/engine/errors';
import type { JsonSchema, Tool, ToolCall } from '@drmas/engine/nouns';
import { contentTexts } from './mcp-content.js';
import type { AnswerData, WorldSocket } from './world-socket.js';

/** The view of an environment. Its fields are the environment's own. */
export type Observation = Readonly<Record<string, unknown>>;

/** The answer to a step. */
export interface WorldStep {
  readonly observation: Observation;
  /** The reward of this step; 0 if the environment gave none. */
  readonly reward: number;
  /** Whether the environment's episode is over. */
  readonly done: boolean;
}

/** A session of an environment server that belongs to one episode. drmas closes it when the episode is over. */
export interface World extends WorldStep {
  /** The observation as text for an agent: its only text, the result of a tool, or all of its fields as JSON. */
  readonly text: string;
  /** The sum of the rewards of all steps. */
  readonly total: number;
  /** The number of steps so far. */
  readonly steps: number;
  /** The tools of an MCP environment; for another environment one tool, `step`, whose arguments are an action. */
  readonly tools: readonly Tool[];
  /**
   * Takes a step. @throws WorldError with the server's code: VALIDATION_ERROR for an action against its schema,
   * EXECUTION_ERROR if the environment throws; the world goes on after these two
   */
  step(action: Readonly<Record<string, unknown>>): Promise<WorldStep>;
  /** Takes the step that an agent's tool call means, and returns the text for the tool's message. @throws WorldError */
  call(call: Pick<ToolCall, 'name' | 'arguments'>): Promise<string>;
  /** The environment's state, as its schema says. @throws WorldError */
  state(): Promise<Readonly<Record<string, unknown>>>;
  /** Sends a request of MCP (`tools/list`, `tools/call`), which is no step. Returns its result. @throws WorldError */
  mcp(method: string, params?: Readonly<Record<string, unknown>>): Promise<unknown>;
}

/** The name of the tool that stands for the action of an environment without tools; no MCP tool may have it. */
const STEP = 'step';

/** Whether the environment's actions are calls of MCP tools, by its schema of actions. */
const speaksMcp = ({ title }: JsonSchema) =>
  title === 'CallToolAction' || title === 'ListToolsAction' || title === 'Action';

export class SocketWorld implements World {
  readonly #socket: WorldSocket;
  readonly #action: JsonSchema;
  #last: WorldStep = { observation: {}, reward: 0, done: false };
  #total = 0;
  #steps = 0;
  #tools: readonly Tool[] = [];

  private constructor(socket: WorldSocket, action: JsonSchema) {
    this.#socket = socket;
    this.#action = action;
  }

  /** Resets the environment of a new session. @throws WorldError */
  static async reset(
    socket: WorldSocket,
    action: JsonSchema,
    reset: Readonly<Record<string, unknown>>,
  ): Promise<SocketWorld> {
    const world = new SocketWorld(socket, action);
    world.#last = stepOf(await socket.request('observation', { type: 'reset', data: reset }));
    world.#tools = speaksMcp(action) ? toolsOf(await world.mcp('tools/list')) : [stepTool(action)];
    return world;
  }

  get observation() {
    return this.#last.observation;
  }
  get text() {
    return textOf(this.observation);
  }
  get reward() {
    return this.#last.reward;
  }
  get done() {
    return this.#last.done;
  }
  get total() {
    return this.#total;
  }
  get steps() {
    return this.#steps;
  }
  get tools() {
    return this.#tools;
  }

  async step(action: Readonly<Record<string, unknown>>): Promise<WorldStep> {
    const step = stepOf(await this.#socket.request('observation', { type: 'step', data: action }));
    this.#last = step;
    this.#total += step.reward;
    this.#steps++;
    return step;
  }

  async call({ name, arguments: text }: Pick<ToolCall, 'name' | 'arguments'>): Promise<string> {
    const given = jsonObject(text);
    if (given === undefined) throw new WorldError('VALIDATION_ERROR', `${name}: the arguments are no JSON object`);
    const isTool = speaksMcp(this.#action);
    if (!isTool && name !== STEP)
      throw new WorldError('VALIDATION_ERROR', `there is no tool '${name}', only '${STEP}'`);
    const action = isTool ? { type: 'call_tool', tool_name: name, arguments: given } : given;
    await this.step(action);
    return this.text;
  }

  state(): Promise<Readonly<Record<string, unknown>>> {
    return this.#socket.request('state', { type: 'state' });
  }

  async mcp(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const { result, error } = await this.#socket.request('mcp', {
      type: 'mcp',
      data: { jsonrpc: '2.0', id: 1, method, params },
    });
    if (!isObject(error)) return result;
    throw new WorldError('EXECUTION_ERROR', `${method}: ${String(error.message)} (JSON-RPC ${String(error.code)})`);
  }
}

const stepOf = ({ observation, reward, done }: AnswerData<'observation'>): WorldStep => ({
  observation,
  reward: Number(reward ?? 0),
  done: done ?? false,
});

/** The action's schema as a tool. Metadata belong to programs, not to agents. */
function stepTool({ properties, required, description, ...schema }: JsonSchema): Tool {
  const { metadata: _, ...fields } = isObject(properties) ? properties : {};
  return {
    name: STEP,
    ...(typeof description === 'string' ? { description } : {}),
    parameters: { ...schema, type: 'object', properties: fields, ...(required === undefined ? {} : { required }) },
  };
}

function toolsOf(listed: unknown): readonly Tool[] {
  const tools = isObject(listed) && Array.isArray(listed.tools) ? listed.tools : [];
  return tools.filter(isObject).map(({ name, description, inputSchema, input_schema }) => {
    const parameters = [inputSchema, input_schema].find(isObject) ?? { type: 'object', properties: {} };
    return { name: String(name), ...(typeof description === 'string' ? { description } : {}), parameters };
  });
}

function textOf({ metadata: _, ...fields }: Observation): string {
  const { error, result, tool_name } = fields;
  if (isObject(error)) return `error: ${String(error.message)}`;
  if (tool_name !== undefined) return resultText(result);
  const values = Object.values(fields).filter((value) => value !== null && value !== '');
  if (values.length === 0) return '';
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(fields);
}

/** The result of an MCP tool: its structured value if that is plain, else its texts. */
function resultText(result: unknown): string {
  if (typeof result === 'string') return result;
  if (!isObject(result)) return JSON.stringify(result);
  const { data, content } = result;
  if (['string', 'number', 'boolean'].includes(typeof data)) return String(data);
  const texts = contentTexts(Array.isArray(content) ? content : []);
  return texts.length === 0 ? JSON.stringify(result) : texts.join('\n');
}
