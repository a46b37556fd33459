/**
 * A team made for measurements: a worker answers each ticket. In a random share of the episodes the usual remedy fails,
 * and the expert of the ticket's product is called. Settings of the tasks control how often that happens, how the other
 * episodes end, how often an expert may try and earns, so that one of them can vary while the others stay. The
 * warm start teaches the worker its trade, and the experts only the form of an answer.
 */
import {
  type Agent,
  agent,
  defineRecipe,
  defineTeam,
  type RecipeDefinition,
  type TaskSource,
  tinyDecoder,
  user,
} from 'drmas';
import { RandomStream } from 'drmas/tasks';
import { z } from 'zod';

const MOST_EXPERTS = 8;
const products = ['router', 'phone', 'watch', 'camera', 'printer', 'scanner', 'screen', 'speaker'] as const;
const faults = ['silent', 'slow', 'hot', 'frozen', 'blank', 'loud', 'lost', 'full'] as const;
const remedies = ['reboot', 'update', 'cool', 'reset', 'charge', 'mute', 'pair', 'clean'] as const;
const codes = ['k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', 'k8'] as const;
const owners = Array.from({ length: 40 }, (_, i) => `owner${i + 1}`);

const share = z.number().min(0).max(1);
const knobs = z.strictObject({
  /** The share of episodes in which the usual remedy fails and an expert is called. */
  rare: share.default(0.25),
  /** The success of the other episodes, in which only the worker acts. */
  common: share.default(1),
  /** The most calls of the expert in an episode; it is called again while it is wrong. */
  tries: z.int().min(1).max(4).default(1),
  /** An expert's reward for a right code, in place of the team's reward; 0: it shares the team's reward. */
  scale: z.number().min(0).default(0),
  /** Is added to the team's reward: where its zero lies. */
  zero: z.number().default(0),
});
type Knobs = z.output<typeof knobs>;

const ticketSchema = knobs.extend({ owner: z.string(), product: z.enum(products), fault: z.enum(faults) });
type Ticket = z.output<typeof ticketSchema>;

const remedyOf = ({ fault }: Ticket) => remedies[faults.indexOf(fault)] ?? '';
/** The codes that repair the rare case: another permutation of the codes for each product. */
const codeOf = ({ product, fault }: Ticket) =>
  codes[(faults.indexOf(fault) * 3 + products.indexOf(product) * 2 + 1) % codes.length] ?? '';

const workerPrompt = ({ owner, product, fault }: Ticket) => `${owner} says ${product} ${fault} worker `;
const expertPrompt = ({ owner, product, fault }: Ticket, failed: readonly string[]) =>
  `${owner} says ${product} ${fault} ${failed.map((code) => `${code} fails `).join('')}expert `;

const oneWord = (words: readonly string[]) => (text: string) => words.find((word) => word === text.trim());

function escalationTeam(experts: number) {
  const names = products.slice(0, experts);
  const worker = agent({ parse: oneWord(remedies), sampling: { maxTokens: 3 } });
  const expert = agent({ parse: oneWord(codes), sampling: { maxTokens: 3 } });
  const agents: Record<string, Agent<string>> = Object.fromEntries([
    ['worker', worker],
    ...names.map((name) => [name, expert] as const),
  ]);
  return defineTeam({
    name: 'escalation',
    task: ticketSchema,
    agents,
    async play({ task, agents, random }) {
      const [rare, lucky] = [random.chance(task.rare), random.chance(task.common)];
      const remedy = await agents.worker?.(workerPrompt(task));
      const usual = remedy?.value === remedyOf(task);
      if (!rare) return { answer: usual && lucky ? 'mended' : 'lost', worked: usual && lucky, mended: false };
      const failed: string[] = [];
      let mended = false;
      while (!mended && failed.length < task.tries) {
        const reply = await agents[task.product]?.(expertPrompt(task, failed));
        mended = reply?.value === codeOf(task);
        failed.push(reply?.value ?? codes[0]);
      }
      return { answer: mended ? 'mended' : 'lost', worked: usual && lucky, mended };
    },
    reward: ({ outcome: { answer, worked, mended }, task }) =>
      task.scale === 0
        ? { mended: Number(answer === 'mended') + task.zero }
        : { team: worked ? 1 : 0, agents: Object.fromEntries(names.map((name) => [name, mended ? task.scale : 0])) },
  });
}

/** Tickets about the products of the first experts; one in five is held out. */
function tickets(experts: number, settings: Knobs): TaskSource<Ticket> {
  const all = products
    .slice(0, experts)
    .flatMap((product) => faults.flatMap((fault) => owners.map((owner) => ({ owner, product, fault }))));
  const isHeldOut = (i: number) => new RandomStream('held out', i).chance(0.2);
  const train = all.filter((_, i) => !isHeldOut(i));
  const test = all.filter((_, i) => isHeldOut(i));
  return {
    name: 'tickets',
    settings,
    configure: (changed) => tickets(experts, knobs.parse(changed)),
    load: async (split) => {
      const list = split === 'train' ? train : test;
      const at = (index: number) => {
        const ticket = { ...(list[index % list.length] as (typeof list)[number]), ...settings };
        return { id: `${ticket.owner} ${ticket.product} ${ticket.fault}`, data: ticket };
      };
      return { name: `tickets ${split}`, size: list.length, at };
    },
    trace(random, split) {
      const list = split === 'train' ? train : test;
      const ticket = { ...(list[random.integer(0, list.length - 1)] as (typeof list)[number]), ...settings };
      if (random.chance(0.4))
        return { agent: 'worker', messages: [user(workerPrompt(ticket))], response: `${remedyOf(ticket)} ` };
      const guess = () => random.pick(codes);
      const failed = Array.from({ length: random.integer(0, settings.tries - 1) }, guess);
      return { agent: ticket.product, messages: [user(expertPrompt(ticket, failed))], response: `${guess()} ` };
    },
  };
}

/** The recipe for a team with so many experts. */
export function escalation(experts: number): RecipeDefinition {
  if (!Number.isInteger(experts) || experts < 1 || experts > MOST_EXPERTS)
    throw new RangeError(`experts: expected 1 to ${MOST_EXPERTS}, got ${experts}`);
  const words = [...products, ...faults, ...remedies, ...codes, ...owners, 'says', 'fails', 'worker', 'expert'];
  return defineRecipe({
    team: escalationTeam(experts),
    tasks: tickets(experts, knobs.parse({})),
    model: tinyDecoder({
      width: 48,
      layers: 2,
      heads: 4,
      feedForward: 128,
      context: 32,
      embeddingDeviation: 0.5,
      tokenizer: {
        type: 'symbols',
        symbols: ['<end>', ': ', ...words.map((word) => `${word} `)],
        stop: '<end>',
        endOfUser: ': ',
        endOfAssistant: '<end>',
      },
    }),
    warmStart: { steps: 300, batch: 64, learningRate: 4e-3 },
    training: { steps: 100, tasksPerStep: 16, groupSize: 16, keepEpisodes: false, checkpointEvery: 1000 },
    evaluation: { every: 20, tasks: 64, samples: 8 },
  });
}
