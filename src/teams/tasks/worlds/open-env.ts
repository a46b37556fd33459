import { setTimeout as sleep } from 'node:timers/promises';
import { fitsSchema, issuesText, reasonOf, TaskError, WorldError } from '@drmas/engine/errors';
import { excerpt, onAbort, Secret, unlessAborted } from '@drmas/engine/host';
import type { JsonSchema, Split, TaskSource } from '@drmas/engine/nouns';
import { webRequest } from '@drmas/engine/platform';
import { serverUrl } from '@drmas/engine/requests';
import pLimit from 'p-limit';
import { z } from 'zod';
import { checkedOptions } from '../checked-options.js';
import { SocketWorld, type World } from './world.js';
import { Full, WorldSocket } from './world-socket.js';

/** The options of `openEnv`. */
export interface OpenEnvOptions {
  /** The address of the server, such as `http://127.0.0.1:8000`. */
  readonly url: string;
  /**
   * The most worlds at the same time; further episodes wait. If the server says that it has fewer sessions, its number
   * applies.
   * @default no limit
   */
  readonly concurrency?: number | undefined;
  /**
   * The longest time for one answer.
   * @default 60_000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The number of tasks of each split, for an environment that lists no tasks: then each task is a seed.
   * @default 1000
   */
  readonly tasks?: number | undefined;
  /** The environment's names of the splits. Default: the splits of type `train`, and `test` or else `validation`. */
  readonly splits?: { readonly [split in Split]?: string } | undefined;
  /** Further fields of each reset, such as the name of a game. */
  readonly reset?: Readonly<Record<string, unknown>> | undefined;
  /** Headers of each request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const optionsSchema = z.strictObject({
  url: serverUrl('an environment, such as http://127.0.0.1:8000', '`headers`').transform((url) =>
    url.replace(/\/+$/, ''),
  ),
  concurrency: z.int().min(1).default(Number.POSITIVE_INFINITY),
  timeoutMs: z.int().min(1).default(60_000),
  tasks: z.int().min(1).default(1000),
  splits: z.strictObject({ train: z.string().optional(), test: z.string().optional() }).default({}),
  reset: z.record(z.string(), z.unknown()).default({}),
  headers: z.record(z.string(), z.string()).default({}),
});

const worldTask = z.object({ seed: z.int().min(0), split: z.string().optional(), index: z.int().min(0).optional() });

/** A task of an environment: a seed, and the place in a split if the environment lists its tasks. */
export interface WorldTask {
  readonly seed: number;
  readonly split?: string | undefined;
  readonly index?: number | undefined;
}

/** A schema of an environment. */
export interface WorldSchema {
  /** The JSON schema as the server gives it, for the `responseSchema` of a call or the `parameters` of a tool. */
  readonly schema: JsonSchema;
  /** Whether a value of JSON fits it. @throws ArgumentError if the check takes too many steps */
  fits(value: unknown): boolean;
}

/** The schemas of an environment. */
export interface WorldSchemas {
  readonly action: WorldSchema;
  readonly observation: WorldSchema;
  readonly state: WorldSchema;
}

/** An environment server: the source of a team's tasks, and of the world of each episode. */
export interface OpenEnv extends TaskSource<WorldTask> {
  /** The schema of a task's data, for `defineTeam`. */
  readonly task: z.ZodType<WorldTask>;
  /**
   * Opens the world of an episode and resets it to the task. Waits while the server has no free session. The world is
   * closed when `signal` fires, which an episode's signal does at its end.
   * @throws WorldError
   */
  open(episode: { readonly task: WorldTask; readonly signal: AbortSignal }): Promise<World>;
  /** The schemas of actions, observations and state. @throws WorldError */
  schemas(): Promise<WorldSchemas>;
}

const LONGEST_ANSWER_BYTES = 16e6;
/** The first and the longest wait for a session that other programs hold. */
const WAITS_MS = [50, 1000] as const;

const jsonSchema = z.record(z.string(), z.unknown());
const schemasSchema = z.object({ action: jsonSchema, observation: jsonSchema, state: jsonSchema });
const splitsSchema = z.array(z.object({ name: z.string(), type: z.string().optional() }));

/**
 * Tasks and worlds of an environment server that speaks OpenEnv's protocol (tested with openenv 0.10). An environment
 * with task routes gives its tasks, split by split; any other one is reset to a seed, even ones for training and odd
 * ones for tests. All episodes of a task get the same seed, so they meet the same world if the environment obeys seeds.
 *
 * @throws RecipeError naming the option that is wrong.
 *
 * @example
 * ```ts
 * import { agent, defineTeam, toolResult, user, assistant } from 'drmas';
 * import { openEnv } from 'drmas/tasks';
 *
 * const game = openEnv({ url: 'http://127.0.0.1:8000' });
 *
 * const team = defineTeam({
 *   task: game.task,
 *   agents: { player: agent({ tools: 'hermes' }) },
 *   async play({ task, agents: { player }, signal }) {
 *     const world = await game.open({ task, signal });
 *     const messages = [user(world.text)];
 *     while (!world.done && world.steps < 8) {
 *       const reply = await player(messages, { tools: world.tools, toolChoice: 'required', envStep: world.steps });
 *       messages.push(assistant(reply));
 *       for (const call of reply.toolCalls) messages.push(toolResult(call, await world.call(call)));
 *       if (!reply.valid) break;
 *     }
 *     return world.total;
 *   },
 *   reward: ({ outcome }) => outcome,
 * });
 * ```
 */
export function openEnv(options: OpenEnvOptions): OpenEnv {
  const { url, concurrency, timeoutMs, tasks, splits, reset, headers } = checkedOptions(
    'openEnv',
    optionsSchema,
    options,
  );
  const limited = pLimit(concurrency);
  const key = Object.entries(headers).find(([name]) => /^authorization$|key$|token$/i.test(name))?.[1];

  /** The answer of a route; undefined if the server has no such route, or its environment lists no tasks. */
  const ask = async (route: string, body?: unknown): Promise<unknown> => {
    try {
      const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
      const answer = await webRequest(`${url}${route}`, {
        ...sent,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        secret: key === undefined ? undefined : new Secret(key),
        signal: new AbortController().signal,
        timeoutMs,
        mostBytes: LONGEST_ANSWER_BYTES,
      });
      if ([404, 405, 501].includes(answer.status)) return undefined;
      if (answer.ok) return JSON.parse(answer.text());
      throw new WorldError('BAD_ANSWER', `${url}${route}: status ${answer.status}: ${excerpt(answer.text(), 500)}`);
    } catch (error) {
      if (error instanceof WorldError) throw error;
      throw new WorldError('UNREACHABLE', `${url}${route}: ${reasonOf(error)}`);
    }
  };
  const read = <Value>(schema: z.ZodType<Value>, route: string, answer: unknown): Value => {
    const checked = schema.safeParse(answer);
    if (checked.success) return checked.data;
    throw new WorldError('BAD_ANSWER', `${url}${route}: ${issuesText(checked.error.issues)}`);
  };

  let described: Promise<z.output<typeof schemasSchema>> | undefined;
  const describe = () => {
    described ??= ask('/schema').then((answer) => read(schemasSchema, '/schema', answer));
    described.catch(() => {
      described = undefined; // the next call asks again
    });
    return described;
  };

  /** The split of the environment, and its number of tasks. Undefined if the environment lists none. */
  const listed = async (split: Split) => {
    const [name] = read(z.array(z.string()), '/list_environments', (await ask('/list_environments')) ?? []);
    const route = `/${encodeURIComponent(name ?? '')}`;
    const answer = name === undefined ? undefined : await ask(`${route}/splits`);
    if (name === undefined || answer === undefined) return undefined;
    const known = read(splitsSchema, `${route}/splits`, answer);
    const types = split === 'train' ? ['train'] : ['test', 'validation'];
    const chosen = splits[split] ?? types.flatMap((type) => known.find((one) => one.type === type)?.name ?? [])[0];
    if (chosen === undefined || !known.some((one) => one.name === chosen))
      throw new TaskError(
        `openEnv: ${url} has no split ${JSON.stringify(chosen ?? split)}, only ` +
          `${known.map((one) => one.name).join(', ') || 'none'}; openEnv({ splits: { ${split}: NAME } }) names one`,
      );
    const counted = await ask(`${route}/num_tasks`, { split: chosen });
    const { num_tasks: size } = read(z.object({ num_tasks: z.int().min(0) }), `${route}/num_tasks`, counted);
    if (size === 0) throw new TaskError(`openEnv: ${url}: the split '${chosen}' has no task`);
    return { name: `${name} ${chosen}`, split: chosen, size };
  };

  /** Opens a world in a free place, which it holds until it has ended. */
  const begin = (task: WorldTask, signal: AbortSignal) =>
    new Promise<World | Full>((resolve, reject) => {
      const hold = async () => {
        if (signal.aborted) return;
        const { action } = await describe();
        const socket = await WorldSocket.open(url, { headers, timeoutMs });
        const stopListening = onAbort(signal, () => void socket.close());
        try {
          signal.throwIfAborted();
          resolve(await SocketWorld.reset(socket, action, { ...reset, ...task }));
          await socket.ended;
        } finally {
          stopListening();
          await socket.close();
        }
      };
      limited(hold).catch((error: unknown) => {
        if (!(error instanceof Full)) return reject(error);
        limited.concurrency = Math.max(1, Math.min(limited.concurrency, error.sessions ?? Number.POSITIVE_INFINITY));
        resolve(error);
      });
    });

  return {
    name: 'openenv',
    task: worldTask,
    settings: { url, tasks, ...splits, ...reset },
    async load(split) {
      await describe();
      const list = await listed(split);
      if (list === undefined) {
        const at = (index: number) => {
          const seed = 2 * index + (split === 'test' ? 1 : 0);
          return { id: `seed ${seed}`, data: { seed } };
        };
        return { name: `openenv ${split}`, size: tasks, at };
      }
      const at = (index: number) => ({
        id: `${list.split} ${index}`,
        data: { seed: index, split: list.split, index },
      });
      return { name: list.name, size: list.size, at };
    },
    async open({ task, signal }) {
      const [first, longest] = WAITS_MS;
      for (let wait: number = first; ; wait = Math.min(2 * wait, longest)) {
        const world = await unlessAborted(begin(task, signal), signal);
        if (!(world instanceof Full)) return world;
        await unlessAborted(sleep(wait), signal);
      }
    },
    async schemas() {
      const { action, observation, state } = await describe();
      return { action: checking(action), observation: checking(observation), state: checking(state) };
    },
  };
}

const checking = (schema: JsonSchema): WorldSchema => ({ schema, fits: (value) => fitsSchema(value, schema) });
