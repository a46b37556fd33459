/** A shell script of curl and jq plays a team over the gateway: the run that plain calls give, which learns. */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type DeskPlay, plainPlay, rises, trainDesk } from '../frameworks/desk.js';
import { temporaryRoot } from '../support/tiny-run.js';

const root = temporaryRoot();
const run = promisify(execFile);
const script = fileURLToPath(new URL('agent.sh', import.meta.url));

const missing = ['bash', 'curl', 'jq'].filter((program) => spawnSync(program, ['--version']).error !== undefined);
if (missing.length > 0) console.log(`SKIPPED: the shell agent, because ${missing.join(' and ')} is not here`);

const withCurl: DeskPlay = async ({ task, gateway, signal }) => {
  const { stdout } = await run('bash', [script, task.question], { env: { ...process.env, ...gateway.env }, signal });
  return JSON.parse(stdout);
};

describe.skipIf(missing.length > 0)('a team of a shell script', () => {
  it('is the run that plain calls of agents give, bit for bit', async () => {
    const overrides = ['training.tasksPerStep=2'];
    const plain = await trainDesk(root, plainPlay, { overrides });
    const foreign = await trainDesk(root, withCurl, { overrides: [...overrides, 'gateway.port=0'] });
    expect(foreign.failures).toEqual([]);
    expect(foreign).toEqual(plain);
  });

  it('learns', async () => {
    const overrides = ['training.steps=10', 'training.tasksPerStep=2', 'gateway.port=0'];
    const { rewards, failures } = await trainDesk(root, withCurl, { overrides });
    expect(failures).toEqual([]);
    expect(rises(rewards)).toBe(true);
  });
});
