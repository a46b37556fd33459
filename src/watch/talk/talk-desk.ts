import { freemem } from 'node:os';
import type { Voice } from '../../backends/voice.js';
import { RunError } from '../../core/errors.js';
import { nodeHost } from '../../platform/node-host.js';
import type {
  LoadedAgent,
  TalkFacts,
  TalkMessage,
  TalkQuestion,
  TalkSide,
} from '../../report/analysis/talk-protocol.js';
import { answerStream } from '../../serve/answer-stream.js';
import { type OpenVoices, openVoices, trainedAgents } from '../../serve/open-voices.js';
import { RunDirectory } from '../../store/run-directory.js';

/** How long an agent stays in memory after its last answer. */
const IDLE_MINUTES = 5;

/** The memory that weights may take: half of what is free, so that a training beside it has the rest. */
const freeBytes = () => freemem() / 2;

/** What decides how much a desk takes. */
export interface TalkDeskOptions {
  /** Threads of the kernels. Default 1: a training beside it has the others. */
  readonly threads?: number | undefined;
  readonly idleMinutes?: number;
}

/** A question that came while another one is being answered. */
export class BusyError extends Error {}

interface Opened {
  readonly loaded: LoadedAgent;
  readonly voices: OpenVoices;
}

/**
 * Answers questions to agents of runs, one at a time. The first question loads its agent; one agent is in memory at a
 * time, and is freed when nobody has asked for a while. Nothing is written, nothing downloaded, and no code of a recipe
 * runs.
 */
export class TalkDesk {
  readonly #threads: number;
  readonly #idleMinutes: number;
  #opened: Opened | undefined;
  #busy = false;
  #closed = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ threads = 1, idleMinutes = IDLE_MINUTES }: TalkDeskOptions = {}) {
    this.#threads = threads;
    this.#idleMinutes = idleMinutes;
  }

  /** Who can be talked to in the run at a path. Nothing is loaded for it. @throws RunError where there is no run */
  async facts(path: string): Promise<TalkFacts> {
    const run = await RunDirectory.open(path);
    const checkpoints = (await run.checkpoints()).map(({ step }) => step);
    const common = { checkpoints, loaded: this.#opened?.loaded ?? null, idleMinutes: this.#idleMinutes };
    const nobody = (problem: string): TalkFacts => ({ ...common, agents: [], problem });
    const { agents } = run.record;
    if (agents === undefined)
      return nobody('The run is of a version that did not record its agents; drmas chat talks to them.');
    if (checkpoints.length === 0) return nobody('The run has no checkpoint yet.');
    const trained = trainedAgents(run);
    const known = trained.flatMap(({ name, here }) => (here ? (agents[name] ?? []) : []));
    if (trained.length === 0) return nobody('No agent of the run was trained.');
    if (known.length === 0) return nobody('A server keeps the weights of its agents; drmas export brings them here.');
    return {
      ...common,
      problem: null,
      agents: known.map(({ name, system = null, sampling: { temperature, maxTokens } }) => ({
        ...{ name, system, temperature, maxTokens },
      })),
    };
  }

  /** Begins to answer a question about the run at a path. @throws BusyError while another one is being answered */
  ask(path: string, question: TalkQuestion, signal: AbortSignal): AsyncGenerator<TalkMessage, void> {
    if (this.#busy) throw new BusyError('another question is being answered: ask again when it is');
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
      const { loaded, voices } = await this.#open(path, { run, agent, step });
      signal.throwIfAborted();
      const before = voices.untrained.get(agent);
      const untrained = { what: before?.what ?? '', there: before?.voice !== undefined };
      yield { type: 'open', loaded, untrained };
      yield* answers('trained', voices.voices.get(agent), question, signal);
      yield* answers('untrained', before?.voice, question, signal);
    } finally {
      this.#busy = false;
      this.#timer = setTimeout(() => void this.release(), this.#idleMinutes * 60_000);
      this.#timer.unref();
    }
  }

  async #open(path: string, wanted: Omit<LoadedAgent, 'bytes'>): Promise<Opened> {
    const { run, agent, step } = wanted;
    const now = this.#opened?.loaded;
    if (this.#opened && now?.run === run && now.agent === agent && now.step === step) return this.#opened;
    await this.#free();
    const request = { from: path, agent, checkpoint: String(step), untrained: true, offline: true };
    const host = nodeHost({ threads: this.#threads, signal: this.#closed.signal });
    const voices = await openVoices({ ...request, mostBytes: freeBytes() }, host);
    this.#opened = { loaded: { ...wanted, bytes: voices.bytes }, voices };
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
    await opened?.voices.dispose();
  }

  /** Ends what is being answered, and frees the memory for good. */
  async close(): Promise<void> {
    this.#closed.abort(new RunError('the dashboard is being ended'));
    await this.#free();
  }
}

async function* answers(
  side: TalkSide,
  voice: Voice | undefined,
  { agent, messages, temperature, maxTokens, seed }: TalkQuestion,
  signal: AbortSignal,
): AsyncGenerator<TalkMessage, void> {
  if (voice === undefined) return;
  const began = performance.now();
  const request = {
    ...{ model: agent, messages, stream: true, streamUsage: false, wantsTokenIds: false, ignored: [] },
    ...(maxTokens === null ? {} : { maxTokens }),
    sampling: { seed, ...(temperature === null ? {} : { temperature }) },
  };
  for await (const delta of answerStream(voice, request, signal)) {
    if (delta.type === 'text' || delta.type === 'reasoning') yield { type: 'text', side, text: delta.text };
    if (delta.type !== 'answer') continue;
    const { content, reasoning = '', toolCalls, finishReason, usage } = delta.answer;
    const calls = toolCalls.map(({ name, arguments: given }) => `${name}(${given})`);
    yield {
      type: 'end',
      side,
      text: [reasoning, content, ...calls].filter((part) => part !== '').join('\n'),
      tokens: usage.responseTokens,
      seconds: (performance.now() - began) / 1000,
      cut: finishReason === 'length',
    };
  }
}
