/** Converts episodes on disk to the data that a page shows. */

import { isObject, LogError } from '@drmas/engine/errors';
import { grouped } from '@drmas/engine/host';
import { mean } from '@drmas/engine/math';
import { messageText, responseTokens, turnText } from '@drmas/engine/nouns';
import {
  episodeFault,
  fieldAt,
  type LogPlace,
  type LogRow,
  numberAt,
  rowsAt,
  type StoredEpisode,
} from '../../method/store.js';
import {
  LONGEST_TEXT,
  MOST_TURNS,
  type ShownEpisode,
  type ShownGroup,
  type ShownTurn,
  taskTitle,
} from '../../runs/analysis.js';

/** Shorter texts may occur in a message by chance. */
const SHORTEST_WORDS = 2;

type PageTurn = StoredEpisode['turns'][number];

/** An episode with the fields that a page needs. @throws LogError with file and line if a row is not an episode */
export function checkedEpisode(row: LogRow, place: LogPlace): StoredEpisode {
  const fault = episodeFault(row);
  if (fault !== undefined) throw new LogError(fault, place);
  numberAt(row, 'score.team', place);
  for (const turn of rowsAt(row, 'turns', place)) numberAt(turn, 'reward', place);
  return {
    ...row,
    task: { data: undefined, ...(row.task as object), id: String(fieldAt(row, 'task.id')) },
  } as unknown as StoredEpisode;
}

export function shownGroup(task: string, episodes: readonly StoredEpisode[]): ShownGroup {
  const data = episodes[0]?.task.data;
  const title = taskTitle({ id: task, data });
  return { task, title, data: cut(taskText(data)), episodes: episodes.map(shownEpisode) };
}

function shownEpisode({ sample, score, outcome, log = [], failure, turns: all }: StoredEpisode): ShownEpisode {
  const turns = all.slice(0, MOST_TURNS);
  const more = all.length - turns.length;
  return {
    sample,
    reward: score.team,
    agents: score.agents ?? {},
    parts: score.parts ?? {},
    metrics: score.metrics ?? {},
    outcome: outcome === undefined || outcome === null ? '' : cut(inWords(outcome)),
    log: [
      ...log.map(({ name, value }) => [name, cut(inWords(value))] as const),
      ...(more === 0 ? [] : [['turns', `${grouped(more)} more in the episode file`] as const]),
    ],
    failure: failure === undefined ? null : cut(`${failure.reason}: ${failure.message}`),
    turns: turns.map((turn, i) => shownTurn(turn, turns.slice(0, i))),
  };
}

function shownTurn(turn: PageTurn, earlier: readonly PageTurn[]): ShownTurn {
  return {
    agent: turn.agent,
    messages: (turn.messages ?? []).map(({ content, ...message }) => [
      message.role,
      cut(messageText({ ...message, content: content ?? '' })),
    ]),
    text: cut(turnText({ ...turn, text: turn.text ?? '' })),
    reads: turnsRead(turn, earlier),
    envStep: turn.envStep ?? null,
    tokens: responseTokens({ ...turn, response: turn.response ?? [] }) ?? 0,
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
 * The earlier turns whose text a turn read: turns that a message names, and turns whose text is part of a message. The
 * calls between agents are not recorded, but the messages show who read whom.
 */
function turnsRead({ messages = [] }: PageTurn, earlier: readonly PageTurn[]): number[] {
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

/** A task in words: its question and answer if it has them. */
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
