/** Recognises errors of parsers and frameworks that the agents' texts cause, and not a mistake in the team's code. */

import { isObject } from '@drmas/engine/errors';
import type { Turn } from '@drmas/engine/nouns';
import { judgesTexts } from '../team/agent.js';
import type { Team } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import type { AgentSettings } from './rollout-context.js';

/** The names under which frameworks and parsers report an output that does not fit. */
const MISFITS = new Set([
  ...['AI_NoObjectGeneratedError', 'AI_NoOutputGeneratedError', 'AI_JSONParseError', 'AI_TypeValidationError'],
  ...['ModelBehaviorError', 'OutputParserException', 'StructuredOutputParsingError'],
  ...['LengthFinishReasonError', 'AI_InvalidToolInputError', 'AI_NoSuchToolError'],
  ...[
    'ZodError',
    '$ZodError',
    'ValiError',
    'StructError',
    'SyntaxError',
    'URIError',
    'YAMLParseError',
    'YAMLException',
  ],
]);
/** The errors of a parser that its text does not cause: a name that does not exist, a parser that is async. */
const MISTAKES = new Set(['ReferenceError', 'ArgumentError']);
const NO_FUNCTION = /is not a (?:function|constructor)$/;
/** The names under which frameworks report that agents reached the framework's limit of steps. */
const LIMITS = new Set(['GraphRecursionError', 'MaxTurnsExceededError']);
/** AI SDK's name for a structured output that was not written. Its loop may have ended at its limit of steps. */
const NO_OUTPUT = 'AI_NoOutputGeneratedError';
const MOST_CAUSES = 8;

interface Declared {
  readonly team: Pick<Team, 'agents'>;
  readonly settings: Readonly<Record<string, Pick<AgentSettings, 'invalidPenalty'>>>;
}

/**
 * The failure that an error of `play` or of a parser stands for, if an agent that trains caused it:
 *
 * - `invalid-output` for the error of a parser or framework about an output. At fault is the turn that the error names,
 *   else the last turn if it is invalid, or if its agent has no parser to say so. A turn that the agent's parser
 *   accepted becomes invalid then, in `turns`.
 * - `too-many-turns` for the error of a framework about its limit of steps.
 *
 * All other errors are returned unchanged.
 * @param inParser Whether the parser of the last turn threw. A parser reads the text alone, so the text caused all of
 *   its errors but mistakes of the code, such as the TypeError of `text.match(...)[1]` without a match
 */
export function ofAgents(thrown: unknown, turns: Turn[], { team, settings }: Declared, inParser = false): unknown {
  if (!EpisodeFailure.is(thrown) || thrown.reason !== 'error') return thrown;
  const errors = chainOf(thrown.cause);
  const names = new Set(errors.flatMap(({ name, kind }) => [String(name), String(kind)]));
  if (isAtLimit(names, turns))
    return thrown.with({ reason: 'too-many-turns', message: `the agents did not come to an end: ${thrown.message}` });
  const isMisfit = [...names].some((name) => MISFITS.has(name));
  const isMistake = [...names].some((name) => MISTAKES.has(name)) || NO_FUNCTION.test(thrown.message);
  if (!isMisfit && (!inParser || isMistake)) return thrown;
  const ids = errors.map(({ response }) => (isObject(response) ? response.id : undefined));
  const named = turns.findIndex(({ id }) => id !== undefined && ids.includes(id));
  const at = named === -1 ? turns.length - 1 : named;
  const turn = turns[at];
  if (turn === undefined || turn.frozen === true || (named === -1 && isJudgedValid(turn, team))) return thrown;
  if (turn.valid)
    turns[at] = Object.freeze({
      ...turn,
      valid: false,
      value: undefined,
      penalty: settings[turn.agent]?.invalidPenalty ?? 0,
    });
  const message = `the output of '${turn.agent}' does not fit: ${thrown.message}`;
  return thrown.with({ reason: 'invalid-output', message, agent: turn.agent });
}

/** Whether a parser of the team has accepted a turn, or the turn calls tools. */
function isJudgedValid({ agent, valid, toolCalls }: Turn, { agents }: Declared['team']): boolean {
  const declared = agents[agent];
  return valid && (toolCalls !== undefined || (declared !== undefined && judgesTexts(declared)));
}

/** Whether the errors say that a loop of agents reached a limit. A loop of frozen agents teaches no policy. */
function isAtLimit(names: ReadonlySet<string>, turns: readonly Turn[]): boolean {
  if (turns.every(({ frozen }) => frozen === true)) return false;
  const callsTools = (turns.at(-1)?.toolCalls ?? []).length > 0;
  return [...names].some((name) => LIMITS.has(name) || (name === NO_OUTPUT && callsTools));
}

function chainOf(thrown: unknown): Record<string, unknown>[] {
  const chain: Record<string, unknown>[] = [];
  try {
    for (let error = thrown; isObject(error) && chain.length < MOST_CAUSES; error = error.cause) {
      const { name, response, constructor: { name: kind } = Object } = error as Record<string, unknown> & Error;
      chain.push({ name, kind, response }); // a class of errors may keep the name `Error`
    }
  } catch {
    // The rest of the chain refuses to be read.
  }
  return chain;
}
