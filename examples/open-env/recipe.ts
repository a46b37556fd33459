/**
 * Trains an agent in an environment that speaks OpenEnv's protocol. Start the environment first (`python
 * examples/open-env/server.py`), or name another one in OPENENV_URL. The demonstrations of the warm start call `step`
 * with a random letter; reinforcement teaches the player the letter that the environment shows.
 */
import { agent, assistant, defineRecipe, defineTeam, type Message, tinyDecoder, toolResult, user } from 'drmas';
import { openEnv } from 'drmas/tasks';

const url = process.env.OPENENV_URL ?? 'http://127.0.0.1:8000';
const game = openEnv({ url, tasks: 200 });

const team = defineTeam({
  name: 'player',
  task: game.task,
  agents: { player: agent({ tools: 'plain', sampling: { maxTokens: 24 }, invalidPenalty: 0.1 }) },
  async play({ task, agents: { player }, signal, log }) {
    const world = await game.open({ task, signal }); // closed at the end of the episode
    log('shown', world.text);
    const messages: Message[] = [user(world.text)];
    while (!world.done && world.steps < 4) {
      const reply = await player(messages, { tools: world.tools, envStep: world.steps });
      const [call] = reply.toolCalls;
      if (call === undefined) break;
      messages.push(assistant(reply), toolResult(call, await world.call(call)));
    }
    return world.total;
  },
  reward: ({ outcome }) => ({ correct: outcome }),
});

const step = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

export default defineRecipe({
  team,
  tasks: {
    ...game,
    trace(random) {
      const messages = [user(random.pick(['a', 'b']))];
      const tools = [{ name: 'step', description: 'What the agent says.', parameters: step }];
      return { agent: 'player', tools, messages, response: `@step(${random.pick(['a', 'b'])})` };
    },
  },
  model: tinyDecoder({ width: 48, layers: 2, heads: 3, feedForward: 128, context: 512, tokenizer: { type: 'bytes' } }),
  warmStart: { steps: 60 },
  training: { steps: 10, tasksPerStep: 8, groupSize: 8 },
  evaluation: { tasks: 32, samples: 1 },
});
