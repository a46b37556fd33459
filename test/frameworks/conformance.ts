/**
 * One suite for all frameworks: agents stand in the place of their models. Each cell of the table in
 * docs/agents-elsewhere.md is a test of this suite, and the suite compares the framework's row with the tests that ran.
 */
import { readFileSync } from 'node:fs';
import type { Turn } from '@drmas/engine/nouns';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Lines, playScripted } from '../../src/runs/testing/play-scripted.js';
import type { EpisodeFailure } from '../../src/teams/rollout/episode-failure.js';
import { agent } from '../../src/teams/team/agent.js';
import { defineTeam, type PlayContext } from '../../src/teams/team/team.js';

export const CELLS = [
  'text',
  'tools',
  'parallel tools',
  'streaming',
  'structured output',
  'handoff',
  'sub-agent',
] as const;
export type Cell = (typeof CELLS)[number];

const agents = { boss: agent({ tools: 'plain', invalidPenalty: 0.5 }), helper: agent() };
type Context = PlayContext<{ question: string }, typeof agents>;

/** The input of a cell's play. The tool runs through `look`, so that the suite knows its arguments. */
export interface CellContext extends Context {
  /** The tool `look`, with one number `n`: twice the number. */
  readonly look: (input: { readonly n: number }) => string;
}

/** A way to play a cell in a framework. Its outcome is the outcome of the cell. */
export type CellPlay = (context: CellContext) => Promise<unknown>;

interface Expected {
  /** The texts of the agents, in order. No tokenizer writes their spaces anew, so they show whether ids are kept. */
  readonly lines: Lines<typeof agents>;
  readonly outcome: unknown;
  /** Who spoke, in order. */
  readonly speakers: readonly string[];
  /** The arguments of the tool's calls. */
  readonly calls: readonly number[];
}

const expected: Readonly<Record<Cell, Expected>> = {
  text: { lines: { boss: ['fine'] }, outcome: 'fine', speakers: ['boss'], calls: [] },
  tools: {
    lines: { boss: ['@look( 7 )', 'it is 14'] },
    outcome: 'it is 14',
    speakers: ['boss', 'boss'],
    calls: [7],
  },
  'parallel tools': {
    lines: { boss: ['both\n@look( 1 )\n@look( 2 )', '2 and 4'] },
    outcome: '2 and 4',
    speakers: ['boss', 'boss'],
    calls: [1, 2],
  },
  streaming: {
    lines: { boss: ['@look( 7 )', 'it is 14'] },
    outcome: 'it is 14',
    speakers: ['boss', 'boss'],
    calls: [7],
  },
  'structured output': {
    lines: { boss: ['{ "ok": true }'] },
    outcome: { ok: true },
    speakers: ['boss'],
    calls: [],
  },
  handoff: {
    lines: { boss: ['@transfer_to_helper()\n'], helper: ['over to me'] },
    outcome: 'over to me',
    speakers: ['boss', 'helper'],
    calls: [],
  },
  'sub-agent': {
    lines: { boss: ['@ask( "you there" )', 'she says yes'], helper: ['yes'] },
    outcome: 'she says yes',
    speakers: ['boss', 'helper', 'boss'],
    calls: [],
  },
};

interface Ways {
  /** The cells in which the framework's result differs from the agent's answer. */
  readonly rewritten?: readonly Cell[];
  /** The texts of the agents, if they differ from the other frameworks' texts. */
  readonly lines?: { readonly [Name in Cell]?: Lines<typeof agents> };
  /** Whether the framework throws if a loop of tool calls reaches its limit of steps. Others return what there is. */
  readonly throwsAtLimit?: boolean;
}

/** The suite for a framework; a cell that it has no notion of is left out. */
export function conformance(
  framework: string,
  plays: { readonly [Name in Cell]?: CellPlay },
  { rewritten = [], lines: otherLines = {}, throwsAtLimit = false }: Ways = {},
): void {
  describe(`${framework} with agents in the place of models`, () => {
    const cells = CELLS.filter((cell) => plays[cell] !== undefined);

    it.each(cells)('%s', async (cell) => {
      const { lines, outcome, speakers, calls } = expected[cell];
      const seen: number[] = [];
      const look = ({ n }: { readonly n: number }) => {
        seen.push(n);
        return String(2 * n);
      };
      const team = defineTeam({
        task: z.object({ question: z.string() }),
        agents,
        play: async (context) => plays[cell]?.({ ...context, look }),
        reward: () => 1,
      });
      const episode = await playScripted(team, { question: 'How much is it?' }, otherLines[cell] ?? lines);
      expect(episode.outcome).toEqual(outcome);
      expect(episode.turns.map(({ agent }) => agent)).toEqual(speakers);
      expect(seen.toSorted((a, b) => a - b)).toEqual(calls);
      expect(episode.turns.map(({ valid }) => valid)).toEqual(speakers.map(() => true));
      for (const [i, turn] of episode.turns.entries())
        for (const earlier of episode.turns.slice(0, i).filter(({ agent }) => agent === turn.agent))
          expect(continues(turn, earlier), `turn ${i} reads turn ${earlier.turn} with its very ids`).toBe(
            !rewritten.includes(cell),
          );
    });

    it.runIf(plays['structured output'])('structured output that is none is an invalid turn', async () => {
      const team = defineTeam({
        task: z.object({ question: z.string() }),
        agents,
        play: async (context) => {
          await plays['structured output']?.({ ...context, look: () => '' }).catch(() => {});
        },
        reward: () => 1,
      });
      const { turns } = await playScripted(team, { question: 'Well?' }, { boss: ['well'] });
      expect(turns.map(({ valid, penalty }) => [valid, penalty])).toEqual([[false, 0.5]]);
    });

    it.runIf(plays['structured output'])(
      'and an episode of invalid output if the program does not catch it',
      async () => {
        const end = await failureOf(plays['structured output'], { boss: ['well'] });
        expect(end).toMatchObject({ reason: 'invalid-output', agent: 'boss' });
      },
    );

    it.runIf(plays.text)('a question that does not fit the context is an episode that is too long', async () => {
      const end = await failureOf(plays.text, {}, 'x'.repeat(2 ** 20));
      expect(end).toMatchObject({ reason: 'overlong', message: expect.stringContaining('context is 1048576 tokens') });
    });

    it.runIf(plays.tools)('a loop of tool calls without end ends at the limit of the framework', async () => {
      const loop = { boss: Array.from({ length: 15 }, () => '@look( 7 )') };
      expect(await failureOf(plays.tools, loop)).toEqual(
        throwsAtLimit
          ? expect.objectContaining({
              reason: 'too-many-turns',
              message: expect.stringMatching(/^the agents did not come to an end: /),
            })
          : undefined,
      );
    });

    it('has the row of the documents that these tests say', () => {
      const row = CELLS.map((cell) =>
        plays[cell] === undefined ? '–' : rewritten.includes(cell) ? 'rewritten' : 'yes',
      );
      expect(documentedRow(framework)).toEqual(row);
    });
  });
}

/** The failure of a play's episode; undefined if it has none. */
function failureOf(play: CellPlay | undefined, lines: Lines<typeof agents>, question = 'Well?') {
  const team = defineTeam({
    task: z.object({ question: z.string() }),
    agents,
    play: async (context) => play?.({ ...context, look: () => 'again' }),
    reward: () => 1,
  });
  return playScripted(team, { question }, lines).then(
    () => undefined,
    (error: EpisodeFailure) => error.record,
  );
}

/** Whether a turn's prompt continues an earlier turn: its prompt and all of its sampled ids. */
function continues({ prompt }: Turn, earlier: Turn): boolean {
  const read = [...earlier.prompt, ...earlier.response];
  return read.every((id, i) => prompt[i] === id);
}

const page = new URL('../../docs/agents-elsewhere.md', import.meta.url);

/** The cells of a framework in the table of the documents. */
function documentedRow(framework: string): string[] {
  const line = readFileSync(page, 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`| ${framework} |`));
  return (line ?? '').split('|').slice(2, 2 + CELLS.length).map((cell) => cell.trim()); // biome-ignore format: a chain
}
