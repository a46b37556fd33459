import { assistant, RecipeError, type TaskSource, type Trace, user } from 'drmas';
import { checkedOptions, isHeldOut, permutation, type RandomStream, type Split } from 'drmas/tasks';
import { z } from 'zod';

const share = z.number().min(0).max(1);

export const ticketsSettings = z.strictObject({
  lines: z.int().min(2).max(8).default(4).describe('The number of product lines, 2 to 8; each has a specialist.'),
  rare: share
    .default(0.25)
    .describe('The share of episodes whose device is of the rare batch, which only a patch of its line mends.'),
  demonstrations: z
    .strictObject({
      specialists: share
        .default(0.5)
        .describe('The share of demonstrations that show a specialist; the rest show triage and generalist alike.'),
      rare: share
        .default(0.8)
        .describe("The share of the specialists' demonstrations about the rare batch, whose patches no agent knows."),
    })
    .prefault({})
    .describe("The content of the warm start's demonstrations."),
});

/** The options of `tickets`. */
export type TicketsOptions = z.input<typeof ticketsSettings>;

export interface TicketTask {
  /** Customer, product line and symptom: `ann phone slow`. */
  readonly ticket: string;
  readonly line: string;
  readonly symptom: string;
  /** The probability that an episode's device is of the rare batch. */
  readonly rare: number;
}

type Batch = 'common' | 'rare';

const allLines = ['router', 'phone', 'watch', 'camera', 'printer', 'speaker', 'tablet', 'drone'] as const;
const symptoms = ['silent', 'slow', 'hot', 'frozen', 'blank', 'loud', 'lost', 'full'] as const;
const customers = ['ann', 'bob', 'cem', 'dia', 'eva', 'finn', 'gil', 'hal', 'ira', 'jo'] as const;
/** The remedy of the common batch, by symptom. */
const remedies = ['reboot', 'update', 'cool', 'reset', 'charge', 'mute', 'pair', 'clean'] as const;
const patches = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8'] as const;

/** The product lines. A desk has the first few of them. Each is also the name of its specialist. */
export const ticketLines: readonly string[] = allLines;

/** The system prompt of an agent of the desk. */
export const deskPrompt = (agent: string): string => `<${agent}>`;

/** The words of a customer who comes back because the device is not mended. */
export const comebackText = (batch: Batch): string => `still broken, ${batch} batch`;

/**
 * All symbols of this family's texts, for a model with one token for each. Words within a text begin with a space, so
 * that a text can be cut in one way only.
 */
export const ticketSymbols: readonly string[] = [
  ...['<end>', '<ask>', ...['triage', 'generalist', ...allLines].map(deskPrompt)],
  ...customers,
  ...[...allLines, ...symptoms].map((word) => ` ${word}`),
  ...allLines,
  ...[...remedies, ...patches],
  ...[comebackText('common'), comebackText('rare')],
];

/** The fix that mends a device: the usual remedy in the common batch, in the rare one a patch of the line's own. */
export function fixOf({ line, symptom }: Pick<TicketTask, 'line' | 'symptom'>, batch: Batch): string {
  const index = symptoms.indexOf(symptom as (typeof symptoms)[number]);
  const fix = batch === 'common' ? remedies[index] : patches[permutation(patches.length, 'tickets', line)[index] ?? -1];
  if (fix === undefined) throw new RecipeError(`there is no symptom '${symptom}'`);
  return fix;
}

/** The remedy or patch that a text consists of; `undefined` for any other text. */
export function ticketFix(text: string): string | undefined {
  return [...remedies, ...patches].find((fix) => fix === text);
}

/** The share of held-out tickets. */
const HELD_OUT_SHARE = 0.2;

type Ticket = Omit<TicketTask, 'rare'>;

function ticketsOf(split: Split, lines: number): [Ticket, ...Ticket[]] {
  const all = allLines
    .slice(0, lines)
    .flatMap((line) =>
      symptoms.flatMap((symptom) =>
        customers.map((customer) => ({ ticket: `${customer} ${line} ${symptom}`, line, symptom })),
      ),
    );
  return all.filter(({ ticket }) => isHeldOut(ticket, HELD_OUT_SHARE) === (split === 'test')) as [Ticket];
}

/**
 * Tickets of a support desk, such as `ann phone slow`. The usual remedy mends a device of the common batch; one of the
 * rare batch needs a patch that depends on product line and symptom. Which batch it is turns out in the episode: it is
 * for the team to draw, with the probability `rare`. `trace` demonstrates a triage that names the line, a generalist
 * who names the usual remedy, and the specialists of the lines, who know how a patch is called and not which one mends
 * what.
 *
 * @throws RecipeError naming the setting that is wrong.
 *
 * @example
 * ```ts
 * import { tickets } from 'drmas/recipes/desk/world';
 *
 * const tasks = tickets({ lines: 6 });
 * ```
 */
export function tickets(options: TicketsOptions = {}): TaskSource<TicketTask> {
  const settings = checkedOptions('tickets', ticketsSettings, options);
  return {
    name: 'tickets',
    settings,
    configure: (changed) => tickets(changed as TicketsOptions),
    load: async (split) => {
      const all = ticketsOf(split, settings.lines);
      const order = permutation(all.length, 'tickets', split);
      return {
        name: `tickets ${split}`,
        size: all.length,
        at: (index) => {
          const ticket = all[order[index] ?? 0] ?? all[0];
          return {
            id: ticket.ticket,
            data: { ...ticket, rare: settings.rare },
            metadata: { line: ticket.line, symptom: ticket.symptom },
          };
        },
      };
    },
    trace(random, split) {
      const ticket = random.pick(ticketsOf(split, settings.lines));
      const { specialists, rare } = settings.demonstrations;
      if (random.chance(specialists)) return specialistTrace(random, ticket, random.chance(rare) ? 'rare' : 'common');
      const messages = [user(ticket.ticket)];
      return random.chance(0.5)
        ? { agent: 'triage', messages, response: ticket.line }
        : { agent: 'generalist', messages, response: fixOf(ticket, 'common') };
    },
  };
}

/** After the usual remedy has failed any patch is tried; after a wrong one, the usual remedy. */
function specialistTrace(random: RandomStream, ticket: Ticket, batch: Batch): Trace {
  const usual = fixOf(ticket, 'common');
  const others = remedies.filter((remedy) => remedy !== usual) as unknown as [string, ...string[]];
  const tried = batch === 'rare' ? usual : random.pick(others);
  return {
    agent: ticket.line,
    messages: [user(ticket.ticket), assistant(tried), user(comebackText(batch))],
    response: batch === 'rare' ? random.pick(patches) : usual,
  };
}
