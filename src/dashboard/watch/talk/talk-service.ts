import { freemem } from 'node:os';
import type { AgentModel } from '@drmas/engine/endpoints';
import { messageOf, RunError } from '@drmas/engine/errors';
import { waitMs } from '@drmas/engine/host';
import { turnText } from '@drmas/engine/nouns';
import { nodeHost } from '@drmas/engine/platform';
import { bodyText, parsedBody } from '@drmas/engine/requests';
import type { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { z } from 'zod';
import { RunDirectory } from '../../../method/store.js';
import {
  type LoadedAgent,
  type TalkFacts,
  type TalkMessage,
  type TalkQuestion,
  type TalkSide,
  talkRoles,
} from '../../../runs/analysis.js';
import { agentsOfTraining, answerStream, type OpenAgentModels, openAgentModels } from '../../../serve/index.js';
import type { RunCatalog } from '../run-catalog.js';

/** Time that an agent stays in memory after its last answer, in milliseconds. */
const IDLE_MINUTES = 5;

/** The memory limit for weights: half of the free memory, so that a concurrent training has the rest. */
const freeBytes = () => freemem() / 2;

interface TalkServiceOptions {
  /** Threads of the kernels. Default 1: a concurrent training uses the others. */
  readonly threads?: number | undefined;
  readonly idleMinutes?: number;
}

class BusyError extends Error {}

interface LoadedModels {
  readonly loaded: LoadedAgent;
  readonly agentModels: OpenAgentModels;
}

/**
 * Answers questions to agents of runs, one at a time. The first question to an agent loads it. Only one agent is in
 * memory at a time; it is freed after a time without questions. Nothing is written or downloaded, and no code of a
 * recipe runs.
 */
export class TalkService {
  readonly #threads: number;
  readonly #idleMinutes: number;
  #opened: LoadedModels | undefined;
  #busy = false;
  #closed = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ threads = 1, idleMinutes = IDLE_MINUTES }: TalkServiceOptions = {}) {
    this.#threads = threads;
    this.#idleMinutes = idleMinutes;
  }

  /** The agents of the run at a path that answer questions. Loads nothing. @throws RunError if there is no run */
  async facts(path: string): Promise<TalkFacts> {
    const run = await RunDirectory.open(path);
    const checkpoints = (await run.checkpoints()).map(({ step }) => step);
    const common = { checkpoints, loaded: this.#opened?.loaded ?? null, idleMinutes: this.#idleMinutes };
    const nobody = (problem: string): TalkFacts => ({ ...common, agents: [], problem });
    const { agents } = run.record;
    if (agents === undefined)
      return nobody(
        'An earlier version of drmas made this run and did not record its agents. Talk to them with drmas chat.',
      );
    if (checkpoints.length === 0) return nobody('The run has no checkpoint yet.');
    const trained = agentsOfTraining(run);
    const known = trained.flatMap(({ name, here }) => (here ? (agents[name] ?? []) : []));
    if (trained.length === 0) return nobody('No agent of the run was trained.');
    if (known.length === 0) return nobody('The weights of its agents are on a server. Fetch them with drmas export.');
    return {
      ...common,
      problem: null,
      agents: known.map(({ name, system = null, sampling: { temperature, maxTokens } }) => ({
        name,
        system,
        temperature,
        maxTokens,
      })),
    };
  }

  /** Starts to answer a question about the run at a path. @throws BusyError while another question is being answered */
  ask(path: string, question: TalkQuestion, signal: AbortSignal): AsyncGenerator<TalkMessage, void> {
    if (this.#busy) throw new BusyError('another question is being answered; ask again later');
    this.#busy = true;
    clearTimeout(this.#timer);
    return this.#answers(path, question, AbortSignal.any([signal, this.#closed.signal]));
  }

  async *#answers(path: string, question: TalkQuestion, signal: AbortSignal): AsyncGenerator<TalkMessage, void> {
    try {
      const { agents, checkpoints, problem } = await this.facts(path);
      if (problem !== null) throw new RunError(problem);
      const { run, agent, step: wished } = question;
      if (!agents.some(({ name }) => name === agent)) throw new RunError(`${run} has no trained agent '${agent}'`);
      const step = wished ?? checkpoints.at(-1) ?? 0;
      yield { type: 'loading' };
      const { loaded, agentModels } = await this.#open(path, { run, agent, step });
      signal.throwIfAborted();
      const before = agentModels.untrained.get(agent);
      const untrained = { what: before?.what ?? '', there: before?.agentModel !== undefined };
      yield { type: 'open', loaded, untrained };
      yield* answers('trained', agentModels.agentModels.get(agent), question, signal);
      yield* answers('untrained', before?.agentModel, question, signal);
    } finally {
      this.#busy = false;
      this.#timer = setTimeout(() => void this.release(), waitMs(this.#idleMinutes * 60_000));
      this.#timer.unref();
    }
  }

  async #open(path: string, wanted: Omit<LoadedAgent, 'bytes'>): Promise<LoadedModels> {
    const { run, agent, step } = wanted;
    const now = this.#opened?.loaded;
    if (this.#opened && now?.run === run && now.agent === agent && now.step === step) return this.#opened;
    await this.#free();
    const request = { from: path, agent, checkpoint: String(step), untrained: true, offline: true };
    const host = nodeHost({ threads: this.#threads, signal: this.#closed.signal });
    const agentModels = await openAgentModels({ ...request, mostBytes: freeBytes() }, host);
    this.#opened = { loaded: { ...wanted, bytes: agentModels.bytes }, agentModels };
    if (this.#closed.signal.aborted) await this.#free();
    return this.#opened ?? Promise.reject(this.#closed.signal.reason);
  }

  /** Frees the memory, unless a question is being answered. */
  async release(): Promise<void> {
    if (!this.#busy) await this.#free();
  }

  async #free(): Promise<void> {
    clearTimeout(this.#timer);
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.agentModels.dispose();
  }

  async close(): Promise<void> {
    this.#closed.abort(new RunError('the dashboard is stopping'));
    await this.#free();
  }
}

async function* answers(
  side: TalkSide,
  agentModel: AgentModel | undefined,
  { agent, messages, temperature, maxTokens, seed }: TalkQuestion,
  signal: AbortSignal,
): AsyncGenerator<TalkMessage, void> {
  if (agentModel === undefined) return;
  const began = performance.now();
  const request = {
    model: agent,
    messages,
    stream: true,
    streamUsage: false,
    wantsTokenIds: false,
    ignored: [],
    ...(maxTokens === null ? {} : { maxTokens }),
    sampling: { seed, ...(temperature === null ? {} : { temperature }) },
  };
  for await (const delta of answerStream(agentModel, request, signal)) {
    if (delta.type === 'text' || delta.type === 'reasoning') yield { type: 'text', side, text: delta.text };
    if (delta.type !== 'answer') continue;
    const { content, finishReason, usage } = delta.answer;
    yield {
      type: 'end',
      side,
      text: turnText({ ...delta.answer, text: content }),
      tokens: usage.responseTokens,
      seconds: (performance.now() - began) / 1000,
      cut: finishReason === 'length',
    };
  }
}

/** The most bytes of a question, and the most tokens of an answer. */
export const MOST_BYTES = 256e3;
const MOST_TOKENS = 8192;

const questionSchema = z.strictObject({
  run: z.string(),
  agent: z.string(),
  step: z.int().min(0).nullable().default(null),
  messages: z
    .array(z.strictObject({ role: z.enum(talkRoles), content: z.string() }))
    .min(1)
    .max(100),
  temperature: z.number().min(0).max(10).nullable().default(null),
  maxTokens: z.int().min(1).max(MOST_TOKENS).nullable().default(null),
  seed: z.int().min(0).default(0),
});

/**
 * Routes for questions to agents: the agents that answer, a question with its answers as lines of JSON, and its end.
 */
export function addTalkRoutes(app: Hono, catalog: RunCatalog, talk: TalkService): void {
  app.get('/api/talk', async (context) =>
    context.json(await talk.facts(catalog.placeOf(context.req.query('run') ?? ''))),
  );

  app.delete('/api/talk', async (context) => {
    await talk.release();
    return context.body(null, 204);
  });

  app.post('/api/talk', async (context) => {
    const question = questionSchema.parse(parsedBody(await bodyText(context.req.raw, MOST_BYTES)));
    const gone = new AbortController();
    let answers: AsyncGenerator<TalkMessage, void>;
    try {
      answers = talk.ask(catalog.placeOf(question.run), question, gone.signal);
    } catch (error) {
      if (error instanceof BusyError) return context.json({ error: error.message }, 409);
      throw error;
    }
    context.header('content-type', 'application/x-ndjson');
    return stream(context, async (out) => {
      out.onAbort(() => gone.abort(new Error('the page is closed')));
      // Writes do not wait for the page to read: answers are short, and a slow page must not block the next question.
      const write = (message: TalkMessage) => void out.write(`${JSON.stringify(message)}\n`);
      try {
        for await (const message of answers) write(message);
      } catch (error) {
        if (!gone.signal.aborted) write({ type: 'failed', message: messageOf(error) });
      }
    });
  });
}
