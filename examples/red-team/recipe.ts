/**
 * Training against an adversary. A scout sees the weather and reports it to the captain, who also has two instruments
 * that are right four times out of five. With a given probability the adversary rewrites one of the three messages
 * before the captain reads them. The adversary earns the team's loss and has its own learning rate. A captain trained
 * without it believes the scout; a captain trained with it believes two sources that agree. Half of the held-out tasks
 * are attacked: there the scout's message is always reversed, for any skill of the adversary.
 *
 *     npx drmas ablate examples/red-team/recipe.ts --vary tasks.train.attack=0,0.5 --seeds 5
 */
import { agent, choiceTable, defineRecipe, defineTeam, oneOf } from 'drmas';
import { z } from 'zod';

const skies = ['sun', 'rain'] as const;
type Sky = (typeof skies)[number];
const turned = (sky: Sky): Sky => (sky === 'sun' ? 'rain' : 'sun');
const rewrites = ['nothing', 'the scout', 'the first', 'the second'] as const;
const RIGHT = 0.8;

/** The captain's prompt: the words of the scout and of the instruments. */
const reports = (scout: Sky, first: Sky, second: Sky) => `${scout}, ${first}, ${second}`;
const everyReport = skies.flatMap((a) => skies.flatMap((b) => skies.map((c) => reports(a, b, c))));

const choosing = <const Choice extends string>(...choices: readonly Choice[]) =>
  agent({ parse: oneOf(...choices), sampling: { maxTokens: 1 } });

export const team = defineTeam({
  name: 'red team',
  task: z.object({ sky: z.enum(skies), attack: z.number(), held: z.boolean() }),
  agents: {
    scout: choosing('it is bright', 'it is grey'),
    adversary: choosing(...rewrites),
    captain: choosing('sail', 'stay'),
  },
  async play({ task: { sky, attack, held }, agents: { scout, adversary, captain }, random }) {
    const instrument = () => (random.chance(RIGHT) ? sky : turned(sky));
    const seen = (await scout(sky)).value === 'it is bright' ? 'sun' : 'rain';
    let [scouted, first, second]: [Sky, Sky, Sky] = [seen, instrument(), instrument()];
    const isAttacked = random.chance(attack);
    if (isAttacked) {
      const rewritten = held ? 'the scout' : (await adversary(scouted)).value;
      if (rewritten === 'the scout') scouted = turned(scouted);
      if (rewritten === 'the first') first = turned(first);
      if (rewritten === 'the second') second = turned(second);
    }
    const { value: order } = await captain(reports(scouted, first, second));
    return { right: (order === 'sail') === (sky === 'sun'), isAttacked };
  },
  reward: ({ outcome: { right } }) => ({ team: right, agents: { adversary: right ? 0 : 1 } }),
  metrics: ({ outcome: { right, isAttacked } }) => ({
    attacked: isAttacked ? right : undefined,
    alone: isAttacked ? undefined : right,
  }),
});

type Data = z.infer<typeof team.task>;

const tasks = ({ attack }: Pick<Data, 'attack'>) => ({
  name: 'weather',
  settings: { attack },
  configure: (changed: unknown) => tasks(changed as Pick<Data, 'attack'>),
  load: async (split: 'train' | 'test') => {
    const held = split === 'test';
    const at = (index: number) => {
      const sky = skies[index % 2] ?? 'sun';
      return { id: `${split} ${index}`, data: { sky, held, attack: held ? Math.floor(index / 2) % 2 : attack } };
    };
    return { name: `weather ${split}`, size: 64, at };
  },
});

const learns = (choices: readonly string[], features: readonly string[], learningRate: number) => ({
  model: choiceTable({ choices, features }),
  optimizer: { learningRate },
});

export default defineRecipe({
  team,
  tasks: tasks({ attack: 0.5 }),
  policies: {
    scout: learns(['it is bright', 'it is grey'], skies, 0.1),
    adversary: learns(rewrites, skies, 0.2),
    captain: learns(['sail', 'stay'], everyReport, 0.1),
  },
  training: { steps: 60, tasksPerStep: 8, groupSize: 8 },
  evaluation: { every: 30, tasks: 64, samples: 8 },
});
