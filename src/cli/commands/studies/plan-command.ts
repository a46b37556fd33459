import { RecipeError } from '../../../core/errors.js';
import { nodeHost } from '../../../platform/node-host.js';
import { requestRecipe } from '../../../run/request.js';
import { readMachine, writeMachine } from '../../../studies/plan/machine.js';
import { interruptedForGood, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { device, integer, repeated, set, text, threads, toggle, withDevice } from '../../flags.js';
import { forecastLines } from '../../reporter/planning/forecast-printer.js';
import { warmupLines } from '../../reporter/progress-printer.js';
import { screenOf } from '../../reporter/screen.js';
import { StatusLines } from '../../reporter/status-lines.js';
import { wrap } from '../../reporter/text-layout.js';

/** Seconds of playing and learning, and episodes at once, where nothing is said. */
const SECONDS = 60;
const AT_ONCE = '1,10,100,1000,10000';

export const plan = defineCommand({
  name: 'plan',
  description: 'what a run will take before it is paid for: tokens, memory, hours, price, here and elsewhere',
  details:
    'plays and learns for a minute, fits the speed of sampler and trainer to what that took, and simulates the run with 1 to 10,000 episodes at once, in step and with a step played ahead. `--machine FILE` forecasts it for other machines, servers and clusters; `--save FILE` writes what was measured here as such a file. `train --dry-run` counts without playing',
  arguments: [argument('recipe', 'name of a recipe that ships, or a TypeScript file')],
  flags: {
    machine: repeated('file', 'a machine by its speed and price, as --save writes it; may be repeated'),
    save: text('file', 'write what was measured here as the file of a machine'),
    atOnce: text('n,n', `episodes at once (default: ${AT_ONCE})`),
    seconds: integer(1, `seconds to play and learn (default: ${SECONDS})`),
    set,
    seed: integer(0, 'seed of tasks and sampling'),
    device,
    threads,
    json: toggle('print the forecast as JSON'),
  },
  examples: [
    'drmas plan math',
    'drmas plan my-team.ts --save here.json',
    'drmas plan my-team.ts --machine rented.json --at-once 64,512',
  ],
  async run(context, [source], flags) {
    const { recipe } = await requestRecipe(source, withDevice(flags));
    const machines = await Promise.all(flags.machine.map(readMachine));
    const atOnce = numbers(flags.atOnce ?? AT_ONCE);
    const { signal, stdout, environment } = context;
    const { width } = screenOf(stdout, environment);
    const status = new StatusLines(screenOf(context.stderr, environment));
    const notify = (message: string) => status.say(...wrap(message, width));
    try {
      const host = nodeHost({ threads: flags.threads, signal, notify });
      const options = { machines, atOnce, seconds: flags.seconds ?? SECONDS, onWarmup: warmupLines(status, width) };
      const forecast = await context.work.forecastRun(recipe, host, options).finally(() => status.say());
      const [here] = forecast.machines;
      if (flags.save !== undefined && here !== undefined) await writeMachine(flags.save, here.machine);
      const lines =
        flags.json === true ? [jsonText({ type: 'forecast', ...forecast })] : forecastLines(forecast, width);
      for (const line of lines) stdout.write(`${line}\n`);
      return 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    }
  },
});

function numbers(words: string): number[] {
  return words.split(',').map((word) => {
    const value = Number(word);
    if (word.trim() !== '' && Number.isSafeInteger(value) && value >= 1 && value <= 100_000) return value;
    throw new RecipeError(`expected --at-once 1,16,256 with numbers from 1 to 100000, got '${words}'`);
  });
}
