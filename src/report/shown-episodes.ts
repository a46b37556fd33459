/** From episodes on disk to what a page shows of them. */
import { responseTokens } from '../core/episode.js';
import { mean } from '../core/statistics.js';
import { isObject } from '../core/validation/objects.js';
import type { StoredEpisode } from '../store/episode-files.js';
import { fieldAt, numberAt, type Place, type Row, rowsAt } from '../store/log-rows.js';
import { LONGEST_TEXT, type ShownEpisode, type ShownGroup, type ShownTurn } from './analysis/shown-episode.js';

/** Shorter words are read by chance. */
const SHORTEST_WORDS = 2;

type StoredTurn = StoredEpisode['turns'][number];

/** An episode with the fields that a page cannot do without. @throws LogError naming file and line of what is none */
export function checkedEpisode(row: Row, place: Place): StoredEpisode {
  numberAt(row, 'score.team', place);
  for (const turn of rowsAt(row, 'turns', place)) numberAt(turn, 'reward', place);
  return {
    ...row,
    task: { data: undefined, ...(row.task as object), id: String(fieldAt(row, 'task.id')) },
  } as unknown as StoredEpisode;
}

/** The episodes of one task as a page shows them. */
export function shownGroup(task: string, episodes: readonly StoredEpisode[]): ShownGroup {
  return { task, data: cut(taskText(episodes[0]?.task.data)), episodes: episodes.map(shownEpisode) };
}

function shownEpisode({ sample, score, outcome, log = [], failure, turns }: StoredEpisode): ShownEpisode {
  return {
    sample,
    reward: score.team,
    agents: score.agents ?? {},
    parts: score.parts ?? {},
    metrics: score.metrics ?? {},
    outcome: outcome === undefined || outcome === null ? '' : cut(inWords(outcome)),
    log: log.map(({ name, value }) => [name, cut(inWords(value))]),
    failure: failure === undefined ? null : cut(`${failure.reason}: ${failure.message}`),
    turns: turns.map((turn, i) => shownTurn(turn, turns.slice(0, i))),
  };
}

function shownTurn(turn: StoredTurn, earlier: readonly StoredTurn[]): ShownTurn {
  return {
    agent: turn.agent,
    messages: (turn.messages ?? []).map(({ role, content }) => [role, cut(content ?? '')]),
    text: cut(turn.text ?? ''),
    reads: turnsRead(turn, earlier),
    envStep: turn.envStep ?? null,
    tokens: responseTokens({ ...turn, response: turn.response ?? [] }),
    valid: turn.valid,
    cut: turn.finishReason === 'length',
    frozen: turn.frozen === true,
    penalty: turn.penalty ?? 0,
    stepReward: turn.stepReward ?? 0,
    reward: turn.reward,
    advantage: shownAdvantage(turn.advantage),
  };
}

/**
 * The earlier turns whose words a turn read: those that a message names, and those whose text stands in one. Which code
 * called which is nowhere written down; who read whom is, in the messages.
 */
function turnsRead({ messages = [] }: StoredTurn, earlier: readonly StoredTurn[]): number[] {
  return earlier.flatMap(({ id, text = '' }, i) => {
    const words = text.trim();
    const stands = messages.some(
      ({ role, content, turnId }) =>
        (turnId !== undefined && turnId === id) ||
        (role !== 'system' && words.length >= SHORTEST_WORDS && (content ?? '').includes(words)),
    );
    return stands ? [i] : [];
  });
}

function shownAdvantage(advantage: number | readonly number[] | undefined): number | null {
  if (advantage === undefined) return null;
  return Number((typeof advantage === 'number' ? advantage : mean(advantage)).toPrecision(6));
}

/** A task in words: its question and answer where it has them. */
function taskText(data: unknown): string {
  if (typeof data === 'string') return data;
  if (!isObject(data)) return '';
  return Object.entries(data)
    .map(([name, value]) => `${name}: ${inWords(value)}`)
    .join('\n');
}

const inWords = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

const cut = (text: string) =>
  text.length <= LONGEST_TEXT
    ? text
    : `${text.slice(0, LONGEST_TEXT)}\n… (${text.length - LONGEST_TEXT} more characters in the episode file)`;
