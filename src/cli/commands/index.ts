import type { Command } from '../define-command.js';
import { ablate } from './ablate-command.js';
import { compare } from './compare-command.js';
import { doctor } from './doctor-command.js';
import { evaluate } from './evaluate-command.js';
import { exportPolicy } from './export-command.js';
import { init } from './init-command.js';
import { inspectLog } from './inspect-command.js';
import { recipes } from './recipes-command.js';
import { report } from './report-command.js';
import { resume } from './resume-command.js';
import { runs } from './runs-command.js';
import { chat } from './serving/chat-command.js';
import { serve } from './serving/serve-command.js';
import { worker } from './serving/worker-command.js';
import { improve } from './studies/improve-command.js';
import { plan } from './studies/plan-command.js';
import { probe } from './studies/probe-command.js';
import { train } from './train-command.js';
import { cache } from './upkeep/cache-command.js';
import { verify } from './upkeep/verify-command.js';
import { watch } from './watch-command.js';

/** Every command, in the order of the help. A new one is a file and a row here. */
export const commands: readonly Command[] = [
  train,
  compare,
  resume,
  evaluate,
  init,
  probe,
  plan,
  ablate,
  improve,
  exportPolicy,
  serve,
  chat,
  worker,
  recipes,
  inspectLog,
  runs,
  watch,
  report,
  verify,
  cache,
  doctor,
];
