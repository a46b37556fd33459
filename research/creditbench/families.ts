/** Eight families of teams. Each has one property that makes credit hard, and a knob for how hard. */
import { type Call, type Chance, codes, type End, type Node, owners, signs, type Ticket } from './game.js';

export interface Knob {
  readonly means: string;
  readonly least: number;
  readonly most: number;
  readonly whole: boolean;
  readonly usual: number;
}

export interface Family {
  readonly id: string;
  /** The reason why credit is hard. */
  readonly property: string;
  readonly knob: Knob;
  /** The knob's value in evaluations. Default: the one of training. */
  readonly evaluatedAt?: number;
  /** Each agent with the name of its policy. */
  readonly assign: Readonly<Record<string, string>>;
  /** The probability that an agent is right before reinforcement. Default: `START`. */
  readonly start: Readonly<Record<string, number>>;
  begin(ticket: Ticket): Node;
}

/** The probability that an agent is right before reinforcement, if its family says nothing else. */
export const START = 0.25;
/** The success of an agent that guesses. */
const GUESS = 1 / codes.length;
/** The most turns of an episode. */
export const MOST_ROUNDS = 16;

/** A role's code is another permutation of the signs for each role. */
const rightCode = ({ sign }: Ticket, role: number) => (3 * sign + 2 * role + 1) % codes.length;

interface Asked {
  readonly agent: string;
  /** The word for the agent's role in its prompt, and its number. */
  readonly role: string;
  readonly number: number;
  readonly round?: number;
  /** The earlier results that the future depends on. */
  readonly memory?: readonly number[];
}

function ask(
  ticket: Ticket,
  { agent, role, number, round = 0, memory = [] }: Asked,
  next: (isRight: boolean, choice: number) => Node,
): Call {
  const right = rightCode(ticket, number);
  return {
    kind: 'call',
    agent,
    prompt: `${owners[ticket.owner]} ${signs[ticket.sign]} r${round} ${role} `,
    round,
    right,
    state: `${agent} ${round} ${memory.join(' ')}`,
    after: (choice) => next(choice === right, choice),
  };
}

export const chance = (
  name: string,
  memory: readonly number[],
  probability: number,
  next: Chance['after'],
): Chance => ({
  kind: 'chance',
  probability,
  state: `${name} ${memory.join(' ')}`,
  after: next,
});

export const end = (team: End['team'], score: number, agents?: End['agents']): End => ({
  kind: 'end',
  team,
  score,
  ...(agents === undefined ? {} : { agents }),
});

export const share = (means: string, usual: number, most = 1): Knob => ({ means, least: 0, most, whole: false, usual });
const count = (means: string, usual: number, least: number, most: number): Knob => ({
  means,
  least,
  most,
  whole: true,
  usual,
});
const each = (...agents: readonly string[]) => Object.fromEntries(agents.map((agent) => [agent, agent]));
export const one = (value: boolean) => (value ? 1 : 0);

const rareCaller: Family = {
  id: 'rare-caller',
  property: 'an agent is called only in a small share of the episodes, which go badly without it',
  knob: share('the share of episodes that do not call the expert', 0.5, 0.95),
  evaluatedAt: 0,
  assign: each('worker', 'expert'),
  start: { worker: 0.9 },
  begin: (ticket) =>
    ask(ticket, { agent: 'worker', role: 'worker', number: 0 }, (usual) =>
      chance('common', [one(usual)], ticket.difficulty, (isCommon) =>
        isCommon
          ? end({ mended: one(usual) }, one(usual))
          : ask(ticket, { agent: 'expert', role: 'expert', number: 1, round: 1 }, (mended) =>
              end({ mended: one(mended) }, one(mended)),
            ),
      ),
    ),
};

const smallOwnReward: Family = {
  id: 'small-own-reward',
  property: "an agent's own reward is small beside the other agent's",
  knob: share('how much smaller: the small reward is 1 minus this', 0.9, 0.99),
  assign: each('major', 'minor'),
  start: {},
  begin: (ticket) =>
    ask(ticket, { agent: 'major', role: 'major', number: 0 }, (major) =>
      ask(ticket, { agent: 'minor', role: 'minor', number: 1, round: 1, memory: [one(major)] }, (minor) => {
        const agents = { major: one(major), minor: (1 - ticket.difficulty) * one(minor) };
        return end({ both: agents.major + agents.minor }, (one(major) + one(minor)) / 2, agents);
      }),
    ),
};

const opposedParts: Family = {
  id: 'opposed-parts',
  property: 'what one agent gains the other one loses',
  knob: share("the share of an agent's gain that the other one loses; at 1 their sum is constant", 1),
  assign: each('left', 'right'),
  start: {},
  begin: (ticket) =>
    ask(ticket, { agent: 'left', role: 'left', number: 0 }, (left) =>
      ask(ticket, { agent: 'right', role: 'right', number: 1, round: 1, memory: [one(left)] }, (right) => {
        const agents = {
          left: one(left) - ticket.difficulty * one(right),
          right: one(right) - ticket.difficulty * one(left),
        };
        return end({ sum: agents.left + agents.right }, (one(left) + one(right)) / 2, agents);
      }),
    ),
};

/** Two agents in turns, for so many rounds; `finish` gets the number of right rounds and whether all were right. */
function rounds(
  ticket: Ticket,
  names: readonly [string, string],
  finish: (rightRounds: number, all: boolean) => End,
): Node {
  const from = (round: number, rightRounds: number): Node => {
    if (round === ticket.difficulty) return finish(rightRounds, rightRounds === round);
    const number = round % 2;
    const agent = names[number === 0 ? 0 : 1];
    return ask(ticket, { agent, role: agent, number, round, memory: [rightRounds] }, (isRight) =>
      from(round + 1, rightRounds + one(isRight)),
    );
  };
  return from(0, 0);
}

const longLoops: Family = {
  id: 'long-loops',
  property: 'many turns share one reward at the end',
  knob: count('the number of turns', 8, 1, MOST_ROUNDS),
  assign: each('planner', 'actor'),
  start: {},
  begin: (ticket) =>
    rounds(ticket, ['planner', 'actor'], (rightRounds) =>
      end({ done: rightRounds / ticket.difficulty }, rightRounds / ticket.difficulty),
    ),
};

const parallelTwins: Family = {
  id: 'parallel-twins',
  property: 'equal agents work at once, and one success is enough',
  knob: count('the number of twins', 4, 1, 8),
  assign: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`twin${i + 1}`, 'twin'])),
  start: Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`twin${i + 1}`, GUESS])),
  begin(ticket) {
    const from = (twin: number, isSolved: boolean): Node => {
      if (twin > ticket.difficulty) return end({ solved: one(isSolved) }, one(isSolved));
      return ask(ticket, { agent: `twin${twin}`, role: 'twin', number: 0, memory: [one(isSolved)] }, (isRight) =>
        from(twin + 1, isSolved || isRight),
      );
    };
    return from(1, false);
  },
};

const freeRider: Family = {
  id: 'free-rider',
  property: "agents that change nothing share the worker's reward and its policy",
  knob: count('the number of riders', 3, 0, 6),
  assign: { worker: 'all', ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`rider${i + 1}`, 'all'])) },
  start: {},
  begin(ticket) {
    const riders = (rider: number, solved: boolean): Node =>
      rider > ticket.difficulty
        ? end({ solved: one(solved) }, one(solved))
        : ask(ticket, { agent: `rider${rider}`, role: 'rider', number: 1, round: rider, memory: [one(solved)] }, () =>
            riders(rider + 1, solved),
          );
    return ask(ticket, { agent: 'worker', role: 'worker', number: 0 }, (solved) => riders(1, solved));
  },
};

const firstError: Family = {
  id: 'first-error',
  property: 'only the first wrong turn is to blame: later ones change nothing any more',
  knob: count('the number of turns, and all must be right', 4, 1, 8),
  assign: each('drafter', 'finisher'),
  start: { drafter: 0.5, finisher: 0.5 },
  begin(ticket) {
    const from = (round: number, good: boolean): Node => {
      if (round === ticket.difficulty) return end({ solved: one(good) }, one(good));
      const number = round % 2;
      const agent = number === 0 ? 'drafter' : 'finisher';
      return ask(ticket, { agent, role: agent, number, round, memory: [one(good)] }, (isRight) =>
        from(round + 1, good && isRight),
      );
    };
    return from(0, true);
  },
};

/** The reward of a decoy, beside 1 for the right code. */
const DECOY = 0.5;

const conflictingRewards: Family = {
  id: 'conflicting-rewards',
  property: 'a second part of the reward pays for wrong choices, and is mostly luck',
  knob: share('the size of the luck: a quarter of its spread, beside 1 for a right team', 0.5),
  assign: each('writer', 'editor'),
  start: {},
  begin(ticket) {
    const judged = (isRight: boolean, choice: number, number: number) =>
      isRight ? [1, 0] : [0, choice === (rightCode(ticket, number) + 4) % codes.length ? 1 : 0];
    return ask(ticket, { agent: 'writer', role: 'writer', number: 0 }, (first, wrote) =>
      ask(
        ticket,
        { agent: 'editor', role: 'editor', number: 1, round: 1, memory: judged(first, wrote, 0) },
        (second, edited) => {
          const [a, b] = [judged(first, wrote, 0), judged(second, edited, 1)] as [number[], number[]];
          const correct = ((a[0] ?? 0) + (b[0] ?? 0)) / 2;
          const style = (DECOY * ((a[1] ?? 0) + (b[1] ?? 0))) / 2;
          return chance('luck', [correct, style], 0.5, (isLucky) =>
            end({ right: correct, style: style + 8 * ticket.difficulty * one(isLucky) }, correct + style),
          );
        },
      ),
    );
  },
};

export const families: readonly Family[] = [
  rareCaller,
  smallOwnReward,
  opposedParts,
  longLoops,
  parallelTwins,
  freeRider,
  firstError,
  conflictingRewards,
];

/** The agents that take part at this difficulty, each with its policy. */
export function assignment(family: Family, difficulty: number): Record<string, string> {
  const called = new Set<string>();
  const visit = (node: Node): void => {
    if (node.kind === 'end') return;
    if (node.kind === 'chance') {
      visit(node.after(true));
      visit(node.after(false));
      return;
    }
    called.add(node.agent);
    visit(node.after(node.right));
  };
  visit(family.begin({ sign: 0, owner: 0, difficulty }));
  return Object.fromEntries(Object.entries(family.assign).filter(([agent]) => called.has(agent)));
}

/** All tickets of a family; every fifth, by a fixed rule, is held out from training. */
export function tickets(difficulty: number): Record<'train' | 'test', readonly Ticket[]> {
  const all = signs.flatMap((_, sign) => owners.map((_, owner) => ({ sign, owner, difficulty })));
  const isHeldOut = ({ sign, owner }: Ticket) => (sign + owner) % 5 === 0;
  return { train: all.filter((ticket) => !isHeldOut(ticket)), test: all.filter(isHeldOut) };
}
