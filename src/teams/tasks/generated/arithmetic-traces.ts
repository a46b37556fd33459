import type { RandomStream } from '@drmas/engine/math';
import { assistant, type Trace, user } from '@drmas/engine/nouns';
import { apply, type Chain, chainQuestion, result, type Step, stepText, twoDigits } from './arithmetic-chain.js';

const APPROVE = '<approve>';
const REJECT = '<reject>';

/** The composition of demonstrations; every number is a probability. */
export interface DemonstrationSettings {
  /** A trace demonstrates the solver, otherwise the verifier. */
  readonly solver: number;
  /** The solver works line by line, otherwise it answers at once. */
  readonly worked: number;
  /** The solver's demonstration tries to be a second attempt after a wrong, rejected draft; its answer is worked. */
  readonly second: number;
  /** The draft before the verifier was written with errors. */
  readonly corrupted: number;
  /** A line of a draft with errors goes wrong. */
  readonly lineErrors: number;
}

interface Draft {
  readonly text: string;
  readonly total: number;
}

/** Draws a demonstration of one of the two agents. `draw` returns a chain of the wanted split. */
export function demonstration(
  random: RandomStream,
  settings: DemonstrationSettings,
  top: number,
  draw: () => Chain,
): Trace {
  const trace = random.chance(settings.solver) ? solverTrace : verifierTrace;
  return trace(random, settings, top, draw());
}

function solverTrace(random: RandomStream, settings: DemonstrationSettings, top: number, chain: Chain): Trace {
  const question = user(chainQuestion(chain));
  const worked = random.chance(settings.worked);
  if (random.chance(settings.second)) {
    const rejected = draft(random, chain, random.chance(0.5), settings.lineErrors, top);
    if (rejected.total !== result(chain)) {
      const messages = [question, assistant(rejected.text), user(REJECT)];
      return { agent: 'solver', messages, response: draft(random, chain, true, 0, top).text };
    }
  }
  return { agent: 'solver', messages: [question], response: draft(random, chain, worked, 0, top).text };
}

function verifierTrace(random: RandomStream, settings: DemonstrationSettings, top: number, chain: Chain): Trace {
  const worked = random.chance(0.5);
  const lineErrors = random.chance(settings.corrupted) ? settings.lineErrors : 0;
  const { text, total } = draft(random, chain, worked, lineErrors, top);
  const messages = [user(chainQuestion(chain)), assistant(text)];
  return { agent: 'verifier', messages, response: total === result(chain) ? APPROVE : REJECT };
}

/**
 * A solver's text: each step with its total and the boxed answer, or the answer alone. With probability `lineErrors` a
 * step's total is replaced by a wrong one, provided that every later total still lies in 0..top.
 */
function draft(random: RandomStream, chain: Chain, worked: boolean, lineErrors: number, top: number): Draft {
  let total = chain.start;
  const lines = chain.steps.map((step, index) => {
    total = apply(total, step);
    if (lineErrors > 0 && random.chance(lineErrors)) {
      const slip = random.chance(0.6) ? total + random.pick([-10, 10, -1, 1, -2, 2]) : random.integer(0, top);
      if (staysInside(slip, chain.steps.slice(index + 1), top)) total = slip;
    }
    return `${stepText(step, index)}=${twoDigits(total)}`;
  });
  return { text: `${worked ? lines.join('') : ''}\\boxed{${twoDigits(total)}}`, total };
}

function staysInside(total: number, steps: readonly Step[], top: number): boolean {
  let next = total;
  for (const step of steps) {
    if (next < 0 || next > top) return false;
    next = apply(next, step);
  }
  return next >= 0 && next <= top;
}
