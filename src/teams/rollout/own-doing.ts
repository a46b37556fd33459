/** Recognises errors of parsers and frameworks that are no mistake of the team: most follow from the agents' texts. */

import { isObject, messageOf } from '@drmas/engine/errors';
import type { Turn } from '@drmas/engine/nouns';
import { judgesTexts } from '../team/agent.js';
import type { Team } from '../team/team.js';
import { EpisodeFailure } from './episode-failure.js';
import type { AgentSettings } from './rollout-context.js';
import type { Refusal } from './running-episode.js';

/** The names under which frameworks report an output that does not fit. */
const FRAMEWORK_MISFITS = [
  ...['AI_NoObjectGeneratedError', 'AI_NoOutputGeneratedError', 'AI_JSONParseError', 'AI_TypeValidationError'],
  ...['ModelBehaviorError', 'OutputParserException', 'StructuredOutputParsingError'],
  ...['AI_InvalidToolInputError', 'AI_InvalidToolArgumentsError', 'AI_NoSuchToolError', 'AI_ToolCallRepairError'],
  ...['LengthFinishReasonError', 'InvalidToolInputError', 'ToolInputParsingException'],
  ...['MultipleStructuredOutputsError', 'STRUCTURED_OUTPUT_TRUNCATED', 'STRUCTURED_OUTPUT_OBJECT_UNDEFINED'],
  // A check of an agent's output: OpenAI Agents, VoltAgent.
  ...['OutputGuardrailTripwireTriggered', 'GUARDRAIL_OUTPUT_BLOCKED'],
];
/** These names, and the names that parsers use. */
const MISFITS = new Set([
  ...FRAMEWORK_MISFITS,
  // Libraries of schemas: zod, valibot, superstruct, arktype, TypeBox, Effect; yup, joi and ajv have one name.
  ...['ZodError', '$ZodError', 'ValiError', 'StructError', 'TraversalError', 'ArkErrors', 'AssertError', 'DecodeError'],
  ...['ParseError', 'ValidationError'],
  // Parsers of JSON that is cut, YAML, TOML and CSV.
  ...['JSONRepairError', 'MalformedJSON', 'PartialJSON', 'YAMLParseError', 'YAMLException', 'TomlError', 'CsvError'],
  // JavaScript's own: RangeError of `new Date(text).toISOString()`, InvalidCharacterError of `atob`.
  ...['SyntaxError', 'URIError', 'RangeError', 'InvalidCharacterError', 'ERR_INVALID_URL'],
]);
/** The errors that no text causes: a name or a module that does not exist, a parser that is async. */
const MISTAKES = new Set(['ReferenceError', 'ArgumentError', '$ZodAsyncError', 'ZodAsyncError']);
const MISTAKEN =
  /is not a (?:function|constructor)$|^Assignment to constant|^Cannot assign to read only|^Class constructor /;
/** A RangeError of a loop without an end. A parser may recurse as deep as its text. */
const TOO_DEEP = /^Maximum call stack/;
/** The names under which frameworks report that agents reached the framework's limit of steps. */
const LIMITS = new Set([
  ...['GraphRecursionError', 'MaxTurnsExceededError', 'ModelCallLimitMiddlewareError', 'ToolCallLimitExceededError'],
]);
/** The names of errors of a time limit: of `AbortSignal.timeout` and LangChain, of OpenAI's client. */
const TIME_LIMITS = ['TimeoutError', 'APIConnectionTimeoutError'];
/** AI SDK's name for an output that was not written: its loop ended at its limit of steps, or with a text cut off. */
const NO_OUTPUT = 'AI_NoOutputGeneratedError';
/** The words of the same error of a stream whose first call failed. */
const NO_STREAM = /Check the stream for errors/;
/** The errors that AI SDK throws in place of the error of a call that it has streamed. */
const LOST = [NO_OUTPUT, 'AI_NoObjectGeneratedError'];
const MOST_CAUSES = 8;

/** The circumstances of an error. */
interface Circumstances {
  /**
   * Whether the parser of the last turn threw. A parser reads the text alone, so the text caused all of its errors but
   * mistakes of the code, such as the TypeError of `text.match(...)[1]` without a match.
   */
  readonly inParser?: boolean;
  readonly refusal?: Refusal | undefined;
  /** The agent of the last call that the program gave up. */
  readonly givenUp?: string | undefined;
}

interface Declared {
  readonly team: Pick<Team, 'agents'>;
  readonly settings: Readonly<Record<string, Pick<AgentSettings, 'invalidPenalty'>>>;
}

/**
 * The failure that an error of `play` or of a parser stands for, if the team's code did not cause it:
 *
 * - `invalid-output` for the error of a parser or framework about an output. At fault is the turn that the error names,
 *   else the last turn if it is invalid, or if its agent has no parser to say so. A turn that the agent's parser
 *   accepted becomes invalid then, in `turns`.
 * - `too-many-turns` for the error of a framework about its limit of steps.
 * - The failure of the last refusal, if the error quotes it, or stands in its place.
 * - `timeout` for the error of a time limit at which the program gave a call up. No agent causes it: episodes of a run
 *   wait for one sampler.
 *
 * All other errors are returned unchanged.
 */
export function ofAgents(
  thrown: unknown,
  turns: Turn[],
  { team, settings }: Declared,
  { inParser = false, refusal, givenUp }: Circumstances,
): unknown {
  if (!EpisodeFailure.is(thrown) || thrown.reason !== 'error') return thrown;
  const errors = chainOf(thrown.cause);
  const names = new Set(errors.flatMap(({ name, kind, code, id }) => [name, kind, code, id].map(String)));
  const says = (pattern: RegExp) => errors.some(({ message }) => pattern.test(String(message)));
  const refused = refusal && ofRefusal(thrown, errors, names, refusal, turns);
  if (refused !== undefined) return refused;
  if (givenUp !== undefined && TIME_LIMITS.some((name) => names.has(name))) {
    const message = `a call of '${givenUp}' was given up at a time limit of the program: ${thrown.message}`;
    return thrown.with({ reason: 'timeout', message, agent: givenUp });
  }
  if (names.has(NO_OUTPUT) && says(NO_STREAM)) return thrown;
  if (isAtLimit(names, turns))
    return thrown.with({ reason: 'too-many-turns', message: `the agents did not come to an end: ${thrown.message}` });
  const isMisfit = [...names].some((name) => MISFITS.has(name)) && !says(TOO_DEEP);
  const isMistake = [...names].some((name) => MISTAKES.has(name)) || says(MISTAKEN);
  if (isMistake || (!isMisfit && !inParser)) return thrown;
  const lastOf = (is: (error: Record<string, unknown>, turn: Turn) => boolean) =>
    turns.findLastIndex((turn) => errors.some((error) => is(error, turn)));
  const named = lastOf(isAbout);
  const last = names.has(NO_OUTPUT) ? turns.findLastIndex(isUnfinished) : turns.length - 1;
  // Of agents that `play` asks at the same time, any may have written the text that JSON.parse refused.
  const at = [named, lastOf(failsAlike), lastOf(isQuoted)].find((each) => each !== -1) ?? last;
  const turn = turns[at];
  if (turn === undefined || turn.frozen === true) return thrown;
  // Frameworks refuse an answer that was cut off, also one that the agent's parser accepts.
  const isRefusedCut = turn.finishReason === 'length' && FRAMEWORK_MISFITS.some((name) => names.has(name));
  if (named === -1 && !isRefusedCut && isJudgedValid(turn, team)) return thrown;
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

/** Whether an error names a turn: AI SDK by the id of the response, a guardrail of OpenAI Agents by the text. */
function isAbout({ response, result }: Record<string, unknown>, { id, text, content = text }: Turn): boolean {
  return (
    (isObject(response) && id !== undefined && response.id === id) ||
    (isObject(result) && result.agentOutput === content)
  );
}

/** Whether JSON.parse refuses a text of a turn with the words of an error. */
function failsAlike({ message }: Record<string, unknown>, { text, content = text, toolCalls = [] }: Turn): boolean {
  if (!/JSON/.test(String(message))) return false;
  return [text, content, ...toolCalls.map((call) => call.arguments)].some((written) => {
    try {
      JSON.parse(written);
      return false;
    } catch (error) {
      return messageOf(error) === message;
    }
  });
}

/** The end of an error of JSON.parse, behind the text, or a part of it, that it quotes. */
const QUOTED = /"(?:\.\.\.)? is not valid JSON$/;

/** Whether an error of JSON.parse quotes a turn: `play` may have cut the text out of its answer. */
function isQuoted({ message }: Record<string, unknown>, { text }: Turn): boolean {
  const said = String(message);
  const quoted = said.slice(said.indexOf('"') + 1, Math.max(0, said.search(QUOTED)));
  return quoted !== '' && text.includes(quoted);
}

/** Whether a parser of the team has accepted a turn, or the turn calls tools. */
function isJudgedValid({ agent, valid, toolCalls }: Turn, { agents }: Declared['team']): boolean {
  const declared = agents[agent];
  return valid && (toolCalls !== undefined || (declared !== undefined && judgesTexts(declared)));
}

/** Whether the errors say that a loop of agents reached a limit. A loop of frozen agents teaches no policy. */
function isAtLimit(names: ReadonlySet<string>, turns: readonly Turn[]): boolean {
  if (turns.every(({ frozen }) => frozen === true)) return false;
  const callsTools = (turns.findLast(isUnfinished)?.toolCalls ?? []).length > 0;
  return [...names].some((name) => LIMITS.has(name) || (name === NO_OUTPUT && callsTools));
}

/** Whether AI SDK has no output after a turn: it calls tools, or was cut off. */
const isUnfinished = ({ toolCalls = [], finishReason }: Turn) => toolCalls.length > 0 || finishReason !== 'stop';

/** The failure of a refused call, if the error that `play` threw quotes the refusal or stands in its place. */
function ofRefusal(
  thrown: EpisodeFailure,
  errors: readonly Record<string, unknown>[],
  names: ReadonlySet<string>,
  { error, turns: before }: Refusal,
  turns: readonly Turn[],
): EpisodeFailure | undefined {
  const refused = EpisodeFailure.of('error', error);
  const text = messageOf(error);
  if (text !== '' && errors.some(({ message }) => String(message).includes(text)))
    return refused.reason === 'error' ? undefined : thrown.with({ reason: refused.reason });
  const isLost = turns.length === before && LOST.some((name) => names.has(name));
  const { stack } = thrown.record;
  return isLost ? refused.with(stack === undefined ? {} : { stack }) : undefined;
}

/** An error, its causes, and the errors that an AggregateError joins. */
function chainOf(thrown: unknown): Record<string, unknown>[] {
  const chain: Record<string, unknown>[] = [];
  const rest = [thrown];
  try {
    while (rest.length > 0 && chain.length < MOST_CAUSES) {
      const error = rest.shift();
      if (!isObject(error)) continue;
      const {
        name,
        message,
        code,
        id,
        response,
        result,
        constructor: { name: kind } = Object,
      } = error as Record<string, unknown> & Error;
      chain.push({ name, message, code, id, response, result, kind }); // a class of errors may keep the name `Error`
      // VoltAgent's name for a cause is `originalError`.
      rest.push(error.cause, error.originalError, ...(error instanceof AggregateError ? error.errors : []));
    }
  } catch {
    // The rest of the chain refuses to be read.
  }
  return chain;
}
