/** Recognises that `play` threw because a model's output did not fit, and not because the team has a mistake. */
import { isObject } from '../../base/errors.js';
import type { Turn } from '../../base/nouns.js';
import { EpisodeFailure } from './episode-failure.js';
import type { AgentSettings } from './rollout-context.js';

/** The names under which frameworks and parsers report an output that does not fit. */
const MISFITS = new Set([
  ...['AI_NoObjectGeneratedError', 'AI_NoOutputGeneratedError', 'AI_JSONParseError', 'AI_TypeValidationError'],
  ...['ModelBehaviorError', 'OutputParserException', 'StructuredOutputParsingError'],
  ...['ZodError', '$ZodError', 'SyntaxError'],
]);
/** The most causes of an error to read. */
const MOST_CAUSES = 8;

/**
 * The failure `invalid-output` if `play` threw the error of a framework about an output, and a turn of an agent that
 * trains is at fault: the turn that the error names, else the last turn if it is invalid. A turn that the agent's
 * parser accepted becomes invalid then, in `turns`. All other errors are returned unchanged.
 */
export function asMisfit(
  thrown: unknown,
  turns: Turn[],
  agents: Readonly<Record<string, Pick<AgentSettings, 'invalidPenalty'>>>,
): unknown {
  if (!EpisodeFailure.is(thrown) || thrown.reason !== 'error') return thrown;
  const errors = chainOf(thrown.cause);
  if (!errors.some(({ name }) => MISFITS.has(String(name)))) return thrown;
  const ids = errors.map(({ response }) => (isObject(response) ? response.id : undefined));
  const named = turns.findIndex(({ id }) => id !== undefined && ids.includes(id));
  const at = named === -1 ? turns.length - 1 : named;
  const turn = turns[at];
  if (turn === undefined || turn.frozen === true || (named === -1 && turn.valid)) return thrown;
  if (turn.valid)
    turns[at] = Object.freeze({
      ...turn,
      ...{ valid: false, value: undefined, penalty: agents[turn.agent]?.invalidPenalty ?? 0 },
    });
  const message = `the output of '${turn.agent}' does not fit: ${thrown.message}`;
  return thrown.with({ reason: 'invalid-output', message, agent: turn.agent });
}

/** An error and its causes, as far as they can be read. */
function chainOf(thrown: unknown): Record<string, unknown>[] {
  const chain: Record<string, unknown>[] = [];
  try {
    for (let error = thrown; isObject(error) && chain.length < MOST_CAUSES; error = error.cause) {
      const { name, response } = error;
      chain.push({ name, response });
    }
  } catch {
    // The rest of the chain refuses to be read.
  }
  return chain;
}
