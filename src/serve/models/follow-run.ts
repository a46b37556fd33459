/** The trained agents of a run that still trains: the newest checkpoint answers, without a restart. */
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { contentHash, SEAL } from '@drmas/engine/disk';
import type { AgentModel } from '@drmas/engine/endpoints';
import { ArgumentError, CheckpointError, messageOf } from '@drmas/engine/errors';
import type { Host } from '@drmas/engine/host';
import { type Checkpoint, RunDirectory, requireRun } from '../../method/store.js';
import { checkpointOf } from '../../runs/index.js';
import { type AgentModelsRequest, type OpenAgentModels, openAgentModels, wantedAgents } from './open-agent-models.js';

const EVERY_MS = 1000;
/** The longest time until a broken checkpoint is tried again. It may be a copy that is not complete yet. */
const LONGEST_MS = 60_000;

export interface FollowedAgents {
  /** The agents by name. The values change with the checkpoint. */
  readonly agentModels: ReadonlyMap<string, AgentModel>;
  /** Keeps an agent's weights in memory until the returned function is called. */
  hold(agentModel: AgentModel): () => void;
  /** The name of the checkpoint that answers new requests. */
  checkpoint(): string;
  dispose(): Promise<void>;
}

interface Candidate {
  readonly step: number;
  readonly name: string;
  /** A text for the content: a run that resumes from an older step writes later steps again. */
  readonly key: string;
}

/** Opened weights of one checkpoint. They close when a newer checkpoint answers and their last answer has ended. */
interface OpenedCheckpoint extends Candidate {
  readonly opened: OpenAgentModels;
  answers: number;
  retired: boolean;
}

interface Broken {
  readonly key: string;
  readonly waitMs: number;
  readonly again: number;
}

/**
 * Opens the agents of a run's newest checkpoint, and of each newer one while the run trains. Requests under way end on
 * the weights that they began with, so both weights are in memory for that time. A checkpoint that is broken or not
 * complete is skipped with a notice, and tried again later. A run without a checkpoint is waited for.
 * @param request `checkpoint` may be `best`, which follows the best evaluation
 * @throws RunError if there is no such run or agent, or if a server keeps its weights; the signal's reason
 */
export async function followRun(
  request: AgentModelsRequest,
  host: Host,
  everyMs: number = EVERY_MS,
): Promise<FollowedAgents> {
  const { from, checkpoint: chosen, agent } = request;
  if (chosen !== undefined && chosen !== 'best')
    throw new ArgumentError(
      `--follow serves the newest checkpoint: expected no --checkpoint or 'best', got '${chosen}'`,
    );
  await requireRun(host.files, from);
  wantedAgents(await RunDirectory.open(from), agent);
  const end = new AbortController();
  const signal = AbortSignal.any([host.signal, end.signal]);
  const agentModels = new Map<string, AgentModel>();
  const holders = new Map<AgentModel, OpenedCheckpoint>();
  const inMemory = new Set<OpenedCheckpoint>();
  const broken = new Map<string, Broken>();
  let current: OpenedCheckpoint | undefined;

  const closeIfUnused = async (weights: OpenedCheckpoint) => {
    if (!weights.retired || weights.answers > 0 || !inMemory.delete(weights)) return;
    for (const [agentModel, holder] of holders) if (holder === weights) holders.delete(agentModel);
    await weights.opened.dispose();
  };

  const replace = async (next: OpenedCheckpoint) => {
    const before = current;
    current = next;
    inMemory.add(next);
    for (const [name, agentModel] of next.opened.agentModels) {
      agentModels.set(name, agentModel);
      holders.set(agentModel, next);
    }
    if (before === undefined) return;
    host.notify(`${next.name} of ${from} answers new requests`);
    before.retired = true;
    await closeIfUnused(before);
  };

  const look = async () => {
    const all = await candidates(request, host);
    for (const candidate of all) {
      const { name, key, step } = candidate;
      if (key === current?.key) return;
      // An older one answers only if the run went back: if it was resumed from an older checkpoint.
      if (current !== undefined && step < current.step && (all[0] as Candidate).step >= current.step) return;
      const before = broken.get(key);
      if (before !== undefined && host.clock.seconds() < before.again) continue;
      try {
        const opened = await openAgentModels({ ...request, checkpoint: name, sealed: true }, host);
        broken.delete(key);
        await replace({ ...candidate, opened, answers: 0, retired: false });
        return;
      } catch (error) {
        signal.throwIfAborted();
        if (current === undefined && !(error instanceof CheckpointError)) throw error;
        const waitMs = before === undefined ? everyMs : Math.min(2 * before.waitMs, LONGEST_MS);
        broken.set(key, { key, waitMs, again: host.clock.seconds() + waitMs / 1000 });
        if (before === undefined) host.notify(`${name} of ${from} is skipped: ${messageOf(error)}`);
      }
    }
  };

  await look();
  if (current === undefined) host.notify(`waiting for the first checkpoint of ${from}`);
  while (current === undefined) {
    await pause(everyMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    await look();
  }
  const following = (async () => {
    while (!signal.aborted) {
      await pause(everyMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await look().catch((error: unknown) => {
        if (!signal.aborted) host.notify(`cannot look for checkpoints of ${from}: ${messageOf(error)}`);
      });
    }
  })();
  return {
    agentModels,
    hold(agentModel) {
      const weights = holders.get(agentModel);
      if (weights === undefined) return () => {};
      weights.answers++;
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        weights.answers--;
        void closeIfUnused(weights).catch((error: unknown) => host.notify(messageOf(error)));
      };
    },
    checkpoint: () => (current as OpenedCheckpoint).name,
    async dispose() {
      end.abort(new Error('the server has ended'));
      await following;
      await Promise.all([...inMemory].map(({ opened }) => opened.dispose()));
    },
  };
}

/** The checkpoints that may answer, the most wanted first. */
async function candidates({ from, checkpoint }: AgentModelsRequest, { files }: Host): Promise<Candidate[]> {
  const run = await RunDirectory.open(from);
  const all = await run.checkpoints();
  const wanted: readonly Checkpoint[] =
    checkpoint === undefined || all.length === 0
      ? all.toReversed()
      : await checkpointOf(run, checkpoint, 'answer from').then(
          (best) => [best],
          () => [], // no step with a checkpoint was evaluated yet
        );
  return Promise.all(
    wanted.map(async ({ directory, step }) => {
      const seal = await files.readText(join(directory, SEAL)).catch(() => '');
      return { step, name: basename(directory), key: `${step} ${contentHash(seal)}` };
    }),
  );
}
