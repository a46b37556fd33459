/**
 * Advantages of a million turns: the growth of the time, and a comparison with the paper's code where a checkout is
 * given.
 */

import { RandomStream } from '@drmas/engine/math';
import type { TurnRecord } from '@drmas/engine/nouns';
import { estimateAdvantages } from '../../../src/runs/composition/estimate-advantages.js';
import { attempt, type Context, noteSkipped, schedule, startPeers } from '../context.js';
import { type Contestant, interleave } from '../measure/interleave.js';
import { ARRAYS, pythonEnvironment, pythonVariables, script } from '../peers/environment.js';
import { DRMAS, peerRatios, rowsOf } from '../results.js';

const PART = 'estimators';
const SIZES = [250_000, 500_000, 1_000_000];
const EPISODES = 8;
const AGENTS = ['planner', 'executor', 'critic'] as const;
/** The response tokens that the paper's code carries along for each turn; this package needs none. */
const RESPONSE_TOKENS = 1;
const BUDGET_SECONDS = { alone: 20, peers: 600 };
const estimators = ['drmas', 'grpo'] as const;

export async function benchEstimators(context: Context): Promise<void> {
  const { options, results, say } = context;
  const budget = BUDGET_SECONDS[options.peers ? 'peers' : 'alone'];
  for (const type of estimators) {
    const perTurn: { turns: number; rate: number; clean: boolean | undefined }[] = [];
    for (const count of SIZES) {
      const turns = turnsOf(count);
      const last = count === SIZES.at(-1);
      const peers = last ? await paperPeers(context, type, turns) : [];
      try {
        const contestants = [drmasContestant(type, turns), ...peers];
        const shape = `${type}, ${count / 1000}k turns`;
        const series = await interleave(contestants, schedule(context, `${PART} ${shape}`, budget));
        noteSkipped(context, PART, shape, series);
        const rows = rowsOf(PART, shape, series);
        results.rows.push(...rows);
        const row = rows.find(({ engine }) => engine === DRMAS);
        if (row !== undefined) perTurn.push({ turns: count, rate: row.median, clean: row.clean });
        results.ratios.push(...peerRatios(rows, { "the paper's code": undefined }));
      } finally {
        for (const peer of peers) await peer.stop();
      }
    }
    const [first, last] = [perTurn[0], perTurn.at(-1)];
    if (first === undefined || last === undefined) continue;
    const growth = last.turns / first.turns;
    results.ratios.push({
      part: PART,
      shape: type,
      what: `time of ${last.turns / 1000}k turns / time of ${first.turns / 1000}k (linear: ${growth})`,
      value: (growth * first.rate) / last.rate,
      clean: first.clean === false || last.clean === false ? false : last.clean,
    });
  }
  if (options.drmas === undefined) {
    say(`${PART}: the paper's code is left out; --peers --drmas DIR names a checkout of it`);
    results.skipped.push({ what: `${PART}: the paper's code`, reason: 'no checkout was named (--peers --drmas DIR)' });
  }
}

/** Tasks of eight episodes in which three agents are called one to four times each. */
function turnsOf(count: number): TurnRecord[] {
  const random = new RandomStream('bench estimators');
  const turns: TurnRecord[] = [];
  for (let task = 0; turns.length < count; task++) {
    for (let episode = 0; episode < EPISODES; episode++) {
      const outcome = random.integer(0, 1);
      let turn = 0;
      for (const agent of AGENTS)
        for (let call = random.integer(1, 4); call > 0 && turns.length < count; call--) {
          const reward = outcome - (random.chance(0.1) ? 0.1 : 0);
          turns.push({ task: `t${task}`, episode: `e${episode}`, agent, turn: turn++, reward });
        }
    }
  }
  return turns;
}

function drmasContestant(type: (typeof estimators)[number], turns: readonly TurnRecord[]): Contestant {
  return {
    name: DRMAS,
    threads: 1,
    unit: 'turn',
    async repeat() {
      const started = performance.now();
      estimateAdvantages(turns, { type });
      return { amount: turns.length, seconds: (performance.now() - started) / 1e3 };
    },
  };
}

async function paperPeers(
  { options, ...context }: Context,
  type: (typeof estimators)[number],
  turns: readonly TurnRecord[],
) {
  const { drmas } = options;
  if (!options.peers || drmas === undefined) return [];
  const whole = { options, ...context };
  const python = await attempt(whole, "the paper's code", () => pythonEnvironment(context.say, ARRAYS));
  if (python === undefined) return [];
  return startPeers(whole, PART, [
    {
      name: "the paper's code",
      threads: 1,
      unit: 'turn',
      command: python,
      args: [script('drmas_estimator.py')],
      settings: {
        checkout: drmas,
        // The paper's code compares the turns of a task's agent, or the task's episodes.
        groups: turns.map(({ task, agent }) => (type === 'drmas' ? `${task} ${agent}` : task)),
        episodes: turns.map(({ task, episode }) => `${task} ${episode}`),
        rewards: turns.map(({ reward }) => reward),
        tokens: RESPONSE_TOKENS,
        byAgent: type === 'drmas',
      },
      environment: pythonVariables(1),
    },
  ]);
}
