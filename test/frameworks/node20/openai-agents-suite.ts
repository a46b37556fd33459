/**
 * The behaviour of every version of OpenAI Agents: it plays and trains a team over its own client and through
 * `aisdk()`, the cells, and its client in unusual cases. Of the packages there are only types here.
 */
import type * as Sdk from '@openai/agents';
import type { aisdk as throughAiSdkOf } from '@openai/agents-extensions/ai-sdk';
import type Client from 'openai';
import type { ClientOptions } from 'openai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { boundFetch, trainable } from '../../../src/gateway/agents/index.js';
import { temporaryRoot } from '../../support/tiny-run.js';
import { clientContract } from '../client-contract.js';
import { type Cell, type CellContext, type CellPlay, conformance } from '../conformance.js';
import { BOSS, type DeskPlay, type DeskRun, HELPER, LEARNING, lookUp, plainPlay, rises, trainDesk } from '../desk.js';

export type Packages = Pick<typeof Sdk, 'Agent' | 'OpenAIProvider' | 'Runner' | 'tool'> & {
  readonly aisdk: typeof throughAiSdkOf;
  readonly OpenAI: typeof Client;
};

type Model = NonNullable<ConstructorParameters<typeof Sdk.Agent>[0]['model']>;
type ProviderOptions = NonNullable<ConstructorParameters<typeof Sdk.OpenAIProvider>[0]>;

/** The differences between versions of the packages. */
interface Differences {
  /** The cells in which the result of `aisdk()` differs from the agent's answer. */
  readonly rewritten?: readonly Cell[];
  /** Whether it throws, over responses, if an answer is cut off at the length limit. */
  readonly throwsAtLength?: boolean;
}

/** The suite for a version of the packages. */
export function openAIAgentsSuite(
  version: string,
  packages: Packages,
  { rewritten = [], throwsAtLength = false }: Differences = {},
): void {
  const { Agent, OpenAIProvider, Runner, tool, aisdk, OpenAI } = packages;
  const root = temporaryRoot();

  const t = tool({
    name: 't',
    description: '',
    parameters: z.object({ n: z.number() }),
    execute: async (input) => lookUp(input),
  });

  /** A play with these models of the agents. */
  const played = async (
    runner: Sdk.Runner,
    [boss, helper]: readonly [Model, Model],
    question: string,
    signal: AbortSignal,
  ) => {
    const leading = new Agent({ name: 'boss', instructions: BOSS, model: boss, tools: [t] });
    const commenting = new Agent({ name: 'helper', instructions: HELPER, model: helper });
    const options = { signal, maxTurns: 20 };
    const { finalOutput: answer = '', newItems } = await runner.run(leading, question, options);
    const { finalOutput: comment = '' } = await runner.run(commenting, answer, options);
    return { answer, comment, calls: newItems.filter(({ type }) => type === 'tool_call_item').length };
  };

  const runnerOf = (options: ClientOptions, useResponses = false) => {
    const client: unknown = new OpenAI(options); // of its CommonJS types
    const openAIClient = client as NonNullable<ProviderOptions['openAIClient']>;
    const modelProvider = new OpenAIProvider({ openAIClient, useResponses });
    return new Runner({ modelProvider, tracingDisabled: true });
  };

  /** The model's name is the agent's. */
  const named: DeskPlay = ({ task, openai, signal }) =>
    played(runnerOf({ ...openai, maxRetries: 0 }), ['boss', 'helper'], task.question, signal);

  /** The same over the interface that is the provider's default. */
  const withResponses: DeskPlay = ({ task, openai, signal }) =>
    played(runnerOf({ ...openai, maxRetries: 0 }, true), ['boss', 'helper'], task.question, signal);

  /** A client that was made before any episode. */
  const early = runnerOf({ baseURL: 'http://drmas/v1', apiKey: 'drmas', fetch: boundFetch });
  const bound: DeskPlay = ({ task, signal }) => played(early, ['boss', 'helper'], task.question, signal);

  const models = [aisdk(trainable('boss')), aisdk(trainable('helper'))] as const;
  const runner = new Runner({ tracingDisabled: true });
  const throughAiSdk: DeskPlay = ({ task, signal }) => played(runner, models, task.question, signal);

  describe(`a team of ${version}`, () => {
    it('is the run that plain calls of agents give, bit for bit', async () => {
      const plain = await trainDesk(root, plainPlay);
      expect(await trainDesk(root, named, { threads: 2 })).toEqual(plain);
      if (!throwsAtLength) expect(await trainDesk(root, withResponses)).toEqual(plain);
      expect(await trainDesk(root, bound)).toEqual(plain);
      expect(await trainDesk(root, throughAiSdk)).toEqual(plain);
    });

    it.runIf(throwsAtLength)('is the same over responses up to an answer that is cut, which it throws', async () => {
      const overrides = ['training.steps=1'];
      const plain = await trainDesk(root, plainPlay, { overrides });
      const { turns, failures } = await trainDesk(root, withResponses, { overrides });
      expect(failures.length).toBeGreaterThan(0);
      for (const failure of failures)
        expect(failure).toMatchObject({ reason: 'invalid-output', message: expect.stringMatching(/incomplete/) });
      const sampled = (episode: DeskRun['turns'][number] | undefined) =>
        (episode?.turns ?? []).map(({ advantage: _, valid: __, ...turn }) => turn);
      for (const [i, episode] of turns.entries())
        expect(sampled(episode)).toEqual(sampled(plain.turns[i]).slice(0, episode.turns.length));
    });

    it('learns', async () => {
      const { rewards, failures } = await trainDesk(root, named, { overrides: LEARNING });
      expect(failures).toEqual([]);
      expect(rises(rewards)).toBe(true);
    });
  });

  for (const useResponses of [false, true])
    conformance(
      `${version}${useResponses ? ', responses' : ''}`,
      openAIAgentsCells(packages, ({ openai }) => ({
        runner: runnerOf({ ...openai, maxRetries: 0 }, useResponses),
        boss: 'boss',
        helper: 'helper',
      })),
      { throwsAtLimit: true },
    );

  conformance(
    `${version}, \`aisdk()\``,
    openAIAgentsCells(packages, ({ agents }) => ({
      runner,
      boss: aisdk(agents.boss.model),
      helper: aisdk(agents.helper.model),
    })),
    { rewritten, throwsAtLimit: true },
  );

  clientContract(version, async ({ model, ...connection }, { stream, signal }) => {
    const agent = new Agent({ name: 'solver', instructions: '', model });
    const options = signal === undefined ? {} : { signal };
    if (!stream) return (await runnerOf(connection).run(agent, 'Hi', options)).finalOutput ?? '';
    const result = await runnerOf(connection).run(agent, 'Hi', { ...options, stream });
    let text = '';
    for await (const piece of result.toTextStream()) text += piece;
    await result.completed;
    if (signal?.aborted) throw signal.reason; // its streams end silently
    return text;
  });
}

/** The models of the two agents, and their runner. */
interface Models {
  readonly runner: InstanceType<typeof Sdk.Runner>;
  readonly boss: Model;
  readonly helper: Model;
}

/** The cells, with any models of the two agents. */
function openAIAgentsCells({ Agent, tool }: Packages, modelsOf: (context: CellContext) => Models) {
  const ask =
    (more: (context: CellContext, models: Models) => Partial<ConstructorParameters<typeof Sdk.Agent>[0]>): CellPlay =>
    async (context) => {
      const models = modelsOf(context);
      const boss = new Agent({ name: 'boss', model: models.boss, ...more(context, models) });
      return (await models.runner.run(boss, context.task.question, { signal: context.signal })).finalOutput;
    };
  const looking = ({ look }: CellContext) => ({
    tools: [
      tool({
        name: 'look',
        description: '',
        parameters: z.object({ n: z.number() }),
        execute: async (input) => look(input),
      }),
    ],
  });
  const helperOf = ({ helper }: Models) => new Agent({ name: 'helper', instructions: 'Help', model: helper });
  return {
    text: ask(() => ({})),
    tools: ask(looking),
    'parallel tools': ask(looking),
    streaming: async (context) => {
      const { runner, boss: model } = modelsOf(context);
      const boss = new Agent({ name: 'boss', model, ...looking(context) });
      const run = await runner.run(boss, context.task.question, { signal: context.signal, stream: true });
      let text = '';
      for await (const piece of run.toTextStream()) text += piece;
      await run.completed;
      return text;
    },
    'structured output': ask(() => ({ outputType: z.object({ ok: z.boolean() }) as never })),
    handoff: ask((_, models) => ({ handoffs: [helperOf(models)] })),
    'sub-agent': ask((_, models) => ({
      tools: [helperOf(models).asTool({ toolName: 'ask', toolDescription: '' })],
    })),
  } satisfies Record<string, CellPlay>;
}
