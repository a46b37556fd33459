/**
 * Families in which agents decide who acts next, or that nobody does. Only the part `decisions` has them: they came
 * after the plan that ranks estimators by the mean over the eight families.
 */
import { chance, end, type Family, one, share } from './families.js';
import { type Call, codes, type Node, owners, signs, type Ticket } from './game.js';

/** An answer is one of some options with one of several texts. Codes that follow each other share an option. */
interface Asked {
  readonly agent: string;
  readonly role: string;
  readonly round: number;
  readonly options: number;
  /** The right option; the right text follows from the sign. */
  readonly right: number;
  /** The results so far that the future depends on. */
  readonly memory: readonly number[];
}

function decide(
  ticket: Ticket,
  { agent, role, round, options, right, memory }: Asked,
  next: (option: number, isRight: boolean) => Node,
): Call {
  const texts = codes.length / options;
  const rightCode = right * texts + ((ticket.sign + role.length) % texts);
  return {
    kind: 'call',
    agent,
    prompt: `${owners[ticket.owner]} ${signs[ticket.sign]} r${round} ${role} `,
    round,
    right: rightCode,
    state: `${agent} ${role} ${round} ${memory.join(' ')}`,
    after: (choice) => next(choice < 0 ? 0 : Math.floor(choice / texts), choice === rightCode),
  };
}

/** An agent that decides nothing but its text. */
const answer = (
  ticket: Ticket,
  { agent, round, memory }: Pick<Asked, 'agent' | 'round' | 'memory'>,
  next: (isRight: boolean) => Node,
): Call => decide(ticket, { agent, role: agent, round, options: 1, right: 0, memory }, (_, isRight) => next(isRight));

/** The most looks before an answer is due. */
const LOOKS = 5;

const chosenStop: Family = {
  id: 'chosen-stop',
  property: 'an agent decides after each look whether to look again, at a price for that turn, or to answer',
  knob: share('the price of each look, an own reward of its turn', 0.1, 0.5),
  assign: { looker: 'looker' },
  start: {},
  begin(ticket) {
    const from = (looks: number, isFound: boolean): Node => {
      const role = isFound ? 'found' : 'nothing';
      const asked = { agent: 'looker', role, round: looks, options: 2, right: isFound ? 0 : 1, memory: [] };
      return decide(ticket, asked, (option, isRight) => {
        if (option === 0 || looks === LOOKS) {
          const quality = isFound ? (isRight ? 1 : 0.5) : 0.25 * one(isRight);
          return {
            ...end({ answered: quality }, quality),
            turns: [...new Array<number>(looks).fill(-ticket.difficulty), 0],
          };
        }
        if (isFound || looks + 1 === LOOKS) return from(looks + 1, true);
        return chance('seen', [looks, one(isRight)], isRight ? 0.8 : 0.4, (isSeen) => from(looks + 1, isSeen));
      });
    };
    return from(0, false);
  },
};

const EXPERTS = 3;

const whomToAsk: Family = {
  id: 'whom-to-ask',
  property: 'a lead decides which expert to ask, or to answer alone',
  knob: share('the price of asking, taken off the reward of the team', 0.1, 0.5),
  assign: { lead: 'lead', expert1: 'expert1', expert2: 'expert2', expert3: 'expert3' },
  start: { expert1: 0.7, expert2: 0.7, expert3: 0.7 },
  begin(ticket) {
    const right = 1 + (ticket.sign % EXPERTS);
    const asked = { agent: 'lead', role: 'lead', round: 0, options: EXPERTS + 1, right, memory: [] };
    return decide(ticket, asked, (option, isRight) =>
      option === 0
        ? end({ solved: 0.3 }, 0.3)
        : answer(ticket, { agent: `expert${option}`, round: 1, memory: [one(isRight)] }, (isSolved) => {
            const solved = one(isSolved) * (option !== right ? 0.25 : isRight ? 1 : 0.8);
            return end({ solved, asking: -ticket.difficulty }, solved);
          }),
    );
  },
};

const WORKERS = 3;

const spawn: Family = {
  id: 'spawn',
  property: 'a lead decides how many workers to call, and joins their results',
  knob: share('the price of each worker, taken off the reward of the team', 0.1, 0.3),
  assign: { lead: 'lead', worker1: 'worker', worker2: 'worker', worker3: 'worker' },
  start: { worker1: 0.7, worker2: 0.7, worker3: 0.7 },
  begin(ticket) {
    const needed = 1 + (ticket.sign % WORKERS);
    const asked = { agent: 'lead', role: 'lead', round: 0, options: WORKERS + 1, right: needed, memory: [] };
    return decide(ticket, asked, (spawned, isPlanned) => {
      const from = (worker: number, done: number): Node => {
        const memory = [spawned, done, one(isPlanned)];
        if (worker <= spawned)
          return answer(ticket, { agent: `worker${worker}`, round: worker, memory }, (isDone) =>
            from(worker + 1, worker <= needed ? done + one(isDone) : done),
          );
        const join = { agent: 'lead', role: 'join', round: WORKERS + 1, options: 1, right: 0, memory };
        return decide(ticket, join, (_, isJoined) => {
          const solved = (done / needed) * (isJoined ? 1 : 0.5) * (isPlanned ? 1 : 0.9);
          return end({ solved, workers: -ticket.difficulty * spawned }, solved);
        });
      };
      return from(1, 0);
    });
  },
};

export const decisionFamilies: readonly Family[] = [chosenStop, whomToAsk, spawn];
