import { ArgumentError } from '@drmas/engine/errors';
import { Secret } from '@drmas/engine/host';
import { loadPolicy } from '@drmas/engine/node';
import { packageVersion } from '@drmas/engine/platform';
import { serverUrl } from '@drmas/engine/requests';
import { PROFILE_NAMES, type RefereeFinding, type RefereeReport, referee, refereeCases } from '@drmas/tinker';
import { interruptedForGood, jsonText } from '../../command-context.js';
import { argument, defineCommand } from '../../define-command.js';
import { choice, decimal, integer, repeated, text, toggle } from '../../flags.js';
import { type Screen, screenOf, tone } from '../../reporter/screen.js';
import { visible, wrap } from '../../reporter/text-layout.js';

const BUDGET_SECONDS = 300;
const TOLERANCE = 1e-3;

export const server = defineCommand({
  name: 'server',
  description: 'check a server of the Tinker protocol: losses, updates, samples, saved weights, errors',
  details: `checks a server of the Tinker protocol with ${refereeCases.length} cases and prints a line for each. It makes small adapters for them and unloads them afterwards. A case whose difference is known of servers with this profile is a known difference. The exit code is 1 if a core case (\`*\`) neither passes nor is a known difference. \`TINKER_API_KEY\` in the environment is the key`,
  arguments: [argument('url', 'address of the server')],
  flags: {
    json: toggle('print the findings as JSON'),
    profile: choice(
      'name',
      ['auto', ...PROFILE_NAMES],
      'auto',
      'the known server whose differences are expected; auto measures it',
    ),
    model: text('name', "the server's name of the base model (default: the first that it lists)"),
    reference: text('model', 'the same model on this machine: also compare log-probs with those that drmas computes'),
    case: repeated('name', 'only this case; may be repeated'),
    speed: toggle('also measure how many tokens a second the server samples and trains'),
    hostile: toggle('also send a token outside the vocabulary, after which some servers must be restarted'),
    budget: integer(1, `seconds after which no further case begins (default: ${BUDGET_SECONDS})`),
    tolerance: decimal(
      `largest difference of equal log-probs (default: ${TOLERANCE}; a server in 16 bits needs about 0.1)`,
    ),
  },
  examples: [
    'drmas doctor server http://127.0.0.1:8000',
    'drmas doctor server http://127.0.0.1:8000 --reference models/tiny --json',
    'drmas doctor server http://127.0.0.1:8000 --speed',
    'drmas doctor server http://127.0.0.1:8000 --case batches-add --case optimizer-state',
  ],
  async run(context, [url], flags) {
    const { environment, stdout, signal } = context;
    const { json, reference, case: cases, budget = BUDGET_SECONDS, tolerance = TOLERANCE, ...asked } = flags;
    const checked = serverUrl('a server, such as http://127.0.0.1:8000').safeParse(url);
    // The message does not quote the address, which may have a password in it.
    if (!checked.success) throw new ArgumentError(`the server's address: ${checked.error.issues[0]?.message}`);
    if (!(tolerance > 0)) throw new ArgumentError(`--tolerance: expected a number above 0, got ${tolerance}`);
    const unknown = cases.find((name) => refereeCases.every((one) => one.name !== name));
    if (unknown !== undefined)
      throw new ArgumentError(
        `--case: there is no case '${unknown}'; the cases are ${refereeCases.map(({ name }) => name).join(', ')}`,
      );
    const key = environment.TINKER_API_KEY?.trim();
    const screen = screenOf(stdout, environment);
    let area: string | undefined;
    const show = (finding: RefereeFinding) => {
      if (finding.area !== area) stdout.write(`${tone(screen, 'bold', finding.area)}\n`);
      area = finding.area;
      for (const line of findingLines(finding, screen)) stdout.write(`${line}\n`);
    };
    const ours = reference === undefined ? undefined : await loadPolicy(reference, { threads: 1 });
    try {
      const report = await referee({
        ...asked,
        url,
        apiKey: key ? new Secret(key) : undefined,
        cases,
        budgetSeconds: budget,
        tolerance,
        reference:
          ours &&
          ((sequences) =>
            Promise.all(
              sequences.map(async ([first = 0, ...rest]) =>
                Float32Array.of(0, ...(await ours.logprobs([first], rest))),
              ),
            )),
        signal,
        ...(json === true ? {} : { onFinding: show }),
      });
      const whole = { type: 'probe-server', drmas: packageVersion(), time: new Date().toISOString(), ...report };
      if (json === true) stdout.write(`${jsonText(whole)}\n`);
      else for (const line of wrap(visible(summary(report)), screen.width)) stdout.write(`${line}\n`);
      return report.findings.some(fails) ? 1 : 0;
    } catch (error) {
      if (!signal.aborted) throw error;
      return interruptedForGood(context);
    } finally {
      await ours?.dispose();
    }
  },
});

const fails = ({ core, outcome }: RefereeFinding) => core && outcome !== 'pass' && outcome !== 'known difference';

/** The outcome and the name; below a case that does not pass, the numbers. */
function findingLines({ name, core, outcome, detail }: RefereeFinding, screen: Screen): string[] {
  const colour = outcome === 'pass' ? 'green' : outcome === 'known difference' ? 'yellow' : 'red';
  const shown = outcome === 'not offered' || outcome === 'not run' ? 'dim' : colour;
  const head = `  ${tone(screen, shown, outcome.padEnd(16))}  ${name}${core ? ' *' : ''}`;
  if (outcome === 'pass') return [head];
  return [head, ...wrap(visible(detail), screen.width - 20).map((line) => `${' '.repeat(20)}${line}`)];
}

function summary({ profile, seconds, findings, speed }: RefereeReport): string {
  const counted = (['pass', 'known difference', 'differs', 'refused', 'not offered', 'not run'] as const)
    .map((outcome) => [outcome, findings.filter((finding) => finding.outcome === outcome).length] as const)
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => `${count} ${outcome}`);
  const wrong = findings.filter(fails).map(({ name }) => name);
  const core = wrong.length === 0 ? 'no core case (*) fails' : `core cases (*) that fail: ${wrong.join(', ')}`;
  return `${findings.length} cases in ${seconds.toFixed(0)} s, profile ${profile}: ${counted.join(', ')}; ${core}${
    speed ? `; ${Math.round(speed.sampled)} tokens/s sampled, ${Math.round(speed.trained)} trained` : ''
  }`;
}
