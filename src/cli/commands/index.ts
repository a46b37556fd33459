import type { Command } from '../define-command.js';
import { ablate } from './ablate-command.js';
import { compare } from './compare-command.js';
import { doctor } from './doctor-command.js';
import { evaluate } from './evaluate-command.js';
import { exportPolicy } from './export-command.js';
import { init } from './init-command.js';
import { inspectLog } from './inspect-command.js';
import { plan } from './plan-command.js';
import { recipes } from './recipes-command.js';
import { report } from './report-command.js';
import { resume } from './resume-command.js';
import { runs } from './runs-command.js';
import { chat } from './serving/chat-command.js';
import { serve } from './serving/serve-command.js';
import { demonstrate } from './studies/demonstrate-command.js';
import { importCommand } from './studies/import-command.js';
import { learn } from './studies/learn-command.js';
import { tasks } from './tasks-command.js';
import { train } from './train-command.js';
import { watch } from './watch-command.js';

/** The commands by the headings of the help, in its order. A new command is a file and a row here. */
export const commandGroups: Readonly<Record<string, readonly Command[]>> = {
  'Start:': [init, recipes, tasks, plan, doctor],
  'Train:': [train, resume, evaluate, ablate],
  'Watch:': [watch, report, runs, inspectLog],
  'Use the trained agents:': [exportPolicy, serve, chat],
  'Demonstrations:': [demonstrate, importCommand, learn],
};

export const commands: readonly Command[] = Object.values(commandGroups).flat();

/** Short names: each stands for another command with certain flags, and shows the result in its own form. */
export const shortNames: readonly Command[] = [compare];

/** Words that people type for a command, and the command. */
export const otherWords: Readonly<Record<string, string>> = {
  cache: 'doctor cache',
  dashboard: 'watch',
  list: 'runs',
  probe: 'plan --play',
  verify: 'doctor verify',
  worker: 'serve worker',
};

/** Flags that people type for a command or another flag. */
export const otherFlags: Readonly<Record<string, string>> = { 'dry-run': 'drmas plan' };
