import { ArgumentError, RecipeError } from '@drmas/engine/errors';
import { describe, expect, it } from 'vitest';
import { trainable } from '../gateway/agents/index.js';
import { agent, arithmetic, pipeline, plannerExecutorVerifier, searchTeam, solverVerifier } from '../index.js';
import {
  bm25Index,
  bm25Retriever,
  file,
  fromScorers,
  hub,
  jsonl,
  mcpTools,
  openEnv,
  recordDemonstrations,
  searchR1Retriever,
  withDemonstrations,
} from './tasks.js';

const others = { notAnOption: 1 };
const two = { a: {}, b: {} };

/** Functions with options: a call with one that they do not have. */
const calls: Readonly<Record<string, () => unknown>> = {
  agent: () => agent(others as object),
  arithmetic: () => arithmetic(others as object),
  bm25Index: () => bm25Index([], others as object),
  bm25Retriever: () => bm25Retriever([], others as object),
  file: () => file('tasks.csv', others as object),
  fromScorers: () => fromScorers([() => 1], others as object),
  hub: () => hub('a/b', others as object),
  jsonl: () => jsonl('tasks.jsonl', others as object),
  mcpTools: () => mcpTools('http://127.0.0.1/mcp', others as object),
  openEnv: () => openEnv({ url: 'http://127.0.0.1', ...others } as never),
  pipeline: () => pipeline({ agents: two, ...others } as never),
  plannerExecutorVerifier: () => plannerExecutorVerifier(others as object),
  recordDemonstrations: () => recordDemonstrations('demonstrations.jsonl', [], others as object),
  searchR1Retriever: () => searchR1Retriever({ url: 'http://127.0.0.1', ...others } as never),
  searchTeam: () => searchTeam({ retriever: () => [], ...others } as never),
  solverVerifier: () => solverVerifier(others as object),
  trainable: () => trainable('solver', others as object),
  withDemonstrations: () => withDemonstrations(arithmetic(), 'demonstrations.jsonl', others as object),
};

describe('an option that a function does not have', () => {
  it.each(Object.entries(calls))('is refused by its name: %s', async (_, call) => {
    const error = await Promise.resolve()
      .then(call)
      .catch((thrown: unknown) => thrown);
    expect([ArgumentError, RecipeError].some((kind) => error instanceof kind)).toBe(true);
    expect((error as Error).message).toContain('notAnOption');
  });
});
