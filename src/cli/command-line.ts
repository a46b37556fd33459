import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { EXPORT_FORMATS } from '../backends/backend-declaration.js';
import { DrmasError, messageOf } from '../core/errors.js';
import { packageVersion } from '../platform/package-version.js';
import type { CommandContext } from './command-context.js';
import { type AblateFlags, ablateCommand } from './commands/ablate-command.js';
import { doctorCommand } from './commands/doctor-command.js';
import { type EvaluateFlags, evaluateCommand } from './commands/evaluate-command.js';
import { type ExportFlags, exportCommand } from './commands/export-command.js';
import { initCommand } from './commands/init-command.js';
import { type InspectFlags, inspectCommand } from './commands/inspect-command.js';
import { type ProbeFlags, probeCommand } from './commands/probe-command.js';
import { recipesCommand, showRecipeCommand } from './commands/recipes-command.js';
import { type ReportFlags, reportCommand } from './commands/report-command.js';
import { type ResumeFlags, resumeCommand } from './commands/resume-command.js';
import { type TrainFlags, trainCommand } from './commands/train-command.js';

/** Runs one command. Returns the exit code; everything that goes wrong is one message on stderr. */
export async function runCommandLine(context: CommandContext, words: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = commands(context, async (command) => {
    exitCode = await command;
  });
  try {
    if (words.length === 0) program.outputHelp();
    else await program.parseAsync([...words], { from: 'user' });
    return exitCode;
  } catch (error) {
    // Commander has said what was wrong with the words; help and version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    context.stderr.write(`error: ${context.environment.DRMAS_DEBUG === '1' ? stackOf(error) : messageOf(error)}\n`);
    return error instanceof DrmasError ? error.exitCode : 1;
  }
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `\ncaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

function commands(context: CommandContext, settle: (command: Promise<number>) => Promise<void>): Command {
  const program = new Command('drmas')
    .description('Train teams of LLM agents with reinforcement learning, stably (Dr. MAS).')
    .version(packageVersion(), '--version')
    .configureOutput({
      writeOut: (text) => void context.stdout.write(text),
      writeErr: (text) => void context.stderr.write(text),
    })
    .exitOverride()
    .showHelpAfterError('(drmas --help shows what there is)')
    .addHelpText(
      'after',
      examples('drmas train math', 'drmas train my-team.ts --set training.steps=20', 'drmas doctor'),
    );

  const json = ['--json', 'print machine-readable events on stdout, and nothing else there'] as const;
  const threads = ['--threads <n>', 'threads of the kernels (default: all cores)', atLeast(1)] as const;
  const set = ['--set <key=value>', 'override a leaf of the recipe; may be repeated', collect, []] as const;

  program
    .command('train')
    .argument('<recipe>', 'name of a recipe that ships, or a TypeScript file')
    .description('train a team')
    .option(...set)
    .option('--run <directory>', 'directory of the run (default: runs/<recipe>-<time>)')
    .option('--seed <n>', 'seed of sampling and reinforcement', atLeast(0))
    .option('--dry-run', 'say what the run will take in tokens and memory, and start nothing')
    .option(...threads)
    .option(...json)
    .addHelpText(
      'after',
      examples(
        'drmas train math',
        'drmas train math --dry-run',
        'drmas train math --seed 2 --set advantage.type=grpo',
        'drmas train gsm8k --set tasks.train.file=train.jsonl',
        'drmas train examples/own-team.ts --run runs/first',
      ),
    )
    .action((recipe: string, flags: TrainFlags) => settle(trainCommand(context, recipe, flags)));

  program
    .command('resume')
    .argument('<run>', 'directory of the run')
    .description('go on with an interrupted run from its last checkpoint')
    .option('--accept-changes', 'go on although the recipe or its code has changed')
    .option(...threads)
    .option(...json)
    .addHelpText('after', examples('drmas resume runs/math-20260131-094501'))
    .action((run: string, flags: ResumeFlags) => settle(resumeCommand(context, run, flags)));

  program
    .command('evaluate')
    .argument('<run>', 'directory of the run')
    .description("play held-out tasks with a run's last checkpoint")
    .option(...set)
    .option('--samples <n>', 'episodes a task', atLeast(1))
    .option('--tasks <n>', 'held-out tasks, of each benchmark', atLeast(1))
    .option('--by <fields>', 'fields of tasks by which the scores are divided too, such as level')
    .option(...threads)
    .option(...json)
    .addHelpText(
      'after',
      examples(
        'drmas evaluate runs/first --tasks 500 --samples 8 --by level',
        'drmas evaluate runs/first --set agents.solver.sampling.temperature=0',
      ),
    )
    .action((run: string, flags: EvaluateFlags) => settle(evaluateCommand(context, run, flags)));

  program
    .command('init')
    .argument('<directory>', 'where to; must be new or empty')
    .description('write a project to begin with: team, recipe, tasks, a test')
    .addHelpText('after', examples('drmas init my-team'))
    .action((directory: string) => settle(initCommand(context, directory)));

  program
    .command('probe')
    .argument('<recipe>', 'name of a recipe that ships, or a TypeScript file')
    .description('play a few dozen tasks without training: will reinforcement help, and if not, what would')
    .option('--tasks <n>', 'tasks to play (default: 32)', atLeast(1))
    .option('--from <run>', "policies of a run's last checkpoint instead of the warm start")
    .option(...set)
    .option('--seed <n>', 'seed of tasks and sampling', atLeast(0))
    .option(...threads)
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      examples(
        'drmas probe math',
        'drmas probe my-team.ts --tasks 64 --set training.groupSize=16',
        'drmas probe math --from runs/math-20260131-094501',
      ),
    )
    .action((recipe: string, flags: ProbeFlags) => settle(probeCommand(context, recipe, flags)));

  program
    .command('ablate')
    .argument('<recipe>', 'name or file; or the directory of an ablation, to go on with it')
    .description('compare variants of a recipe over paired seeds')
    .option('--vary <key=value,value>', 'values of a leaf to compare; several --vary make a grid', collect, [])
    .option('--seeds <n>', 'pairs; pair i has seed i and warm start i (default: 5)', atLeast(1))
    .option('--warm-start-seed <n>', 'the same warm start for all pairs', atLeast(0))
    .option('--baseline <value>', 'what the others are compared with (default: the first value)')
    .option(...set)
    .option('--run <directory>', 'directory of the ablation (default: runs/<recipe>-ablation-<time>)')
    .option('--parallel <n>', 'runs at once (default: small models up to 4, others 1)', atLeast(1))
    .option('--threads <n>', 'threads of all runs together (default: all cores)', atLeast(1))
    .option(...json)
    .addHelpText(
      'after',
      examples(
        'drmas ablate math --vary advantage.type=grpo,grpo-turn,drmas --seeds 5',
        'drmas ablate my-team.ts --vary advantage.type=grpo,drmas --vary training.groupSize=4,8 --seeds 3',
        'drmas ablate runs/math-ablation-20260131-094501',
      ),
    )
    .action((recipe: string, flags: AblateFlags) => settle(ablateCommand(context, recipe, flags)));

  program
    .command('export')
    .argument('<run>', 'directory of the run')
    .description("an agent's policy as a directory of its own, for transformers, peft, servers and loadPolicy")
    .requiredOption('--agent <name>', 'agent of the team')
    .requiredOption('--to <directory>', 'where to; must not exist')
    .option('--step <n>', 'checkpoint of this step (default: the last)', atLeast(0))
    .addOption(
      new Option('--format <format>', 'hf: a whole model, an adapter merged into its base; peft: the adapter')
        .choices(EXPORT_FORMATS)
        .default('hf'),
    )
    .addHelpText(
      'after',
      examples(
        'drmas export runs/first --agent solver --to models/solver',
        'drmas export runs/first --agent solver --step 40 --to models/solver-40',
      ),
    )
    .action((run: string, flags: ExportFlags) => settle(exportCommand(context, run, flags)));

  const recipes = program
    .command('recipes')
    .description('list the recipes that ship')
    .addHelpText('after', examples('drmas recipes', 'drmas recipes show math'))
    .action(() => settle(recipesCommand(context)));
  recipes
    .command('show')
    .argument('<recipe>', 'name or file')
    .description('print a recipe with every default filled in')
    .option(...set)
    .action((recipe: string, flags: { set: string[] }) => settle(showRecipeCommand(context, recipe, flags)));

  program
    .command('inspect')
    .argument('<log>', "a rollout log (.jsonl, .jsonl.gz, .json), a directory of them, or a run's directory")
    .description('say what rewards in a log mean for each estimator: inflated agents, groups that teach nothing')
    .option('--task <field>', 'field that names the problem (dots reach inside: task.id)')
    .option('--episode <field>', 'field that names the episode; without it every row is one')
    .option('--agent <field>', 'field that names the agent')
    .option('--reward <field>', "the episode's reward for the row's agent")
    .option('--turn <field>', 'position of the row in its episode')
    .option('--penalty <field>', 'what the row pays for itself, taken off its reward')
    .option('--step <field>', 'training step; rows of different steps are never compared (default: one a file)')
    .option('--estimator <types>', 'estimators to compare, with commas between', collect, [])
    .option('--json', 'print it as JSON')
    .addHelpText(
      'after',
      examples(
        'drmas inspect runs/first',
        'drmas inspect rollouts/12.jsonl',
        'drmas inspect log.jsonl --task prompt_id --episode rollout --agent role --reward score',
      ),
    )
    .action((log: string, flags: InspectFlags) => settle(inspectCommand(context, log, flags)));

  program
    .command('report')
    .argument('<run...>', 'directories of runs; several stand side by side')
    .description('write one HTML page about runs: curves, spikes, tables, every kept episode')
    .option('--to <file>', "where to (default: report.html in the run's directory; about several runs, here)")
    .option(
      '--megabytes <n>',
      'about how much room episodes may take; a sample where they do not fit (default: 8)',
      atLeast(1),
    )
    .addHelpText('after', examples('drmas report runs/first', 'drmas report runs/drmas runs/grpo --to compare.html'))
    .action((runs: string[], flags: ReportFlags) => settle(reportCommand(context, runs, flags)));

  program
    .command('doctor')
    .description('show what is in use on this machine: kernels, compiler, cache')
    .option('--json', 'print it as JSON')
    .action((flags: { json?: boolean }) => settle(doctorCommand(context, flags)));

  return program;
}

const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;

const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

function atLeast(low: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= low) return value;
    throw new InvalidArgumentError(`expected an integer >= ${low}, got '${text}'`);
  };
}
